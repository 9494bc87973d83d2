"""Formats of numbers that are dates, and the dates that numbers stand for."""

from __future__ import annotations

import datetime
import re

from gramercy.tables.excel.book import Book
from gramercy.tables.excel.elements import ElementReader

# Formats of dates and times that have no code of their own in a workbook.
_BUILT_IN = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}
# Not part of the format: texts, escaped characters, colours, conditions and locales. What follows
# the first semicolon is the format of negative numbers.
_LITERAL = re.compile(r'"[^"]*"?|\\.|_.|\*.|\[(?![hms]+\])[^\]]*\]?|;.*', re.IGNORECASE | re.DOTALL)
_DATE = re.compile(r"[ymdhs]", re.IGNORECASE)
_GENERAL = re.compile(r"general", re.IGNORECASE)
_MILLISECONDS = 86_400_000  # of a day
_LAST = 2_958_466  # the day after 9999-12-31
_LEAP_DAY = 60  # 1900-02-29, which Excel counts, and which did not exist


class DateStyles(ElementReader):
    """Which styles of cells are dates.

    Parameters
    ----------
    book
        The workbook.
    """

    def __init__(self, book: Book) -> None:
        super().__init__()
        self._codes: dict[str, bool] = {}
        self._in_cells = False
        self._formats: list[str] = []
        if book.styles:
            with book.open(book.styles) as stream:
                for _ in self.read(stream):
                    pass

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "numFmt":
            self._codes[attributes.get("numFmtId", "")] = _is_date(attributes.get("formatCode", ""))
        elif name == "cellXfs":
            self._in_cells = True
        elif name == "xf" and self._in_cells:
            self._formats.append(attributes.get("numFmtId", "0"))

    def end(self, name: str) -> None:
        if name == "cellXfs":
            self._in_cells = False

    def numbers(self) -> set[str]:
        """The numbers of the styles, as cells state them."""
        return {
            str(style)
            for style, code in enumerate(self._formats)
            if self._codes.get(code, code.isdigit() and int(code[:9]) in _BUILT_IN)
        }


def _is_date(code: str) -> bool:
    return _DATE.search(_GENERAL.sub("", _LITERAL.sub("", code))) is not None


def date_text(number: float, *, from_1904: bool) -> str | None:
    """The date, or the date and time, in ISO 8601; None if there is none of this number."""
    if not 0 <= number < _LAST:
        return None
    days, milliseconds = divmod(round(number * _MILLISECONDS), _MILLISECONDS)
    if from_1904:
        first = datetime.datetime(1904, 1, 1)
    elif days == _LEAP_DAY:
        return None
    else:
        first = datetime.datetime(1899, 12, 31 if days < _LEAP_DAY else 30)
    try:
        time = first + datetime.timedelta(days=days, milliseconds=milliseconds)
    except OverflowError:
        return None
    return time.isoformat(timespec="milliseconds") if milliseconds else time.date().isoformat()
