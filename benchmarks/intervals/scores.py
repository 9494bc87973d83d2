"""Coverage and width of the intervals of one quantity, over the releases of one setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array
from benchmarks.intervals.populations import LEVEL, Estimated
from gramercy.estimators.uncertainty.jackknife import student_quantile

_SOME = 5  # releases with known entries that a standard error requires
_NORMAL = student_quantile(LEVEL, math.inf)


@dataclass(frozen=True)
class Score:
    """Coverage and width of the intervals of one quantity.

    Parameters
    ----------
    known
        Share of the entries with a bounded interval; all other fields are of these, and are None
        where there are too few.
    held
        Share of the intervals for the population that contain its value.
    error
        Standard error of `held`, over releases, because the entries of one release are dependent.
    worst
        Least coverage of an entry that at least half of the releases know.
    own, own_worst
        The same shares of the intervals for the released table that contain the table's own value.
    bias
        Median over the entries of the distance between the mean estimate and the population's
        value, in standard deviations of the estimate.
    width, narrowest
        Width over that of an oracle: the normal interval by the standard deviation of the estimate
        over the releases. The geometric mean and the minimum over the entries that all releases
        know; so are `bias` and `spread`.
    spread
        Geometric mean of the standard deviations of the estimates, in the columns' units. Only its
        ratio to that of other releases of the same samples has a meaning.
    """

    known: float
    held: float | None = None
    error: float | None = None
    worst: float | None = None
    own: float | None = None
    own_worst: float | None = None
    bias: float | None = None
    width: float | None = None
    narrowest: float | None = None
    spread: float | None = None

    @classmethod
    def of(cls, releases: Sequence[Estimated], truth: Array, own: Sequence[Array]) -> Self:
        """The score of the releases.

        `truth`: values of the population, shape (k,). `own`: those of each released table.
        """
        known = np.array([each.known for each in releases])
        counts = known.sum(axis=1)
        share = _rounded(known.mean())
        if np.count_nonzero(counts) < _SOME:
            return cls(share)
        lower, upper = (
            np.array([getattr(each, bound) for each in releases]) for bound in ("lower", "upper")
        )
        held = known & (lower <= truth) & (truth <= upper)
        mean = held.sum() / counts.sum()
        left = held.sum(axis=1) - mean * counts
        error = math.sqrt(len(left) * float(left @ left) / (len(left) - 1)) / float(counts.sum())
        often = known.mean(axis=0) >= 0.5
        low, high = (
            np.array([getattr(each, f"own_{bound}") for each in releases])
            for bound in ("lower", "upper")
        )
        values = np.array(own)
        contained = known & (low <= values) & (values <= high)
        of_own = contained.sum() / counts.sum(), _least(contained, known, often)
        always = known.all(axis=0)
        width: tuple[float | None, ...] = (None,) * 4
        if always.any():
            estimates = np.array([each.estimate for each in releases])[:, always]
            spread = np.maximum(estimates.std(axis=0, ddof=1), 1e-300)
            ratio = (upper - lower)[:, always].mean(axis=0) / (2 * _NORMAL * spread)
            bias = np.abs(estimates.mean(axis=0) - truth[always]) / spread
            width = float(np.median(bias)), _mean(ratio), float(ratio.min()), _mean(spread)
        shares = (mean, error, _least(held, known, often), *of_own)
        numbers = (None if value is None else _rounded(value) for value in (*shares, *width))
        return cls(share, *numbers)


def _least(
    held: NDArray[np.bool_], known: NDArray[np.bool_], often: NDArray[np.bool_]
) -> float | None:
    """The least coverage of an entry that is often known."""
    if not often.any():
        return None
    return float((held.sum(axis=0)[often] / known.sum(axis=0)[often]).min())


def _mean(ratios: Array) -> float:
    return float(np.exp(np.log(ratios).mean()))


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
