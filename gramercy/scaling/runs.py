"""Runs of neighbouring bins of a noisy histogram: which one has nearly all cells of a column."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_COVERED = 0.999
_PENALTY = 2.0
_CHANCE = 16.0  # squared standard deviations that the best of some 10,000 runs reaches by chance
_USUAL_WIDTH, _SURPRISE = 16.0, 3.0
_WIDTH_WEIGHT, _SIZE_WEIGHT = 0.3, 0.2


@dataclass(frozen=True)
class NoisyHistogram:
    """A noisy histogram of a column.

    Parameters
    ----------
    counts
        Noisy counts of cells with a value, shifted so that their sum, together with that of the
        missing cells, is the number of rows; shape (bins - 1,).
    edges
        Edges of their bins, shape (bins,).
    sd
        Standard deviation of the noise of a count.
    mass
        Number of cells with a value.
    """

    counts: Array
    edges: Array
    sd: float
    mass: float

    @property
    def half_edges(self) -> Array:
        """Half of each edge: the differences of edges may exceed the largest float."""
        return self.edges / 2

    @property
    def sums(self) -> Array:
        """Sum of the counts before every edge."""
        return np.concatenate([[0.0], np.cumsum(self.counts)])

    @property
    def run_masses(self) -> Array:
        """Noisy mass of the run from edge i to edge j, shape (bins, bins)."""
        sums = self.sums
        masses: Array = sums[None, :] - sums[:, None]
        return masses

    @property
    def run_bins(self) -> Array:
        """Number of bins of the run from edge i to edge j; not positive if there is none."""
        index = np.arange(len(self.edges), dtype=np.float64)
        bins: Array = index[None, :] - index[:, None]
        return bins

    def variance(self, bins: Array) -> Array:
        """Variance of the mass of a run of so many bins; the sum of all counts is known."""
        known = bins * (1 - bins / len(self.edges))
        return np.maximum(known, 0.5) * (self.sd * self.sd)


def best_run(histogram: NoisyHistogram, expected: float | None) -> tuple[int, int]:
    """First and last edge of the run of bins that is short and leaves little out.

    Parameters
    ----------
    histogram
        The noisy histogram.
    expected
        Scale from an earlier histogram, with independent noise.

    Notes
    -----
    Among all runs, that with the least ``log2 W + 2 z^2 + 2 max(0, t^2 - 16) + 3 max(0, log2(W /
    (16 s)))`` is chosen: W is its width, z what its mass lacks of 99.9 % of the column's cells, in
    standard deviations of the noise, t the same for the most conspicuous run outside of it, and s
    the expected scale. z finds tails that are spread over many bins, t a few distant bins; the last
    term asks for more evidence where the earlier histogram did not show a tail.
    """
    masses, halves = histogram.run_masses, histogram.half_edges
    runs = histogram.run_bins > 0
    bins = np.maximum(histogram.run_bins, 1.0)
    lost = np.maximum(_COVERED * histogram.mass - masses, 0.0)
    half_width = np.where(runs, halves[None, :] - halves[:, None], 1.0)
    objective = binary_logarithm(half_width) + _PENALTY * lost * lost / histogram.variance(bins)
    spare = (1 - _COVERED) * histogram.mass
    found = np.where(runs, np.maximum(masses - spare, 0.0), 0.0)
    found = found * found / (bins * (histogram.sd * histogram.sd))
    before = np.maximum.accumulate(found.max(axis=0))
    after = np.maximum.accumulate(found.max(axis=1)[::-1])[::-1]
    outside = np.maximum(before[:, None], after[None, :])
    objective += _PENALTY * np.maximum(outside - _CHANCE, 0.0)
    if expected is not None:
        longer = binary_logarithm(half_width / (_USUAL_WIDTH * expected / 2))
        objective += _SURPRISE * np.maximum(longer, 0.0)
    best = int(np.argmin(np.where(runs, objective, np.inf)))
    return best // len(halves), best % len(halves)


def size_of_rare_values(histogram: NoisyHistogram, first: int, last: int, usual: float) -> float:
    """The size of the rare cells of a column that are outside of a run.

    Parameters
    ----------
    histogram
        The noisy histogram.
    first, last
        Edges of the run, which includes zero.
    usual
        A size that is likely before the counts are known.

    Notes
    -----
    The most conspicuous other run, where wider runs are preferred a little, because a chance
    maximum is more often a single bin, and sizes near the usual one. A size that is too small is
    the lesser evil: cells are clamped, and the column says which rows have a value other than zero.
    If it is too large, nothing is left of the column.
    """
    index = np.arange(len(histogram.edges))
    bins = histogram.run_bins
    outside = (bins > 0) & ((index[None, :] <= first) | (index[:, None] >= last))
    bins = np.maximum(bins, 1.0)
    distance = np.abs(histogram.edges)
    size = np.maximum(distance[None, :], distance[:, None])
    evidence = histogram.run_masses / np.sqrt(histogram.variance(bins))
    evidence += _WIDTH_WEIGHT * binary_logarithm(bins)
    ratio = np.maximum(size / usual, 1e-300)
    evidence -= _SIZE_WEIGHT * np.abs(binary_logarithm(ratio))
    best = int(np.argmax(np.where(outside, evidence, -np.inf)))
    return float(size[best // len(index), best % len(index)])


def binary_logarithm(values: Array) -> Array:
    """Base-two logarithm to about 1e-7 by basic operations only: equal on every machine."""
    mantissas, exponents = np.frexp(values)
    root = math.sqrt(0.5)
    ratio = (mantissas - root) / (mantissas + root)
    square = ratio * ratio
    series = ratio * (1 + square * (1 / 3 + square * (1 / 5 + square * (1 / 7 + square / 9))))
    result: Array = exponents - 0.5 + series * (2 / math.log(2))
    return result
