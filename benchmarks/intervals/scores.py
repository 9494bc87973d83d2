"""Coverage and width of the intervals of one quantity, over the releases of one setting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

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
        Share of the intervals that contain the value in the population of the normalised rows.
    error
        Standard error of `held`, over releases, because the entries of one release are dependent.
    worst
        Least coverage of an entry that at least half of the releases know.
    of_table
        Share that contain the value in the table itself.
    bias
        Median over the entries of the distance between these two values, in standard deviations of
        the estimate.
    width, narrowest
        Width over that of an oracle: the normal interval by the standard deviation of the estimate
        over the releases. The geometric mean and the minimum over the entries that all releases
        know; so are `bias` and `spread`.
    spread
        Geometric mean of the standard deviations of the estimates, in scaled units. Only its ratio
        to that of other releases of the same samples has a meaning.
    """

    known: float
    held: float | None = None
    error: float | None = None
    worst: float | None = None
    of_table: float | None = None
    bias: float | None = None
    width: float | None = None
    narrowest: float | None = None
    spread: float | None = None

    @classmethod
    def of(cls, releases: list[Estimated], normalised: Array, original: Array) -> Self:
        """The score of the releases; the true values have shape (k,)."""
        known = np.array([each.known for each in releases])
        counts = known.sum(axis=1)
        share = _rounded(known.mean())
        if np.count_nonzero(counts) < _SOME:
            return cls(share)
        lower, upper = (
            np.array([getattr(each, bound) for each in releases]) for bound in ("lower", "upper")
        )
        held = known & (lower <= normalised) & (normalised <= upper)
        of_table = known & (lower <= original) & (original <= upper)
        mean = held.sum() / counts.sum()
        left = held.sum(axis=1) - mean * counts
        error = math.sqrt(len(left) * float(left @ left) / (len(left) - 1)) / float(counts.sum())
        often = known.mean(axis=0) >= 0.5
        worst = (held.sum(axis=0)[often] / known.sum(axis=0)[often]).min() if often.any() else None
        always = known.all(axis=0)
        width: tuple[float, ...] = ()
        if always.any():
            estimates = np.array([each.estimate for each in releases])[:, always]
            spread = estimates.std(axis=0, ddof=1)
            ratio = (upper - lower)[:, always].mean(axis=0) / (2 * _NORMAL * spread)
            bias = np.abs(normalised - original)[always] / spread
            width = float(np.median(bias)), _mean(ratio), float(ratio.min()), _mean(spread)
        shares = (mean, error, worst, of_table.sum() / counts.sum())
        numbers = (None if value is None else _rounded(value) for value in (*shares, *width))
        return cls(share, *numbers)


def _mean(ratios: Array) -> float:
    return float(np.exp(np.log(ratios).mean()))


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
