"""Columns that seem to have cells near or beyond the bounds to which they are clamped.

The bounds of private constants lie some scales from the centre. In the published histograms cells
are not clamped there, so that cells beyond them can be seen, if they are more than the noise hides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.histogram import Histogram

_WINDOWS = ((0.5, 1.0), (0.5, 2.0), (0.5, 4.0))  # distances from the centre, in those of a bound
_SEEN = 2.7  # standard deviations of the noise of a window
_ROUNDED = 0.01  # relative width of a bin by which a window may be larger


def clamped_columns(evidence: Evidence) -> tuple[str, ...]:
    """Names of numeric columns with more cells near or beyond a bound than noise gives.

    Cells far from the centre are few, unless the column has a long tail, which goes on beyond the
    bound. Its mean and standard deviation are then those of the clamped cells.

    Parameters
    ----------
    evidence
        A release with its histograms; without them, no column is named.
    """
    published = {each.column: each for each in evidence.marginals}
    return tuple(
        column.name
        for column in evidence.columns
        if isinstance(column, ColumnFacts)
        and column.name in published
        and max(_excesses(published[column.name], column), default=0.0) > _SEEN
    )


def _excesses(histogram: Histogram, column: ColumnFacts) -> Iterator[float]:
    """Counts in the windows on both sides, in standard deviations of their noise."""
    lower, upper = (each[:-1] - column.centre for each in (histogram.lower, histogram.upper))
    counts = histogram.count[:-1]
    sides = (
        (lower, upper, column.upper - column.centre),
        (-upper, -lower, column.centre - column.lower),
    )
    for near, far, bound in sides:
        if not (far > bound * (1 + _ROUNDED)).any():  # a bound of the contract: nothing is beyond
            continue
        for start, end in _WINDOWS:
            inside = near >= start * bound * (1 - _ROUNDED)
            inside &= far <= end * bound * (1 + _ROUNDED)
            if inside.any():
                yield float(counts[inside].sum()) / (histogram.sd * math.sqrt(inside.sum()))
