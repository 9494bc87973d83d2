"""Which rows belong to a period of the data or a step of it, by the date in each row alone.

Every row belongs to at most one period of a data set, independently of all other rows, so that the
releases of several periods compose in parallel. A cell that is not a date belongs to no period. The
steps of a cumulative series are intervals of days within one period.

Dates are those of Arrow; times with a zone, which are instants; times without one, which are read
as times of the declared zone; and text in ISO 8601, with or without time and offset from UTC, or as
the source states that dates are written. Text may also be the label of the period itself, and a
whole number may be a year, also as 2026.0, unless numbers count days or seconds.
"""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gramercy.schemas.cells import EPOCH, DateNotation
from gramercy.schemas.contract import Contract
from gramercy.schemas.periods import LABEL_PATTERNS, Span, days_of, label_of
from gramercy.schemas.source import notation_of
from gramercy.tables.formats import dates
from gramercy.tables.formats.dates import DAY, filled
from gramercy.tables.formats.values import decoded, is_text, texts_of, written_dates

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_IS_NUMBER = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)


@dataclass(frozen=True)
class PeriodFilter:
    """Recognises the rows of one period: an index for `tables.formats.values.Lookup`."""

    # span, label: the period; with steps, the span is theirs
    span: Span
    label: str
    timezone: str  # the zone in which its days begin
    # the first day of each step of a series, and the first one after all; empty for the period
    starts: tuple[datetime.date, ...] = ()
    written: DateNotation | None = None  # another notation of dates than ISO 8601

    @classmethod
    def of(cls, contract: Contract) -> tuple[str, PeriodFilter] | None:
        """The column of dates and its filter; None if all rows of the source belong together."""
        chosen = contract.dates
        if chosen is not None:
            written = written_dates(notation_of(contract.source))
            period = cls(chosen.span, chosen.label, chosen.timezone, chosen.starts, written)
            return chosen.column, period
        if contract.period is not None and contract.budget.per != "lifetime":
            raise ValueError  # it would mix rows of all periods
        return None

    def indices(self, column: pa.Array) -> NDArray[np.float64]:
        """The number of the step, from 1, in which a cell is a date; 0 for other dates, else NaN.

        Without steps, the period is the only one. Each cell is read by itself, and no cell raises
        an error. Shape (rows,).
        """
        kind = column.type
        if pa.types.is_dictionary(kind):
            return decoded(self._of_plain(column.dictionary), column.indices)
        if is_text(kind):  # the same days occur again and again
            return self.indices(column.cast(pa.large_string()).dictionary_encode())
        return self._of_plain(column)

    def _of_plain(self, column: pa.Array) -> NDArray[np.float64]:
        kind = column.type
        if is_text(kind):
            return self._of_text(column.cast(pa.large_string()))
        if dates.is_stored_date(kind):
            has_zone = pa.types.is_timestamp(kind) and kind.tz is not None
            starts, unit = self._instants if has_zone else self._seconds, dates.units_a_day(kind)
            numbers, present = dates.stored_numbers(column)
            codes = _steps(numbers, [start * unit // DAY for start in starts])
            return np.where(present, codes, np.nan)
        is_number = any(each(kind) for each in _IS_NUMBER)
        if is_number and self.written is not None and self.written.is_of_numbers:
            return self._of_text(texts_of(column))
        if is_number and self.span == "year":
            years = pc.fill_null(column.cast(pa.float64(), safe=False), np.nan).to_numpy()
            return np.where(np.isnan(years), np.nan, years == float(self.label))
        return np.full(len(column), np.nan)

    @property
    def _days(self) -> list[int]:
        """The first day of each step, and the first one after all; in days since 1970."""
        if self.starts:
            return [(start - EPOCH).days for start in self.starts]
        days = days_of(self.span, self.label)
        if days is None:
            return [0, 0]  # no such period: it has no rows
        first, last = days
        return [(first - EPOCH).days, (last - EPOCH).days + 1]

    @property
    def _seconds(self) -> list[int]:
        """The same as times of its own zone, in seconds since 1970."""
        return [day * DAY for day in self._days]

    @property
    def _instants(self) -> list[int]:
        """The same as instants, in seconds since 1970 in UTC."""
        zone, instants = zoneinfo.ZoneInfo(self.timezone), list[int]()
        for day in self._days:
            try:
                date = EPOCH + datetime.timedelta(day)
                begins = datetime.datetime.combine(date, datetime.time(), zone)
                instants.append(round(begins.timestamp()))
            except OverflowError:  # the end of the year 9999
                instants.append(day * DAY)
        return instants

    def _of_text(self, text: pa.Array) -> NDArray[np.float64]:
        text = dates.short_texts(text)
        if self.span == "year":  # a number, which some programs write as a double
            text = pc.replace_substring_regex(text, r"^([0-9]{4})\.0*$", r"\1")
        is_label = filled(pc.match_substring_regex(text, f"^(?:{LABEL_PATTERNS[self.span]})$"))
        found = dates.times_of(text, self.written)
        is_label &= ~found.exist  # a number may count days
        codes = np.where(
            found.are_instants,
            _steps(found.seconds, self._instants),
            _steps(found.seconds, self._seconds),
        )
        codes[~found.exist] = 0.0
        for label, number in self._labels.items():
            codes[is_label & filled(pc.equal(text, label))] = number
        return np.where(found.exist | is_label, codes, np.nan)

    @property
    def _labels(self) -> dict[str, int]:
        """The number of each step by its label; a week belongs to the period of its first day."""
        if not self.starts:
            return {self.label: 1}
        numbers = {label_of(self.span, day): k for k, day in enumerate(self.starts[:-1], 1)}
        days = {label: days_of(self.span, label) or (None, None) for label in numbers}
        return {
            label: number
            for label, number in numbers.items()
            if days[label][0] == self.starts[number - 1]
        }


def _steps(numbers: NDArray[np.int64], starts: Sequence[int]) -> NDArray[np.float64]:
    """The number of the step that has a number, 0 if none has it.

    Step k has the numbers in [starts[k - 1], starts[k]).
    """
    edges = np.array([max(_LEAST, min(_MOST, each)) for each in starts], np.int64)
    codes = np.searchsorted(edges, numbers, side="right")
    codes[codes == edges.size] = 0
    return codes.astype(np.float64)
