"""Estimates, standard errors and intervals of the entries of a matrix or a vector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bounds = tuple[Array, Array]
# Whose value an interval contains: that of a population of which the rows are a sample, or the
# table's own, without the sampling error.
Target = Literal["population", "table"]


@dataclass(frozen=True)
class Bias:
    """What is not known of the bias of estimates, below and above them."""

    shift: Bounds  # distances that the bias may have
    deviation: Bounds  # standard deviations of what it may have beyond

    @classmethod
    def none(cls, estimate: Array) -> Bias:
        """Of estimates without bias."""
        zero = np.zeros_like(estimate)
        return cls((zero, zero), (zero, zero))

    def of(self, change: Callable[[Array], Array]) -> Bias:
        """The same after a change of every array, such as of units."""
        (below, above), (less, more) = self.shift, self.deviation
        return Bias((change(below), change(above)), (change(less), change(more)))


@dataclass(frozen=True)
class Entries:
    """Estimates and errors of all entries; every array has shape (q, q)."""

    estimate: Array  # the entries
    # standard deviations of their errors, by sampling and by the noise of the release
    sampling_error: Array
    noise_error: Array
    estimable: NDArray[np.bool_]  # whether the entry can be estimated at all
    # lower and upper bounds, as a function of the confidence level and of whose value it is
    bounds: Callable[[float, Target], Bounds]
    # what the sampling errors assume about the rows: ``Gaussian rows``, or a jackknife
    law: str = "Gaussian rows"
    # what is not known of the bias of clipping; it is part of the bounds. None for no bias.
    unknown_bias: Bias | None = None
    # two-sided p-values of zero, as a function that computes them: the 1 - level at which intervals
    # for the population end at zero. None for entries that are not correlations.
    tail: Callable[[], Array] | None = None

    def interval(self, level: float, target: Target = "population") -> Bounds:
        """Lower and upper bounds at a confidence level."""
        return self.bounds(level, target)

    def error(self, target: Target) -> Array:
        """Standard deviation of the error: of a table itself that of the noise alone."""
        return self.standard_error if target == "population" else self.noise_error

    @property
    def bias(self) -> Bias:
        """What is not known of the bias of clipping."""
        return self.unknown_bias or Bias.none(self.estimate)

    @property
    def standard_error(self) -> Array:
        """Standard deviation of both errors together."""
        return np.hypot(self.sampling_error, self.noise_error)


def reach_of_matrix(matrix: Array, by_sampling: Array, by_noise: Array) -> Bounds:
    """Distances from entries to their bounds, from squared distances by sampling and by noise.

    They are skewed on the diagonal: sampling errors of variances are skewed to the right, and those
    of their logarithms are not; noise is symmetric. Both distances are combined as in Zou and
    Donner (2008), "Construction of confidence limits about effect measures".
    """
    symmetric = np.sqrt(by_sampling + by_noise)
    size = np.maximum(matrix, symmetric / 2)
    positive = np.where(size > 0, size, 1.0)
    relative = np.sqrt(by_sampling) / positive
    below = np.hypot(positive * -np.expm1(-relative), np.sqrt(by_noise))
    above = np.hypot(positive * np.expm1(relative), np.sqrt(by_noise))
    diagonal = np.eye(len(matrix), dtype=bool)
    return np.where(diagonal, below, symmetric), np.where(diagonal, above, symmetric)
