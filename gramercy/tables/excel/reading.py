"""The records of a sheet, as columns for a copy.

The first row names the columns, and row k + 1 is record k. A sheet does not state where its rows
end: programs leave out rows whose cells are all empty, at the end and elsewhere. So what counts as
a record must not depend on it.

*Under add-remove*, and where persons are protected, a row whose cells are all empty is not a
record, wherever it is. Whether a row is a record depends on its own cells alone, so a row that
becomes empty is one record less, and all others stay as they are. Nothing depends on the places of
records: folds and samples are drawn for each of them independently (`tables.parts`).

*Under replace-one*, the number of records n is public. Record k is what is in row k + 1, for k up
to n, and a row that is empty or absent is a record whose cells are all missing. Replacing a row by
an empty one changes one record. A row with cells after these is one record too many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice

import pyarrow as pa

from gramercy.schemas.problems.source import more_rows_than_sheet
from gramercy.schemas.problems.table import header_missing
from gramercy.tables.copies.cells import Cells, texts
from gramercy.tables.copies.columns import CopiedColumns
from gramercy.tables.excel.book import Book, open_book
from gramercy.tables.excel.cells import CellReader, shared_string
from gramercy.tables.excel.dates import DateStyles
from gramercy.tables.excel.rows import LAST_ROW, Cell, rows_of_sheet
from gramercy.tables.excel.strings import SharedStrings
from gramercy.tables.source_file import SourceFile
from gramercy.tables.values import to_floats

_MAX_NAME = 1000  # characters of a column's name

Record = Mapping[int, Cell]


def columns_of(file: SourceFile) -> list[str]:
    """Names of the columns, from the first row; no other row is used.

    Raises
    ------
    TableError
        If the workbook cannot be read, or its first row is empty.
    """
    with open_book(file) as book:
        return list(_header(book, file).values())


def _header(book: Book, file: SourceFile) -> dict[int, str]:
    """Names by column; columns without a name are not part of the table."""
    number, cells = next(rows_of_sheet(book, None, _MAX_NAME), (0, {}))
    numbers = [-1, *(shared_string(cell) for cell in cells.values())]
    strings = SharedStrings(book, file.display_name, _MAX_NAME, max(numbers))
    reader = CellReader(strings)
    named = {place: reader.level(cell) or "" for place, cell in sorted(cells.items())}
    named = {place: name for place, name in named.items() if name.strip()}
    if number != 1 or not named:
        raise header_missing(file.display_name)
    return named


@contextmanager
def open_rows(
    file: SourceFile, columns: CopiedColumns
) -> Iterator[tuple[pa.Schema, Iterator[list[pa.Array]]]]:
    """The columns of a copy, and the batches of its records.

    Raises
    ------
    TableError
        If the workbook cannot be read, or the declared number of rows is more than it can have.
    """
    if columns.rows is not None and columns.rows >= LAST_ROW:
        raise more_rows_than_sheet(file.display_name, LAST_ROW - 1)
    with open_book(file) as book:
        header = _header(book, file)
        places = {name: place for place, name in header.items()}
        bounds = {places[name]: columns.most_bytes(name) for name in columns.names}
        most = max(bounds.values())
        strings = SharedStrings(book, file.display_name, most)
        reader = CellReader(strings, DateStyles(book).numbers(), book.from_1904)
        rows = rows_of_sheet(book, header.keys(), most)
        found = _records(islice(rows, 1, None), reader, bounds, columns.rows)
        kinds = {name: columns.is_number(name) for name in columns.names}
        schema = pa.schema((n, pa.float64() if x else pa.string()) for n, x in kinds.items())
        converters = {name: _converter(columns, name, reader) for name in kinds}
        yield schema, _batches(found, places, converters, columns)


def _records(
    rows: Iterator[tuple[int, dict[int, Cell]]],
    reader: CellReader,
    bounds: Mapping[int, int],
    declared: int | None,
) -> Iterator[Record]:
    """The cells of each record; see the explanation above.

    Of these, only the cells of the columns of `bounds` are kept, without texts that are longer than
    a value can be: a batch of records must fit into memory.
    """
    place = 0
    for number, cells in rows:
        is_empty = all(map(reader.is_empty, cells.values()))
        kept = {k: cell for k, cell in cells.items() if len(cell.text) <= bounds.get(k, -1)}
        if declared is None or number > declared + 1:
            if not is_empty:
                while place < (declared or 0):
                    yield {}
                    place += 1
                yield kept
            continue
        while place < number - 2:
            yield {}
            place += 1
        yield kept
        place += 1
    for _ in range(place, declared or 0):
        yield {}


def _batches(
    records: Iterator[Record],
    places: Mapping[str, int],
    converters: Mapping[str, Callable[[list[Cell | None]], pa.Array]],
    columns: CopiedColumns,
) -> Iterator[list[pa.Array]]:
    while batch := list(islice(records, columns.rows_at_once)):
        yield [
            convert([record.get(places[name]) for record in batch])
            for name, convert in converters.items()
        ]


def _converter(
    columns: CopiedColumns, name: str, reader: CellReader
) -> Callable[[list[Cell | None]], pa.Array]:
    most = columns.most_bytes(name)
    if columns.is_number(name):
        return lambda cells: _numbers([_within(c and reader.number(c), most) for c in cells])
    text = reader.level if name in columns.published else reader.name
    if name == columns.dates:
        text = reader.date
    return lambda cells: texts([_within(cell and text(cell), most) for cell in cells])


def _numbers(cells: Cells) -> pa.Array:
    return pa.array(to_floats(texts(cells), None))


def _within(text: str | None, most: int) -> str | None:
    """The text, if it can be a value."""
    return None if text is None or len(text.encode("utf-8", "replace")) > most else text
