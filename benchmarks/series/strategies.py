"""Ways to publish a growing table every week, and the exact noise of what each of them tells.

A way is a matrix: one row for each published sum, one column for each week, with the weight of the
week's rows in that sum. Every sum gets fresh noise of one scale, and a row of the table is in the
sums of one column. So the guarantee of the year is that of one release with the noise divided by
the largest norm of a column: at the same guarantee, that norm is the scale of the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from benchmarks.arrays import Array
from gramercy.common.prefix_sums import UNIT, PrefixSums

WEEKS, LAST = 52, 13
CUMULATIVE = "cumulative"


def _weeks(steps: int) -> Array:
    return np.eye(steps)


def _whole(steps: int) -> Array:
    return np.tril(np.ones((steps, steps)))


def _tree(steps: int) -> Array:
    """Sums of 1, 2, 4 ... weeks that do not overlap, published when their last week is complete.

    Source: Chan, Shi and Song (2011); sums are combined as by Honaker (2015).
    """
    sums = []
    width = 1
    while width <= steps:
        for first in range(0, steps - width + 1, width):
            row = np.zeros(steps)
            row[first : first + width] = 1
            sums.append(row)
        width *= 2
    return np.array(sums)


def _cumulative(steps: int) -> Array:
    weights: Array = PrefixSums(steps).weights / UNIT
    return weights


STRATEGIES: MappingProxyType[str, Callable[[int], Array]] = MappingProxyType(
    {"whole": _whole, "weeks": _weeks, "tree": _tree, CUMULATIVE: _cumulative}
)


def norm(sums: Array) -> float:
    """The scale of the noise of every sum, relative to one release with the same guarantee."""
    return float(np.linalg.norm(sums, axis=0).max())


def combination(sums: Array, wanted: Array, week: int) -> Array:
    """The weights of the published sums in the best unbiased estimate, in a week from 1.

    Parameters
    ----------
    wanted
        The weight of each week's rows in the total that is estimated.
    week
        Only sums of weeks until this one are published.
    """
    published = ~sums[:, week:].any(axis=1)
    weights = np.zeros(len(sums))
    weights[published] = np.linalg.pinv(sums[published].T) @ wanted
    return weights


def windows(steps: int, width: int | None = None) -> list[tuple[Array, int]]:
    """The last `width` weeks, or all so far, at every week that has as many."""
    least = 1 if width is None else width
    found = []
    for week in range(least, steps + 1):
        wanted = np.zeros(steps)
        wanted[0 if width is None else week - width : week] = 1
        found.append((wanted, week))
    return found


def noise(name: str, steps: int, width: int | None = None) -> Array:
    """Noise of the last `width` weeks, or of all so far, relative to one release; by week."""
    sums = STRATEGIES[name](steps)
    found = [combination(sums, *window) for window in windows(steps, width)]
    lengths: Array = np.linalg.norm(np.array(found), axis=1)
    return norm(sums) * lengths


def redrawn(weeks: int, week: int) -> float:
    """By how much of the charge of a series one more draw of a step lets it grow, in squared mu."""
    series = PrefixSums(weeks)
    draws = [1 + (each == week) for each in range(1, weeks + 1)]
    return series.squared_norm(draws) / series.squared_norm() - 1
