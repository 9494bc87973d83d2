"""Which rows belong to a period of the data or a step of it, by the date in each row alone.

Every row belongs to at most one period of a data set, independently of all other rows, so that the
releases of several periods compose in parallel. A cell that is not a date belongs to no period. The
steps of a cumulative series are intervals of days within one period.

Dates are those of Arrow; times with a zone, which are instants; times without one, which are read
as times of the declared zone; and text in ISO 8601, with or without time and offset from UTC. Text
may also be the label of the period itself, and a whole number may be a year, also as 2026.0.
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

from gramercy.schemas.contract import Contract
from gramercy.schemas.periods import LABEL_PATTERNS, Span, days_of, label_of
from gramercy.tables.formats.values import IS_TEXT, decoded

_EPOCH = datetime.date(1970, 1, 1)
_DAY = 86_400  # seconds
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_LONGEST = 64  # bytes of a cell that can be a date, blanks included
_IS_NUMBER = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
_ISO = (
    r"^(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    r"(?:[T ](?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9])"
    r"(?:[.,][0-9]+)?)?"
    r" ?(?:(?P<sign>[Z+-])(?:(?P<hours>[01][0-9]|2[0-3])(?::?(?P<minutes>[0-5][0-9]))?)?)?)?$"
)


@dataclass(frozen=True)
class PeriodFilter:
    """Recognises the rows of one period: an index for `tables.formats.values.Lookup`."""

    # span, label: the period; with steps, the span is theirs
    span: Span
    label: str
    timezone: str  # the zone in which its days begin
    # the first day of each step of a series, and the first one after all; empty for the period
    starts: tuple[datetime.date, ...] = ()

    @classmethod
    def of(cls, contract: Contract) -> tuple[str, PeriodFilter] | None:
        """The column of dates and its filter; None if all rows of the source belong together."""
        chosen = contract.dates
        if chosen is not None:
            period = cls(chosen.span, chosen.label, chosen.timezone, chosen.starts)
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
        if any(is_text(kind) for is_text in IS_TEXT):  # the same days occur again and again
            return self.indices(column.cast(pa.large_string()).dictionary_encode())
        return self._of_plain(column)

    def _of_plain(self, column: pa.Array) -> NDArray[np.float64]:
        kind = column.type
        if any(is_text(kind) for is_text in IS_TEXT):
            return self._of_text(column.cast(pa.large_string()))
        # Arrow stores dates and times as whole numbers since 1970.
        if pa.types.is_date32(kind):
            return _codes(column.cast(pa.int32()), self._days)
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            has_zone = pa.types.is_timestamp(kind) and kind.tz is not None
            unit = _UNITS[kind.unit if pa.types.is_timestamp(kind) else "ms"]
            starts = self._instants if has_zone else self._seconds
            return _codes(column.cast(pa.int64()), [unit * start for start in starts])
        if self.span == "year" and any(is_number(kind) for is_number in _IS_NUMBER):
            years = pc.fill_null(column.cast(pa.float64(), safe=False), np.nan).to_numpy()
            return np.where(np.isnan(years), np.nan, years == float(self.label))
        return np.full(len(column), np.nan)

    @property
    def _days(self) -> list[int]:
        """The first day of each step, and the first one after all; in days since 1970."""
        if self.starts:
            return [(start - _EPOCH).days for start in self.starts]
        days = days_of(self.span, self.label)
        if days is None:
            return [0, 0]  # no such period: it has no rows
        first, last = days
        return [(first - _EPOCH).days, (last - _EPOCH).days + 1]

    @property
    def _seconds(self) -> list[int]:
        """The same as times of its own zone, in seconds since 1970."""
        return [day * _DAY for day in self._days]

    @property
    def _instants(self) -> list[int]:
        """The same as instants, in seconds since 1970 in UTC."""
        zone, instants = zoneinfo.ZoneInfo(self.timezone), list[int]()
        for day in self._days:
            try:
                date = _EPOCH + datetime.timedelta(day)
                begins = datetime.datetime.combine(date, datetime.time(), zone)
                instants.append(round(begins.timestamp()))
            except OverflowError:  # the end of the year 9999
                instants.append(day * _DAY)
        return instants

    def _of_text(self, text: pa.Array) -> NDArray[np.float64]:
        short = pc.less_equal(pc.binary_length(text), _LONGEST)
        text = pc.ascii_trim_whitespace(pc.if_else(short, text, None))
        if self.span == "year":  # a number, which some programs write as a double
            text = pc.replace_substring_regex(text, r"^([0-9]{4})\.0*$", r"\1")
        is_label = _filled(pc.match_substring_regex(text, f"^(?:{LABEL_PATTERNS[self.span]})$"))
        parts = pc.extract_regex(text, pattern=_ISO)
        year, month, day = (_numbers(parts, name) for name in ("year", "month", "day"))
        months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
        first = months.astype("datetime64[D]").astype(np.int64)
        length = (months + 1).astype("datetime64[D]").astype(np.int64) - first
        exists = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= length)
        hour, minute, second = (_numbers(parts, name) for name in ("hour", "minute", "second"))
        time = _DAY * (first + day - 1) + 3600 * hour + 60 * minute + second
        sign, hours = (pc.fill_null(pc.struct_field(parts, name), "") for name in ("sign", "hours"))
        has_sign = pc.is_in(sign, value_set=pa.array(["+", "-"], pa.large_string()))
        exists &= _filled(pc.equal(has_sign, pc.not_equal(hours, "")))  # not Z01:00, nor a bare +
        is_instant = _filled(pc.not_equal(sign, ""))
        size = 3600 * _numbers(parts, "hours") + 60 * _numbers(parts, "minutes")
        offset = np.where(_filled(pc.equal(sign, "-")), -size, size)
        time -= offset
        codes = np.where(is_instant, _steps(time, self._instants), _steps(time, self._seconds))
        codes[~exists] = 0.0
        for label, number in self._labels.items():
            codes[_filled(pc.equal(text, label))] = number
        return np.where(exists | is_label, codes, np.nan)

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


def _codes(numbers: pa.Array, starts: Sequence[int]) -> NDArray[np.float64]:
    """The number of the step that has a whole number, 0 if none has it, NaN where missing."""
    numbers = numbers.cast(pa.int64())
    present = pc.is_valid(numbers).to_numpy(zero_copy_only=False)
    codes = _steps(pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False), starts)
    return np.where(present, codes, np.nan)


def _steps(numbers: NDArray[np.int64], starts: Sequence[int]) -> NDArray[np.float64]:
    """The same for an array; step k has the numbers in [starts[k - 1], starts[k])."""
    edges = np.array([max(_LEAST, min(_MOST, each)) for each in starts], np.int64)
    codes = np.searchsorted(edges, numbers, side="right")
    codes[codes == edges.size] = 0
    return codes.astype(np.float64)


def _filled(answers: pa.Array) -> NDArray[np.bool_]:
    """Answers as an array; missing ones are False."""
    mask: NDArray[np.bool_] = pc.fill_null(answers, False).to_numpy(zero_copy_only=False)
    return mask


def _numbers(parts: pa.Array, name: str) -> NDArray[np.int64]:
    """The digits of a group as numbers; 0 where there are none."""
    digits = pc.fill_null(pc.struct_field(parts, name), "")
    numbers: NDArray[np.int64] = (
        pc.if_else(pc.equal(digits, ""), "0", digits).cast(pa.int64()).to_numpy()
    )
    return numbers
