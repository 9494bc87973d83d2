"""Codes of missing values among numbers: repeated, and far from all other numbers.

A number that is repeated is not a code by itself: incomes are coded at a top, money is zero, and
answers are on a scale. A code is behind a gap, which must be wide if the number does not look like
a code. Zero is never taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_LEAST_CELLS, _LEAST_REPEATS, _LEAST_SHARE = 30, 3, 3e-4
_MOST_CODES = 6  # next to each other, such as 97, 98 and 99
# The width of the gap, relative to the range of all other numbers.
_ANY_NUMBER, _CODE = 3.0, 0.5
# Of scales of few whole numbers, of a code that is the only negative number, and of others.
_SCALE, _SCALE_GAP, _OTHERS_RANGE, _FEWEST = 20, 3, 20, 5
# Of a code of many nines that is not the largest number.
_INSIDE, _TIMES_OTHERS = 9999, 10
_NINES = re.compile(r"9+[6-9]?|[6-9]|([678])\1+")
_LIMITS = {2**31 - 1, 2**31, 2**15 - 1, 2**15, 2**16 - 1, 2**32 - 1, 2**63, 2**63 - 1, 2**53}
_HUGE = 1e15


@dataclass(frozen=True, repr=False)
class Sentinel:
    """A number that seems to stand for missing values. Private."""

    value: float
    cells: int  # with this number


def sentinels(numbers: Array, bounds: tuple[float, float] | None = None) -> list[Sentinel]:
    """The codes of missing values among the finite numbers of a column.

    Parameters
    ----------
    bounds
        The declared bounds, outside of which less evidence is needed.
    """
    finite = numbers[np.isfinite(numbers)]
    if finite.size < _LEAST_CELLS:
        return []
    values, counts = np.unique(finite, return_counts=True)
    least = max(_LEAST_REPEATS, _LEAST_SHARE * finite.size)
    found = dict[float, int]()
    for _ in range(2):  # a code at one end widens the range for the other end
        for outwards in (1, -1):
            number = _at_end(values[::-outwards], counts[::-outwards], least, bounds)
            ended = slice(number, None) if outwards < 0 else slice(None, len(values) - number)
            codes = slice(None, number) if outwards < 0 else slice(len(values) - number, None)
            found |= dict(zip(values[codes].tolist(), counts[codes].tolist(), strict=True))
            values, counts = values[ended], counts[ended]
    found |= dict(_inside(values, counts, least))
    return [Sentinel(value, cells) for value, cells in sorted(found.items())]


def is_code(value: float) -> bool:
    """Whether a number looks like a code: of nines, of one digit from 6, or a limit of a type."""
    if abs(value) in _LIMITS or abs(value) >= _HUGE:
        return True
    digits = format(abs(value), ".10g").replace(".", "")
    is_small = value < 0 and value == int(value) and abs(value) <= 9
    return is_small or _NINES.fullmatch(digits) is not None


def _at_end(
    values: Array, counts: NDArray[np.int64], least: float, bounds: tuple[float, float] | None
) -> int:
    """How many of the first values are codes; they are given from outside to inside."""
    for number in range(min(_MOST_CODES, len(values) - 2), 0, -1):
        codes, others = values[:number], values[number:]
        if (
            counts[:number].min() < least
            or 0.0 in codes
            or 2 * counts[number:].sum() < counts.sum()
        ):
            continue
        if _stand_apart(codes, others, bounds):
            return number
    return 0


def _stand_apart(codes: Array, others: Array, bounds: tuple[float, float] | None) -> bool:
    gap, width = abs(codes[-1] - others[0]), abs(others[-1] - others[0])
    look_so = all(map(is_code, codes.tolist()))
    whole = bool((others == np.round(others)).all())
    if whole and len(others) <= _SCALE:
        widest = np.abs(np.diff(others)).max()
        return bool(len(others) > 2 and look_so and gap >= _SCALE_GAP * widest)
    if len(others) < _FEWEST:
        return False
    if bounds is not None and _beyond(codes, others, bounds):
        return True
    if not look_so:
        return len(codes) == 1 and bool(gap > _ANY_NUMBER * width)
    if gap >= _CODE * width:
        return True
    # The only negative numbers are codes.
    only_negative = codes.max() < 0 <= others.min()
    return bool(only_negative and (codes == np.round(codes)).all() and width >= _OTHERS_RANGE)


def _beyond(codes: Array, others: Array, bounds: tuple[float, float]) -> bool:
    """Whether codes are far outside of bounds that all other numbers are within."""
    lower, upper = bounds
    half = (upper - lower) / 2
    outside = bool((codes > upper + half).all() or (codes < lower - half).all())
    return outside and bool(((others >= lower) & (others <= upper)).mean() > 0.95)


def _inside(values: Array, counts: NDArray[np.int64], least: float) -> Iterator[tuple[float, int]]:
    """Codes of many nines among a long tail: far more often than all numbers of their size."""
    total = counts.sum()
    for k in np.flatnonzero((counts >= 2 * least) & (np.abs(values) >= _INSIDE)):
        value = float(values[k])
        if set(format(abs(value), ".15g")) != {"9"} or np.cumsum(counts)[k] < 0.9 * total:
            continue
        alike = (np.abs(values) > abs(value) / 10) & (np.arange(len(values)) != k)
        if counts[k] > _TIMES_OTHERS * counts[alike].max(initial=1):
            yield value, int(counts[k])


def two_units(numbers: Array) -> tuple[float, float] | None:
    """A factor between two sharp groups of positive numbers, and the share of the smaller group."""
    positive = np.sort(numbers[np.isfinite(numbers) & (numbers > 0)])
    if positive.size < 100 or positive.size < 0.95 * np.isfinite(numbers).sum():
        return None
    logs = np.log10(positive)
    cut = int(np.argmax(np.diff(logs))) + 1
    low, high = logs[:cut], logs[cut:]
    share = min(low.size, high.size) / logs.size
    if (
        share < 0.03
        or high[0] - low[-1] < 1.0
        or min(len(np.unique(low)), len(np.unique(high))) < 10
    ):
        return None
    shift = float(np.median(high) - np.median(low))
    factor = min(_FACTORS, key=lambda each: abs(shift - np.log10(each)))
    alike = 0.5 < (low.std() + 1e-9) / (high.std() + 1e-9) < 2
    sharp = max(low.std(), high.std()) < 0.4 and abs(shift - np.log10(factor)) < 0.1
    return (factor, share) if alike and sharp else None


_FACTORS: Sequence[float] = (100.0, 1000.0, 10_000.0, 1e6)
