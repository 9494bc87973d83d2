"""The steps of a cumulative series: disjoint intervals of days that fill its window.

A step is a calendar period cut by the window: the days from 1 to 3 January 2027 are in ISO week 53
of 2026, and are the first step of the window 2027. Everything is decided by the request, the
contract and the label of the window, and never by the clock.
"""

from __future__ import annotations

import datetime
import zoneinfo
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from gramercy.schemas import families
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import Model
from gramercy.schemas.periods import Per, Span, days_of, label_of

StepSpan = Literal["quarter", "month", "week", "day"]
MOST_STEPS = 1000
MOST_LAG = 366  # days
_ONE_DAY = datetime.timedelta(days=1)
_SHORTER: dict[Per, tuple[StepSpan, ...]] = {
    "year": ("quarter", "month", "week", "day"),
    "quarter": ("month", "week", "day"),
    "month": ("week", "day"),
}


class Cumulative(Model):
    """A series of releases of a growing table, of all rows so far, at one charge.

    Parameters
    ----------
    every
        Length of a step: ``day``, ``week``, ``month`` or ``quarter``.
    start
        First day of the series, with a budget for the lifetime of the data set; key ``from``.
    steps
        Number of steps, with a budget for the lifetime of the data set.
    lag
        Days after the end of a step until it is published, so that its rows are complete.
    """

    every: StepSpan
    start: datetime.date | None = None
    steps: Annotated[int | None, Field(strict=True, ge=1, le=MOST_STEPS)] = None
    lag: Annotated[int, Field(strict=True, ge=0, le=MOST_LAG)] = 0

    @model_validator(mode="before")
    @classmethod
    def _of_word(cls, data: Any) -> Any:
        """``week`` is short for ``{every: week}``, and ``start`` is written ``from``."""
        if isinstance(data, str):
            return {"every": data}
        if isinstance(data, Mapping) and "from" in data:
            return {"start" if key == "from" else key: value for key, value in data.items()}
        return data

    def check(self, per: Per) -> None:
        """Refuse a series that does not fill the windows of a budget."""
        has_window = self.start is not None or self.steps is not None
        if per == "lifetime":
            if self.start is None or self.steps is None:
                raise families.PERIOD(
                    "'cumulative' needs the keys 'from' and 'steps': the budget is for the "
                    "lifetime of the data set.",
                    "Write 'cumulative: {{every: week, from: 2026-01-05, steps: 52}}'.",
                )
            return
        if has_window:
            raise families.PERIOD(
                "'cumulative' must not have 'from' or 'steps': the budget is per {per}, whose days "
                "are the window of a series.",
                "Remove them, or register a data set with a budget for its lifetime.",
                per=per,
            )
        if self.every not in _SHORTER.get(per, ()):
            raise families.PERIOD(
                "'cumulative' has steps of a {every}, which is not shorter than the {per} of the "
                "budget.",
                "Choose a shorter step.",
                every=self.every,
                per=per,
            )

    def series(self, per: Per, window: str) -> StepDays:
        """The days of all steps in one window of a budget; `window` is empty for a lifetime."""
        self.check(per)
        if per != "lifetime":
            first, last = _existing(per, window)
            starts = _starts(self.every, first, last)
        else:
            starts = [self.start or datetime.date.min]
            for _ in range(self.steps or 0):
                end = _existing(self.every, label_of(self.every, starts[-1]))[1]
                starts.append(_day_after(end))
        if not has_calendar(starts):
            raise _no_such_days()
        return StepDays(self.every, tuple(starts), window if per != "lifetime" else "")

    def window_at(self, per: Per, today: datetime.date) -> StepDays:
        """The steps of the window in which rows become complete on a day."""
        last = today - (1 + self.lag) * _ONE_DAY
        return self.series(per, "" if per == "lifetime" else label_of(per, last))

    def last_complete(self, per: Per, today: datetime.date) -> str:
        """The label of the last step whose rows are complete on a day, in any window."""
        days = self.window_at(per, today)
        number = days.complete(today, self.lag)
        if number == 0 and per != "lifetime":  # its window has just begun
            days = self.series(per, label_of(per, days.starts[0] - _ONE_DAY))
            number = days.count
        if number == 0:
            raise families.PERIOD(
                "No step of the series is complete on {day}: the first one begins on {first}.",
                "Run it again when the first step and 'lag' are over.",
                day=today.isoformat(),
                first=days.starts[0].isoformat(),
            )
        return days.labels[number - 1]


