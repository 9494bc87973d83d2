"""What the cells of a column are, where they are neither plain numbers nor plain levels.

Public descriptions, which a contract gives and `tables.formats.values` turns into codings.
"""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass
from typing import Any

from gramercy.schemas import families

EPOCH = datetime.date(1970, 1, 1)
_UNIT_DAYS = {"days": 1.0, "years": 365.2425}
_UNIT = re.compile(rf"({'|'.join(_UNIT_DAYS)}) since ([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})")
DAYS = "days since 1970-01-01"


@dataclass(frozen=True)
class TruthCells:
    """Cells are true or false; each becomes the index of its value in `levels`."""

    levels: tuple[bool, ...] = (True, False)


@dataclass(frozen=True)
class CodeCells:
    """Cells are codes; each becomes the index of its group.

    Parameters
    ----------
    groups
        The codes of each group: texts, and whole numbers for codes that are written as such.
    prefix
        Whether a code is a beginning of the cells of its group, of which the longest one counts.
    rest
        Index of the group of all other cells that are present; None if they are in no group.
    """

    groups: tuple[tuple[str | int, ...], ...]
    prefix: bool = False
    rest: int | None = None


@dataclass(frozen=True)
class DayCells:
    """Cells are dates or times; each becomes the time from a first day to its day.

    Parameters
    ----------
    since
        The day that becomes 0.
    days
        Length of the unit in days: a year has 365.2425.
    """

    since: datetime.date = EPOCH
    days: float = 1.0

    @classmethod
    def of_unit(cls, unit: Any) -> DayCells:
        """The description of a unit such as ``days since 1970-01-01``."""
        found = _UNIT.fullmatch(str(unit))
        day = None if found is None else _iso_date(found[2])
        if found is None or day is None:
            raise families.VALUE(
                "'unit' is for dates, and must be '{unit}', with this or another date, or 'years' "
                "in place of 'days'.",
                "Leave 'unit' out if the column has numbers.",
                unit=DAYS,
            )
        return cls(day, _UNIT_DAYS[found[1]])

    @property
    def name(self) -> str:
        """Name of the unit alone: ``days`` or ``years``."""
        return next(name for name, days in _UNIT_DAYS.items() if days == self.days)

    def in_words(self, number: float) -> str:
        """The day in which a number is; the number with the unit if there is no such day."""
        day = self.day(number)
        return f"{number:.4g} {self.name} since {self.since}" if day is None else day.isoformat()

    def number(self, day: datetime.date) -> float:
        """The number that stands for a day."""
        return (day - self.since).days / self.days

    def day(self, number: float) -> datetime.date | None:
        """The day in which a number is; None if the calendar does not have it."""
        try:
            return self.since + datetime.timedelta(math.floor(number * self.days + 0.5))
        except (OverflowError, ValueError):
            return None


_COUNTED = re.compile(r"(days|seconds|milliseconds) since ([0-9]{4}-[0-9]{2}-[0-9]{2})")
_ORDERED = re.compile(r"(day|month|year)([./ -]?)(day|month|year)\2(day|month|year)")
_ORDERS = (("day", "month", "year"), ("month", "day", "year"), ("year", "month", "day"))
_A_DAY = {"days": 1, "seconds": 86_400, "milliseconds": 86_400_000}


@dataclass(frozen=True)
class DateNotation:
    """How dates are written.

    Parameters
    ----------
    order
        ``day``, ``month`` and ``year`` in their order; empty for numbers that count from a day.
    mark
        What is between them.
    since, a_day
        The day of the number 0, and how many units a day has.
    """

    order: tuple[str, ...] = ()
    mark: str = ""
    since: datetime.date = EPOCH
    a_day: int = 1

    @property
    def is_of_numbers(self) -> bool:
        """Whether cells are digits alone, which a table may also store as numbers."""
        return not self.mark


def date_notation(text: str) -> DateNotation:
    """The notation that a contract states, such as ``day.month.year``."""
    if (counted := _COUNTED.fullmatch(text)) and (day := _iso_date(counted[2])) is not None:
        return DateNotation(since=day, a_day=_A_DAY[counted[1]])
    ordered = _ORDERED.fullmatch(text)
    if ordered is None or (order := ordered.group(1, 3, 4)) not in _ORDERS:
        raise families.VALUE(
            "'dates' must be 'day', 'month' and 'year' in their order, with the mark between them, "
            "or what numbers count.",
            "Write day.month.year for 31.12.2026, month/day/year for 12/31/2026, yearmonthday for "
            "20261231, or 'days since 1899-12-30' for the numbers of Excel.",
        )
    return DateNotation(order, ordered[2])


def as_date(value: object) -> datetime.date | None:
    """The date that a value of a contract is, as YAML reads it or as text; None for others."""
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, datetime.date):
        return value
    return _iso_date(value) if isinstance(value, str) else None


def _iso_date(text: str) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return None
