"""What the cells of a sheet stand for, each independently of the others; no cell can fail."""

from __future__ import annotations

import math
import re

from gramercy.tables.excel.dates import date_text
from gramercy.tables.excel.rows import Cell
from gramercy.tables.excel.strings import SharedStrings, plain

_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_WHOLE = re.compile(r"\d{1,9}", re.ASCII)
_MOST_DIGITS = 1000  # of a number; the text of longer ones may be cut off
_EXACT = 2.0**53  # a smaller whole number has a double of its own
_TRUTH = {"1": "TRUE", "0": "FALSE", "true": "TRUE", "false": "FALSE"}


def shared_string(cell: Cell) -> int:
    """The number of the text that a cell refers to; -1 if it refers to none."""
    refers = cell.kind == "s" and _WHOLE.fullmatch(cell.text)
    return int(cell.text) if refers else -1


class CellReader:
    """What the cells of a sheet stand for.

    Parameters
    ----------
    strings
        The shared strings.
    dates
        The styles of dates.
    from_1904
        Whether dates are counted from 1904.
    """

    def __init__(
        self, strings: SharedStrings, dates: set[str] | None = None, from_1904: bool = False
    ) -> None:
        self._strings, self._dates, self._from_1904 = strings, dates or set(), from_1904

    def is_empty(self, cell: Cell) -> bool:
        """Whether nothing is in the cell."""
        return not cell.text or (cell.kind == "s" and self._text(cell) == "")

    def number(self, cell: Cell) -> str | None:
        """The text of a number, as the file has it; also of dates, and of truth values as 1 and 0.

        Text is a number if it is spelt like one.
        """
        if cell.kind == "n":
            return cell.text if _NUMBER.fullmatch(cell.text) else None
        if cell.kind == "b":
            return {"TRUE": "1", "FALSE": "0"}.get(_TRUTH.get(cell.text, ""))
        return self._text(cell)

    def level(self, cell: Cell) -> str | None:
        """Text, with numbers as Excel shows them: 2.0 is 2; dates are in ISO 8601."""
        if cell.kind == "b":
            return _TRUTH.get(cell.text)
        if cell.kind != "n":
            return self._text(cell)
        if cell.style in self._dates:
            return self.date(cell)
        number = self._double(cell)
        if number is None or math.isinf(number):
            return None
        return _whole(number) or repr(number)

    def name(self, cell: Cell) -> str | None:
        """A person's name; of numbers, only a whole one below 2^53, in whichever format.

        The double next to a larger number would be another name of the same person.
        """
        number = self._double(cell) if cell.kind == "n" else None
        return self._text(cell) if number is None else _whole(number)

    def date(self, cell: Cell) -> str | None:
        """Text; a number in the format of a date is the date, and other numbers as `name`."""
        number = self._double(cell) if cell.kind == "n" else None
        if number is None or cell.style not in self._dates:
            return self.name(cell)
        return date_text(number, from_1904=self._from_1904)

    def _double(self, cell: Cell) -> float | None:
        is_number = len(cell.text) <= _MOST_DIGITS and _NUMBER.fullmatch(cell.text)
        return float(cell.text) if is_number else None

    def _text(self, cell: Cell) -> str | None:
        if cell.kind == "s":
            number = shared_string(cell)
            return self._strings[number] if 0 <= number < len(self._strings) else None
        return plain(cell.text) if cell.kind in {"str", "inlineStr", "d"} else None


def _whole(number: float) -> str | None:
    return str(int(number)) if abs(number) < _EXACT and number.is_integer() else None