@dataclass(frozen=True)
class StepDays:
    """The days on which the steps of a series begin, and the first day after it."""

    every: StepSpan
    starts: tuple[datetime.date, ...]  # one more than steps
    window: str = ""  # label of the budget's period; empty for a lifetime

    @property
    def count(self) -> int:
        """Number of steps."""
        return len(self.starts) - 1

    @property
    def labels(self) -> tuple[str, ...]:
        """The version of each step: all differ, and they start with the label of the window.

        Examples
        --------
        >>> list(Cumulative(every="month").series("quarter", "2026-Q1").labels)
        ['2026-Q1-01', '2026-Q1-02', '2026-Q1-03']
        >>> weeks = Cumulative(every="week").series("year", "2027").labels
        >>> weeks[0], weeks[1], weeks[-1], len(weeks)
        ('2027-W00', '2027-W01', '2027-W52', 53)
        """
        days = self.starts[:-1]
        if not self.window:
            return tuple(label_of(self.every, day) for day in days)
        year = int(self.window[:4])
        return tuple(f"{self.window}-{_suffix(self.every, day, year)}" for day in days)

    def step_of(self, day: datetime.date) -> int | None:
        """The number of the step that has a day, from 1; None outside of the series."""
        number = bisect_right(self.starts, day)
        return number if 1 <= number <= self.count else None

    def crossing(self, files: Span) -> str | None:
        """The first period of a kind that has days of two steps, or days outside of the series.

        None if every period is within one step: then files of this kind show the step of a row.
        """
        day = self.starts[0]
        while day < self.starts[-1]:
            label = label_of(files, day)
            first, last = _existing(files, label)
            number = self.step_of(first)
            if number is None or number != self.step_of(last):
                return label
            day = last + _ONE_DAY
        return None

    def complete(self, day: datetime.date, lag: int = 0) -> int:
        """How many steps ended, `lag` days ago, before a day."""
        passed = bisect_right(self.starts, day - lag * _ONE_DAY)
        return min(max(passed - 1, 0), self.count)

    def instants(self, timezone: str) -> tuple[datetime.datetime, ...]:
        """When the steps begin, and the series ends, where days begin in a time zone; in UTC."""
        zone = zoneinfo.ZoneInfo(timezone)
        return tuple(
            datetime.datetime.combine(day, datetime.time(), zone).astimezone(datetime.UTC)
            for day in self.starts
        )


def _existing(span: Span, label: str) -> tuple[datetime.date, datetime.date]:
    days = days_of(span, label)
    if days is None:
        raise families.PERIOD("There is no {span} '{label}'.", span=span, label=label)
    return days


def _starts(every: StepSpan, first: datetime.date, last: datetime.date) -> list[datetime.date]:
    starts = [first]
    while starts[-1] <= last:
        end = _existing(every, label_of(every, starts[-1]))[1]
        starts.append(_day_after(min(end, last)))
    return starts


def has_calendar(days: Sequence[datetime.date]) -> bool:
    """Whether there are days and times, in all zones, a year before and after the given days."""
    return all(datetime.MINYEAR < day.year < datetime.MAXYEAR for day in days)


def _day_after(day: datetime.date) -> datetime.date:
    if day == datetime.date.max:
        raise _no_such_days()
    return day + _ONE_DAY


def _no_such_days() -> RequestError:
    return families.PERIOD(
        "All days of a series must be in the years from 2 to 9998.",
        "Correct 'from' and 'steps', or the version.",
    )


def _suffix(every: StepSpan, day: datetime.date, year: int) -> str:
    """What tells a step from the others of its window.

    A week that began in the ISO year before is W00, and one of the next is W53, so that the weeks
    of a year are in order and all differ.
    """
    if every == "week":
        iso_year, week, _ = day.isocalendar()
        number = week if iso_year == year else 0 if iso_year < year else 53
        return f"W{number:02}"
    if every == "quarter":
        return f"Q{(day.month + 2) // 3}"
    return f"{day.month:02}" + (f"-{day.day:02}" if every == "day" else "")
