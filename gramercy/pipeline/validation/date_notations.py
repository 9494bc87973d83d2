"""Cells that look like dates in another notation than the contract states.

Every notation that a contract can state is tried by the code that reads a release, so the line that
is proposed reads these cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gramercy.schemas.cells import EPOCH, DayCells
from gramercy.schemas.notation import NumberNotation
from gramercy.tables.formats.dates import filled
from gramercy.tables.formats.values import coding_of

Mask = NDArray[np.bool_]

DAY_FIRST, MONTH_FIRST = ("day", "month", "year"), ("month", "day", "year")
_ORDERED = [
    mark.join(order)
    for order in (DAY_FIRST, MONTH_FIRST, ("year", "month", "day"))
    for mark in (".", "/", "-", " ", "")
]
_EXCEL = "days since 1899-12-30"
# Numbers that count from a day, with the years in which they are likely to be.
_COUNTED = {
    _EXCEL: (1927, 2100),
    "seconds since 1970-01-01": (1974, 2100),
    "milliseconds since 1970-01-01": (1974, 2100),
}
_MOST, _MOSTLY = 2000, 0.9
_SHORT_YEAR = re.compile(r"\s*\d\d?([./ -])(\d\d?|[^\W\d_]{3,9})\1\d\d\s*")


@dataclass(frozen=True, repr=False)
class WrittenDates:
    """How cells seem to be written. Private."""

    dates: str | None  # what the contract's source states as `dates`; None if nothing
    other: str = ""  # another notation that reads them as well, as other days


def likely_dates(cells: pa.Array, declared: str | None, *, counted: bool) -> WrittenDates | None:
    """The notation that reads nearly all of some texts, and more of them than the declared one.

    Parameters
    ----------
    counted
        Whether they may be numbers that count days or seconds.
    """
    texts = _some(cells)
    if not len(texts):
        return None
    best, most = None, _read(texts, declared).sum()
    fitting = dict[str, int]()
    for dates in _ORDERED:
        if (read := int(_read(texts, dates).sum())) >= max(_MOSTLY * len(texts), most + 1):
            fitting[dates] = read
            best = dates if best is None or read > fitting[best] else best
    if best is None and counted:
        best = next((x for x in _COUNTED if _is_counted(texts, x, most)), None)
        other = "days since 1970-01-01" if best == _EXCEL else ""
        return None if best is None else WrittenDates(best, other)
    if best is None:
        return None
    swapped = next(_swapped(best), "")
    return WrittenDates(best, swapped if fitting.get(swapped) == fitting[best] else "")


def are_iso(cells: pa.Array) -> bool:
    """Whether nearly all texts are dates that every contract reads."""
    texts = _some(cells)
    return bool(len(texts)) and bool(_read(texts, None).mean() > _MOSTLY)


def has_short_years(cells: pa.Array) -> bool:
    """Whether most texts look like dates whose year has two digits."""
    texts = _some(cells).to_pylist()
    return sum(_SHORT_YEAR.fullmatch(each) is not None for each in texts) > len(texts) / 2


def _swapped(dates: str) -> Iterator[str]:
    for first, second in ((DAY_FIRST, MONTH_FIRST), (MONTH_FIRST, DAY_FIRST)):
        for mark in (".", "/", "-", " ", ""):
            if dates == mark.join(first):
                yield mark.join(second)


def _some(cells: pa.Array) -> pa.Array:
    """Some of the texts, at equal distances."""
    texts = cells.drop_null()
    return texts.take(pa.array(np.arange(0, len(texts), max(1, len(texts) // _MOST))))


def _days(texts: pa.Array, dates: str | None) -> NDArray[np.float64]:
    return coding_of(DayCells(), NumberNotation(dates=dates)).floats(texts)


def _read(texts: pa.Array, dates: str | None) -> Mask:
    read: Mask = ~np.isnan(_days(texts, dates))
    return read


def _is_counted(texts: pa.Array, dates: str, most: int) -> bool:
    first, last = (
        (np.datetime64(f"{year}-01-01") - np.datetime64(EPOCH)) for year in _COUNTED[dates]
    )
    are_iso = filled(pc.match_substring(texts, "-"))
    days = np.where(are_iso, np.nan, _days(texts, dates))
    likely = (days >= first.astype(int)) & (days < last.astype(int))
    return bool(likely.sum() >= max(_MOSTLY * len(texts), most + 1))
