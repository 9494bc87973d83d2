"""The rows of a sheet, as the cells of the columns that have a name.

A cell is a type, a style and a text, exactly as the file states them; no text of it is judged here.
Where a cell has no place, it is next to the one before, and so is a row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from gramercy.tables.excel.book import Book
from gramercy.tables.excel.strings import TextReader

LAST_ROW, _LAST_COLUMN = 1 << 20, 1 << 14


class Cell(NamedTuple):
    """A cell that is not empty.

    Parameters
    ----------
    kind
        Its type, such as ``n`` for numbers and ``s`` for shared strings.
    style
        The number of its style.
    text
        Its text, up to the longest that is needed and one more character.
    """

    kind: str
    style: str
    text: str


Row = tuple[int, dict[int, Cell]]  # its number in the sheet, from 1, and its cells by their columns


def rows_of_sheet(book: Book, columns: Collection[int] | None, most: int) -> Iterator[Row]:
    """Rows in order; a row may be left out if all its cells are empty.

    Parameters
    ----------
    book
        The workbook.
    columns
        The columns to read, counted from 0; None for all.
    most
        Characters of the longest text that is needed.

    Raises
    ------
    ValueError
        If rows are not in order, or there are more than a sheet can have.
    """
    reader = _RowReader(columns, most)
    with book.open(book.sheet, None) as stream:
        for _ in reader.read(stream):
            rows, reader.rows = reader.rows, []
            yield from rows


class _RowReader(TextReader):
    def __init__(self, columns: Collection[int] | None, most: int) -> None:
        super().__init__(most)
        self._columns = columns
        self.rows: list[Row] = []
        self._number, self._column = 0, -1
        self._cells: dict[int, Cell] = {}
        self._letters: dict[str, int] = {}
        self._kind, self._style = "n", ""
        self._wanted = self._phonetic = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "c":
            self._start_cell(attributes)
        elif name in {"v", "t"}:
            inline = name == "t"
            is_value = inline == (self._kind == "inlineStr") and not self._phonetic
            self._kept = self._wanted and is_value
        elif name == "row":
            self._start_row(attributes.get("r"))
        elif name == "rPh":
            self._phonetic = True

    def end(self, name: str) -> None:
        if name in {"v", "t"}:
            self._kept = False
        elif name == "c":
            if self._wanted and self._parts:
                self._cells[self._column] = Cell(self._kind, self._style, self.kept)
            self._wanted = self._phonetic = False
        elif name == "row":
            self.rows.append((self._number, self._cells))
        elif name == "rPh":
            self._phonetic = False
        elif name == "sheetData":
            self.done = True

    def _start_row(self, stated: str | None) -> None:
        number = self._number + 1 if stated is None else int(stated[:9])
        if not self._number < number <= LAST_ROW:
            raise ValueError
        self._number, self._column, self._cells = number, -1, {}

    def _start_cell(self, attributes: dict[str, str]) -> None:
        self._column = self._place(attributes.get("r", ""))
        wanted = self._columns is None or self._column in self._columns
        self._wanted = wanted and self._column < _LAST_COLUMN
        self._kind, self._style = attributes.get("t", "n"), attributes.get("s", "0")
        self.begin()

    def _place(self, reference: str) -> int:
        letters = reference.rstrip("0123456789")
        known = self._letters.get(letters)
        if known is not None:
            return known
        if not (letters.isascii() and letters.isalpha() and len(letters) <= 3):
            return self._column + 1
        column = 0
        for letter in letters.upper():
            column = 26 * column + ord(letter) - ord("A") + 1
        self._letters[letters] = column - 1
        return column - 1
