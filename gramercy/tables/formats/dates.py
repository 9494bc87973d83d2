"""Dates and times in text, and as Arrow stores them; each cell by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gramercy.schemas.cells import EPOCH, DateNotation

DAY = 86_400  # seconds
LONGEST = 64  # bytes of a cell that can be a date, blanks included
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TIME = (
    r"(?:[T ](?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9])"
    r"(?:[.,][0-9]+)?)?"
    r" ?(?:(?P<sign>[Z+-])(?:(?P<hours>[01][0-9]|2[0-3])(?::?(?P<minutes>[0-5][0-9]))?)?)?)?$"
)

_ISO = r"^(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})" + _TIME
_COUNT = r"^[+-]?[0-9]{1,15}(?:\.[0-9]*)?$"
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
_MOST_DAYS = 4_000_000  # from 1970: more than the calendar has


@dataclass(frozen=True)
class Times:
    """The times that texts state; arrays of shape (cells,)."""

    exist: NDArray[np.bool_]  # whether a cell is a date or a time
    # Seconds since 1970 in UTC where a cell states its offset, otherwise in its own zone; arbitrary
    # where there is no time.
    seconds: NDArray[np.int64]
    are_instants: NDArray[np.bool_]  # whether a cell states its offset


def short_texts(text: pa.Array) -> pa.Array:
    """The texts without blanks around them; null where one is too long for a date."""
    short = pc.less_equal(pc.binary_length(text), LONGEST)
    return pc.ascii_trim_whitespace(pc.if_else(short, text, None))


def times_of(text: pa.Array, notation: DateNotation | None = None) -> Times:
    """Read texts such as ``2026-11-23`` and ``2026-11-23T10:30:00+01:00``, of `short_texts`.

    Parameters
    ----------
    notation
        Another way in which dates may be written.
    """
    found = _parsed(text, _ISO)
    if notation is None or found.exist.all():
        return found
    other = _parsed(text, _pattern(notation)) if notation.order else _counted(text, notation)
    return Times(
        found.exist | other.exist,
        np.where(found.exist, found.seconds, other.seconds),
        np.where(found.exist, found.are_instants, other.are_instants),
    )


def _pattern(notation: DateNotation) -> str:
    """Of dates in an order; without a mark, each part has all its digits."""
    few = "{1,2}" if notation.mark else "{2}"
    names = "|".join(f"{name[:3]}(?:{name[3:]})?" if name[3:] else name for name in _MONTHS)
    parts = {
        "day": f"(?P<day>[0-9]{few})",
        "month": f"(?P<month>[0-9]{few}|(?i:sept|{names}))",
        "year": "(?P<year>[0-9]{4})",
    }
    return "^" + re.escape(notation.mark).join(parts[part] for part in notation.order) + _TIME


def _counted(text: pa.Array, notation: DateNotation) -> Times:
    """Numbers that count from a day."""
    is_count = filled(pc.match_substring_regex(text, _COUNT))
    plain = pc.replace_substring_regex(text, r"^\+", "")
    numbers = pc.if_else(pa.array(is_count), plain, "0").cast(pa.float64()).to_numpy()
    days = np.floor(numbers / notation.a_day) + (notation.since - EPOCH).days
    exist = is_count & (np.abs(days) <= _MOST_DAYS)
    seconds = DAY * np.where(exist, days, 0.0).astype(np.int64)
    seconds += np.where(exist, numbers % notation.a_day * (DAY / notation.a_day), 0).astype(
        np.int64
    )
    return Times(exist, seconds, np.full(len(text), notation.a_day > 1))


def _parsed(text: pa.Array, pattern: str) -> Times:
    """Texts in which a pattern finds the parts of a date and a time."""
    parts = pc.extract_regex(text, pattern=pattern)
    year, month, day = (_numbers(parts, name) for name in ("year", "month", "day"))
    months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
    first = months.astype("datetime64[D]").astype(np.int64)
    length = (months + 1).astype("datetime64[D]").astype(np.int64) - first
    exist = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= length)
    hour, minute, second = (_numbers(parts, name) for name in ("hour", "minute", "second"))
    time = DAY * (first + day - 1) + 3600 * hour + 60 * minute + second
    sign, hours = (pc.fill_null(pc.struct_field(parts, name), "") for name in ("sign", "hours"))
    has_sign = pc.is_in(sign, value_set=pa.array(["+", "-"], pa.large_string()))
    exist &= filled(pc.equal(has_sign, pc.not_equal(hours, "")))  # not Z01:00, nor a bare +
    size = 3600 * _numbers(parts, "hours") + 60 * _numbers(parts, "minutes")
    offset = np.where(filled(pc.equal(sign, "-")), -size, size)
    return Times(exist, time - offset, filled(pc.not_equal(sign, "")))


def is_stored_date(kind: pa.DataType) -> bool:
    """Whether Arrow stores cells of a type as whole numbers of a unit since 1970."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def units_a_day(kind: pa.DataType) -> int:
    """How many units of the stored numbers a day has."""
    if pa.types.is_date32(kind):
        return 1
    return DAY * _UNITS[kind.unit if pa.types.is_timestamp(kind) else "ms"]


def stored_numbers(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The whole numbers that Arrow stores for dates or times, and where there is one."""
    width = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
    numbers = column.cast(width).cast(pa.int64())
    present = pc.is_valid(numbers).to_numpy(zero_copy_only=False)
    return pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False), present


def filled(answers: pa.Array) -> NDArray[np.bool_]:
    """Answers as an array; missing ones are False."""
    mask: NDArray[np.bool_] = pc.fill_null(answers, False).to_numpy(zero_copy_only=False)
    return mask


def _numbers(parts: pa.Array, name: str) -> NDArray[np.int64]:
    """The digits of a group as numbers; 0 where there are none."""
    digits = pc.fill_null(pc.struct_field(parts, name), "")
    if name == "month" and pc.any(pc.utf8_is_alpha(digits)).as_py():
        begins = pc.utf8_slice_codeunits(pc.ascii_lower(digits), 0, 3)
        known = pc.index_in(begins, value_set=pa.array([x[:3] for x in _MONTHS], begins.type))
        number = pc.add(known, 1).cast(digits.type)
        digits = pc.if_else(pc.is_valid(known), number, digits)
    numbers: NDArray[np.int64] = (
        pc.if_else(pc.equal(digits, ""), "0", digits).cast(pa.int64()).to_numpy()
    )
    return numbers
