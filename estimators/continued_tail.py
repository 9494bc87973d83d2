"""The tail of a noisy histogram beyond the bins that exceed the noise.

A few rows or cells may have most of a second moment, and too few to exceed the noise of a
count. So a histogram is continued: outwards from where its tail is clear, the logarithm of the
density is a parabola of the logarithm of the distance, as of Pareto, lognormal and shorter tails.
The parabolas are weighted by their likelihood given all counts, those that are mostly noise as
well. So what is beyond has an estimate and an upper bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_CLEAR = 5.0  # standard deviations by which the start of a tail exceeds the noise
_LEAST_BINS = 3
_MOST = 0.975  # probability of an upper bound
# Parabolas: change of the binary logarithm of the density by octave of distance, and its change.
# The steepest, without a change, are for rows that all have nearly the same length.
_PARABOLAS = [
    *((slope, 0.0) for slope in (-64.0, -32.0, -16.0)),
    *product(np.arange(-8.0, 1.1, 0.5).tolist(), np.arange(0.0, 3.3, 0.2).tolist()),
]
_SLOPES, _CURVATURES = (np.array(each)[:, None] for each in zip(*_PARABOLAS, strict=True))


@dataclass(frozen=True)
class ContinuedTail:
    """Possible shares of rows or cells by bin, in the outer bins of a histogram."""

    shares: Array  # by parabola and bin, shape (parabolas, outer bins)
    likelihood: Array  # of the parabolas, of sum 1

    @classmethod
    def of(cls, shares: Array, low: Array, high: Array, sd: float) -> ContinuedTail | None:
        """The tail of noisy shares; None if there are fewer than three bins.

        `low`, `high`: positive distances of the bins' ends, from inside to outside, shape (bins,).
        `sd`: standard deviation of the noise of a share.
        """
        sums = np.cumsum(shares[::-1])[::-1]
        clear = sums >= _CLEAR * sd * np.sqrt(np.arange(len(sums), 0, -1))
        first = int(np.flatnonzero(clear)[-1]) if clear.any() else 0
        first = min(first, len(sums) - _LEAST_BINS)
        if first < 0:
            return None
        shares, low, high = shares[first:], low[first:], high[first:]
        start, width = np.log2(low), np.log2(high / low)
        place = start + width / 2
        place = place - place[0]
        shapes = width * np.exp2(_SLOPES * place - _CURVATURES * place**2)
        sizes = np.maximum(shapes @ shares / (shapes**2).sum(axis=1), 0.0)
        tails = sizes[:, None] * shapes
        distances = ((shares - tails) ** 2).sum(axis=1) / sd**2
        spread = max(1.0, float(distances.min()) / len(shares))  # if no parabola fits
        likelihood = np.exp((distances.min() - distances) / (2 * spread))
        return cls(tails, likelihood / likelihood.sum())

    def sums(self, values: Array) -> Array:
        """Sums of values by bin, each by the rows or cells in its bin; by parabola."""
        sums: Array = self.shares @ values[-self.shares.shape[1] :]
        return sums

    def ended(self, share: float) -> ContinuedTail:
        """The same without the bins beyond which a parabola has less than a share."""
        beyond = np.cumsum(self.shares[:, ::-1], axis=1)[:, ::-1]
        return replace(self, shares=np.where(beyond >= share, self.shares, 0.0))

    def expected(self, values: Array) -> float:
        """What is to be added to a variance of 1, so that its logarithm is right on average."""
        return math.expm1(float(self.likelihood @ np.log1p(self.sums(values))))

    def most(self, values: Array) -> float:
        """Upper bound of the sum of values."""
        sums = self.sums(values)
        order = np.argsort(sums)
        place = int(np.searchsorted(np.cumsum(self.likelihood[order]), _MOST))
        return float(sums[order[min(place, len(order) - 1)]])
