"""What cells beyond the bounds to which they are clamped add to the moments of their columns.

Such cells are too few to stand out of the noise of a histogram, and may have most of a variance:
one in a hundred thousand cells is enough. So a column's histogram is continued: outwards from where
its tail stands out, the logarithm of the density is a parabola of the logarithm of the distance
from the centre, as of Pareto, lognormal and shorter tails. The parabolas are weighted by their
likelihood given all counts, those that are mostly noise as well; so the answer is an estimate with
an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.evidence import Evidence, Histogram
from gramercy.schemas.facts import ColumnFacts

Array = NDArray[np.float64]

_CLEAR = 5.0  # standard deviations by which the start of a tail stands out
_LEAST_BINS = 3
_MOST = 0.975  # probability of an upper bound
# Parabolas: change of the binary logarithm of the density by octave of distance, and its change.
_SLOPES = np.arange(-8.0, 1.1, 0.5)[:, None, None]
_CURVATURES = np.arange(0.0, 3.3, 0.2)[None, :, None]


@dataclass(frozen=True)
class ColumnTails:
    """What is beyond the clamps, in scaled units about the centres; arrays of shape (p,)."""

    mean: Array  # expected change of the mean
    mean_most: Array  # bound of the change
    square: Array  # expected change of the second moment
    square_most: Array  # upper bound of the change

    @classmethod
    def of(cls, evidence: Evidence) -> ColumnTails:
        """The tails of all columns but the intercept; zero where no histogram shows any."""
        marginals = {each.column: each for each in evidence.marginals}
        moments = np.zeros((len(evidence.columns) - 1, 4))
        for row, column in zip(moments, evidence.columns[1:], strict=True):
            if not isinstance(column, ColumnFacts) or column.name in evidence.signs:
                continue
            if column.name in marginals:
                row[:] = _both_sides(marginals[column.name], column)
        return cls(*moments.T)


def _both_sides(marginal: Histogram, column: ColumnFacts) -> Sequence[float]:
    """The four moments of one column: see `ColumnTails`."""
    counts = marginal.count[:-1].astype(np.float64)
    cells = max(float(counts.sum()), 1.0)
    ends = [(each[:-1] - column.centre) / column.scale for each in (marginal.lower, marginal.upper)]
    clamp = (column.upper - column.centre) / column.scale
    above = _beyond(counts / cells, *ends, clamp, marginal.sd / cells)
    low, high = (-each[::-1] for each in reversed(ends))
    clamp = (column.centre - column.lower) / column.scale
    below = _beyond(counts[::-1] / cells, low, high, clamp, marginal.sd / cells)
    return (
        above[0] - below[0],
        max(above[1], below[1]),
        above[2] + below[2],
        above[3] + below[3],
    )


def _beyond(
    shares: Array, low: Array, high: Array, clamp: float, sd: float
) -> tuple[float, float, float, float]:
    """What is beyond a clamp on one side: of the mean distance, and of the mean squared one.

    `low`, `high`: distances of the bins' ends from the centre, from inside to outside. Returns
    the expected value and the upper bound of both.
    """
    outside = low > 0
    shares, low, high = shares[outside], low[outside], high[outside]
    sums = np.cumsum(shares[::-1])[::-1]
    clear = sums >= _CLEAR * sd * np.sqrt(np.arange(len(sums), 0, -1))
    first = int(np.flatnonzero(clear)[-1]) if clear.any() else 0
    first = max(min(first, len(sums) - _LEAST_BINS), 0)
    shares, low, high = shares[first:], low[first:], high[first:]
    if len(shares) < _LEAST_BINS or high[-1] <= clamp:
        return 0.0, 0.0, 0.0, 0.0
    start, width = np.log2(low), np.log2(high / low)
    place = start + width / 2 - start[0]
    shapes = width * np.exp2(_SLOPES * place - _CURVATURES * place**2)
    shapes = shapes.reshape(-1, len(shares))
    tails = np.maximum(shapes @ shares / (shapes**2).sum(axis=1), 0.0)[:, None] * shapes
    distances = ((shares - tails) ** 2).sum(axis=1) / sd**2
    spread = max(1.0, float(distances.min()) / len(shares))  # if no parabola fits
    likelihood = np.exp((distances.min() - distances) / (2 * spread))
    likelihood /= likelihood.sum()

    # The logarithm of a distance is uniform in its bin.
    inner = np.clip(clamp, low, high)
    logarithm = np.log(high / low)
    share = np.log(high / inner)
    distance = (high - inner - share * clamp) / logarithm
    square = ((high**2 - inner**2) / 2 - share * clamp**2) / logarithm
    sums = tails @ np.maximum(distance, 0.0)
    squares = tails @ np.maximum(square, 0.0)
    # The mean of the logarithm of the variance, which is about one in scaled units.
    expected = math.expm1(float(likelihood @ np.log1p(squares)))
    return (
        float(likelihood @ sums),
        _quantile(sums, likelihood),
        expected,
        _quantile(squares, likelihood),
    )


def _quantile(values: Array, weights: Array) -> float:
    """The upper bound of a value of which each of `values` has its weight."""
    order = np.argsort(values)
    place = int(np.searchsorted(np.cumsum(weights[order]), _MOST))
    return float(values[order[min(place, len(order) - 1)]])
