"""Standard errors from the folds of a release, without a law of the rows.

Every fold is a part of the rows with its own noise. For a smooth function theta of the second
moment, with theta_(-k) from all folds but the k-th, the delete-a-group jackknife estimates

Var(theta) = (K - 1) / K sum_k (theta_(-k) - mean of theta_(-k))^2.

It contains the sampling error and the noise together, for rows and noise of any law. A quotient by
this standard error has about Student's t distribution with K - 1 degrees of freedom. It does not
contain what clipping does to the rows, because that is the same in every fold: the estimand is the
population of the normalised rows.

The folds of pooled tables are strata: a fold is left out of its own table, which keeps its weight,
and the variances and the degrees of freedom of all tables add up.

Shao and Tu (1995), "The jackknife and bootstrap", section 2.3.

The variance N of the noise is known. Only what remains of Var(theta) is uncertain, so an interval
reaches sqrt(t^2 max(Var(theta) - N, 0) + z^2 N), with the quantiles t of Student's distribution and
z of the noise. Where noise dominates, t alone would make 95 % intervals cover 99 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit

from gramercy.estimators.uncertainty.tails import critical_value
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]
Statistic = Callable[[Array], Array]

_LEAST_TAIL, _BISECTIONS = 1e-100, 60  # of p-values; bisections of their logarithm
MIN_FOLDS = 5  # below, the quantile of Student's t makes intervals more than 1.6 times as wide


@dataclass(frozen=True)
class Jackknife:
    """An estimate and its jackknife standard error; both arrays have the statistic's shape."""

    estimate: Array  # the statistic of all rows
    standard_error: Array  # NaN where the statistic is not finite for all rows without a fold
    # degrees of freedom of Student's t distribution: the number of folds minus that of tables
    freedom: int
    deviations: Array  # of every fold; their squares add up to those of the errors; shape (K, ...)

    @property
    def covariance(self) -> Array:
        """Covariance of a statistic that is a vector, shape (q, q)."""
        covariance: Array = self.deviations.T @ self.deviations
        return covariance


def student_quantile(level: float, freedom: float) -> float:
    """The t that a variable with Student's t distribution exceeds in size with 1 - `level`."""
    return float(stdtrit(freedom, (1 + level) / 2))


def squared_reaches(
    level: float, freedom: float, by_sampling: Array, by_noise: Array, shape: Array
) -> tuple[Array, Array]:
    """Squared distances from an estimate to its bounds: t^2 of sampling, and z^2 of noise.

    `level`, `freedom`: confidence level, and degrees of freedom of the jackknife. `by_sampling`,
    `by_noise`: variances: what the jackknife finds beyond the noise, and that of the noise.
    `shape`: Gamma shape of the noise; see `uncertainty.tails.gamma_shape`.
    """
    z = critical_value(1 - level, np.ones(np.shape(by_noise)), shape)
    return student_quantile(level, freedom) ** 2 * by_sampling, z**2 * by_noise


def reach_tail(distance: Array, freedom: float, share: Array) -> Array:
    """The 1 - level at which an interval of `squared_reaches` ends, for normal noise; elementwise.

    `distance`: from the estimate, in standard errors; not negative. `freedom`, `share`: degrees of
    freedom of the jackknife, and share of the variance that is due to noise.
    """
    if math.isinf(freedom):
        return student_tail(distance, freedom)
    least, most = np.full(np.shape(distance), math.log(_LEAST_TAIL)), np.zeros(np.shape(distance))
    for _ in range(_BISECTIONS):
        middle = (least + most) / 2
        half = np.exp(middle) / 2
        square = (1 - share) * stdtrit(freedom, half) ** 2 + share * ndtri(half) ** 2
        beyond = square < distance**2
        least, most = np.where(beyond, least, middle), np.where(beyond, middle, most)
    return np.exp(most)


def student_tail(t: Array, freedom: float | Array) -> Array:
    """P(|T| > t) for Student's t distribution, elementwise."""
    tail: Array = 2 * stdtr(freedom, -t)
    return tail


def has_jackknife(evidence: Evidence) -> bool:
    """Whether there are enough folds, each with rows."""
    return len(evidence.folds) >= MIN_FOLDS and all(fold.rows > 0 for fold in evidence.folds)


def describe_sampling(evidence: Evidence) -> str:
    """What standard errors assume about the rows, for a page or a table."""
    if has_jackknife(evidence):
        return f"jackknife over {len(evidence.folds)} folds"
    return "Gaussian rows"


def jackknife(evidence: Evidence, statistic: Statistic) -> Jackknife | None:
    """The jackknife standard error of a statistic of the second moment.

    `statistic`: smooth function of a second moment, shape (p, p), in the units of ``evidence.raw``.
    The moment has noise, and may be indefinite; where the statistic does not exist, return NaN.
    """
    if not has_jackknife(evidence):
        return None
    strata = sorted({fold.stratum for fold in evidence.folds})
    parts = [[fold for fold in evidence.folds if fold.stratum == each] for each in strata]
    sums = [sum(fold.moment * fold.rows for fold in part) for part in parts]
    rows = [sum(fold.rows for fold in part) for part in parts]
    every = list[Array]()
    for part, own_sum, own_rows in zip(parts, sums, rows, strict=True):
        others = sum(sums) - own_sum
        without = np.array(
            [
                statistic(
                    (others + (own_sum - fold.moment * fold.rows) * (own_rows / left)) / sum(rows)
                )
                for fold in part
                for left in [own_rows - fold.rows]
            ]
        )
        with np.errstate(invalid="ignore"):
            own = without - without.mean(axis=0)
        every.append(math.sqrt((len(part) - 1) / len(part)) * own)
    deviations = np.concatenate(every)
    error = np.sqrt((deviations**2).sum(axis=0))
    error = np.where(np.isfinite(error), error, np.nan)
    freedom = len(evidence.folds) - len(strata)
    return Jackknife(statistic(evidence.raw), error, freedom, deviations)
