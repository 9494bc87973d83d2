"""Which rows belong to a period of the data, decided by the date in each row alone.

Every row belongs to at most one period of a data set, independently of all other rows, so that the
releases of several periods compose in parallel. A cell that is not a date belongs to no period.

Dates are those of Arrow; times with a zone, which are instants; times without one, which are read
as times of the declared zone; and text in ISO 8601, with or without time and offset from UTC. Text
may also be the label of the period itself, and a whole number may be a year, also as 2026.0.
"""

from __future__ import annotations

import datetime
import zoneinfo
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gramercy.schemas.contract import Contract
from gramercy.schemas.periods import LABEL_PATTERNS, SelectedPeriod, Span, days_of
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

    # span, label: the period
    span: Span
    label: str
    timezone: str  # the zone in which its days begin

    @classmethod
    def of(cls, contract: Contract) -> tuple[str, PeriodFilter] | None:
        """The column of dates and its filter; None if all rows of the source belong together."""
        if contract.period is None:
            return None
        if not isinstance(contract.period, SelectedPeriod):  # it would mix rows of all periods
            raise ValueError
        chosen = contract.period
        return chosen.column, cls(chosen.span, chosen.label, chosen.timezone)

    def indices(self, column: pa.Array) -> NDArray[np.float64]:
        """1 where a cell is a date in the period, 0 where it is another date, else NaN.

        Each cell is read by itself, and no cell raises an error. Shape (rows,).
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
            start, end = self._instants if has_zone else self._seconds
            return _codes(column.cast(pa.int64()), (unit * start, unit * end))
        if self.span == "year" and any(is_number(kind) for is_number in _IS_NUMBER):
            years = pc.fill_null(column.cast(pa.float64(), safe=False), np.nan).to_numpy()
            return np.where(np.isnan(years), np.nan, years == float(self.label))
        return np.full(len(column), np.nan)

    @property
    def _days(self) -> tuple[int, int]:
        """The first day, and the first day after the period; in days since 1970."""
        days = days_of(self.span, self.label)
        if days is None:
            return 0, 0  # no such period: it has no rows
        first, last = days
        return (first - _EPOCH).days, (last - _EPOCH).days + 1

    @property
    def _seconds(self) -> tuple[int, int]:
        """Its start and end as times of its own zone, in seconds since 1970."""
        start, end = self._days
        return start * _DAY, end * _DAY

    @property
    def _instants(self) -> tuple[int, int]:
        """Its start and end as instants, in seconds since 1970 in UTC."""
        zone, instants = zoneinfo.ZoneInfo(self.timezone), list[int]()
        for day in self._days:
            try:
                date = _EPOCH + datetime.timedelta(day)
                begins = datetime.datetime.combine(date, datetime.time(), zone)
                instants.append(round(begins.timestamp()))
            except OverflowError:  # the end of the year 9999
                instants.append(day * _DAY)
        return instants[0], instants[1]

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
        start, end = np.where(is_instant[:, None], self._instants, self._seconds).T
        within = exists & (time - offset >= start) & (time - offset < end)
        within |= _filled(pc.equal(text, self.label))
        return np.where(exists | is_label, within.astype(np.float64), np.nan)


def _codes(numbers: pa.Array, interval: tuple[int, int]) -> NDArray[np.float64]:
    """1 where a whole number is in the interval [start, end), 0 where not, NaN where missing."""
    numbers = numbers.cast(pa.int64())
    start, end = (pa.scalar(max(_LEAST, min(_MOST, each)), pa.int64()) for each in interval)
    within = pc.and_(pc.greater_equal(numbers, start), pc.less(numbers, end))
    codes = pc.fill_null(within.cast(pa.uint8()).cast(pa.float64()), np.nan)
    array: NDArray[np.float64] = codes.to_numpy(zero_copy_only=False)
    return array


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
