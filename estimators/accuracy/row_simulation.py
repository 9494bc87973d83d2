"""Simulated rows with the moments of a release, before and after their normalisation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtri

from gramercy.estimators.noise.draws import stream, symmetric_root

Array = NDArray[np.float64]
# From correlated standard normal cells, shape (n, q), to cells of any mean and deviation.
Law = Callable[[Array], Array]

_GOLDEN = (math.sqrt(5) - 1) / 2
_EVERY = 4  # one of so many columns is heavy-tailed where tails differ between columns


def gaussian(cells: Array) -> Array:
    """The Gaussian law."""
    return cells


def student(degrees: float) -> Law:
    """A multivariate t law: rows that are long in all columns together."""
    return partial(_student, degrees)


def lognormal(shape: float) -> Law:
    """Lognormal columns: skewed, with tails of their own."""
    return partial(_lognormal, shape, 1)


def some_lognormal(shape: float) -> Law:
    """Every fourth column lognormal, the others Gaussian."""
    return partial(_lognormal, shape, _EVERY)


def _student(degrees: float, cells: Array) -> Array:
    return cells * _mixing(degrees, len(cells))[:, None]


@lru_cache(maxsize=8)
def _mixing(degrees: float, rows: int) -> Array:
    """Factors that turn normal rows into rows of a t law."""
    levels = (np.arange(rows) + 0.5) * _GOLDEN % 1.0  # evenly spread, in no order
    chi_squared = 2 * gammaincinv(degrees / 2, levels)
    mixing: Array = np.sqrt((degrees - 2) / chi_squared)
    mixing.flags.writeable = False
    return mixing


def _lognormal(shape: float, every: int, cells: Array) -> Array:
    drawn = cells.copy()
    drawn[:, ::every] = np.exp(shape * cells[:, ::every]) / shape
    return drawn


# A release does not publish the law of its rows, so several are assumed; each has the released
# means, variances and correlations after normalisation. Rows are z = mean + deviation * u, where u
# has correlated columns of mean 0 and variance 1, by one of the laws above. They are
# weighted by w = 1 / |x|^2 (``unit``) or min(1, r^2 / |x|^2) (``clip``), where x = (1, z) with an
# intercept and x = z without. A moment after normalisation is E[w z z^T] up to a known factor.

_MOST_CELLS, _MOST_ROWS, _FEWEST_ROWS = 1_000_000, 20_000, 2_000
_FIT_STEPS, _MOST_CHANGE = 6, 4.0


@dataclass(frozen=True)
class Normalisation:
    """How rows are normalised."""

    radius: float | None  # clipping radius in scaled units; None for unit rows
    intercept: bool  # whether every row starts with 1
    limits: Array  # bounds to which cells are clamped, in scaled units; shape (2, q)
    clamps_truth: bool = True  # whether the correlations to compare with are those of clamped cells
    rows_per_person: int = 1  # number of consecutive rows that are weighted together

    def weights(self, rows: Array) -> Array:
        """The weight w of every row, shape (n,)."""
        squares = np.einsum("ij,ij->i", rows, rows) + self.intercept
        if self.rows_per_person > 1:
            sums = squares.reshape(-1, self.rows_per_person).sum(axis=1)
            squares = np.repeat(sums, self.rows_per_person)
        positive = np.maximum(squares, 1e-300)
        weights: Array = 1 / positive if self.radius is None else self.radius**2 / positive
        return weights if self.radius is None else np.minimum(1.0, weights)


@dataclass(frozen=True)
class Target:
    """Moments of the rows after normalisation, in scaled units; q columns."""

    # weighted mean and standard deviation, shape (q,). Without an intercept, zero, and if rows are
    # clipped the root of the mean of w z^2.
    mean: Array
    deviation: Array
    correlation: Array  # positive semidefinite, shape (q, q)
    # which columns are indicators, shape (q,); their mean is the share of a level
    is_level: NDArray[np.bool_]


@dataclass(frozen=True)
class Simulated:
    """Moments of simulated rows."""

    # correlations of the rows before and after normalisation, shape (q, q). After it about the
    # weighted means, or about zero without an intercept; before it about the means.
    correlation: Array
    normalised: Array
    variance: Array  # weighted variance after normalisation relative to the mean weight, shape (q,)
    # standard deviations of the rows before normalisation, relative to those after; shape (q,)
    spread: Array
    mean_weight: float  # the mean of w


def standard_rows(correlation: Array) -> Array:
    """Correlated standard normal cells from a public seed; as many rows as take a moment."""
    q = len(correlation)
    rows = _number_of_rows(q)
    root = symmetric_root(correlation)
    length = np.sqrt(np.maximum((root**2).sum(axis=1), 1e-12))
    cells: Array = _white_rows(rows, q) @ (root / length[:, None]).T
    return cells


@lru_cache(maxsize=1)
def _white_rows(rows: int, columns: int) -> Array:
    """Independent standard normal cells, which are the same for all correlations and laws."""
    cells = stream().standard_normal((rows, columns))
    cells.flags.writeable = False
    return cells


def one_factor_rows(columns: int, correlation: float) -> Array:
    """Standard normal cells of which all pairs of columns have this correlation."""
    rows = _number_of_rows(columns)
    source = stream()
    factor = source.standard_normal((rows, 1)) * math.sqrt(correlation)
    return factor + source.standard_normal((rows, columns)) * math.sqrt(1 - correlation)


def _number_of_rows(columns: int) -> int:
    return max(_FEWEST_ROWS, min(_MOST_ROWS, _MOST_CELLS // columns))


def simulate(cells: Array, law: Law, target: Target, how: Normalisation) -> Simulated:
    """Draw rows whose moments after normalisation are the target, and compare before and after.

    Means and deviations are fitted column by column; the dependence is that of `cells`.

    `law`: the law of the rows up to mean and deviation. `target`, `how`: moments after
    normalisation, and the normalisation.
    """
    cells = cells[: len(cells) // how.rows_per_person * how.rows_per_person]
    drawn = law(cells)
    drawn = (drawn - drawn.mean(axis=0)) / np.maximum(drawn.std(axis=0), 1e-12)
    levels = target.is_level
    drawn[:, levels] = cells[:, levels] < ndtri(np.clip(target.mean[levels], 1e-6, 1 - 1e-6))
    mean, deviation = target.mean.copy(), target.deviation.copy()
    mean[levels], deviation[levels] = 0.0, 1.0
    for _ in range(_FIT_STEPS):
        fitted, spread = _weighted_moments(drawn * deviation + mean, how)
        ratio = np.clip(target.deviation / spread, 1 / _MOST_CHANGE, _MOST_CHANGE)
        if how.intercept:
            mean[~levels] += (target.mean - fitted)[~levels]
        deviation[~levels] *= ratio[~levels]
    return before_and_after(drawn * deviation + mean, how)


def before_and_after(rows: Array, how: Normalisation) -> Simulated:
    """Correlations of rows before and after their normalisation.

    `rows`: in scaled units, without the intercept; shape (n, q).
    """
    clamped = np.clip(rows, *how.limits)
    truth = clamped if how.clamps_truth else rows
    weight = how.weights(clamped)
    moment = (clamped * weight[:, None]).T @ clamped / weight.sum()
    if how.intercept:
        centre = weight @ clamped / weight.sum()
        moment -= np.outer(centre, centre)
    covariance, variance = np.cov(truth.T).reshape(moment.shape), np.diag(moment).copy()
    return Simulated(
        as_correlation(covariance),
        as_correlation(moment),
        variance,
        np.sqrt(np.diag(covariance) / np.maximum(variance, 1e-300)),
        float(weight.mean()),
    )


def _weighted_moments(rows: Array, how: Normalisation) -> tuple[Array, Array]:
    """Mean and standard deviation of every column after normalisation."""
    clamped = np.clip(rows, *how.limits)
    weight = how.weights(clamped)
    per_row = how.radius is not None and not how.intercept
    share = weight / (len(weight) if per_row else weight.sum())
    mean = share @ clamped if how.intercept else np.zeros(rows.shape[1])
    return mean, np.sqrt(np.maximum(share @ (clamped - mean) ** 2, 1e-300))


def as_correlation(matrix: Array) -> Array:
    """A covariance matrix scaled to a unit diagonal; zero where a variance is not positive."""
    variance = np.diag(matrix)
    inverse = np.where(variance > 0, 1 / np.sqrt(np.where(variance > 0, variance, 1.0)), 0.0)
    scaled: Array = np.clip(matrix * np.outer(inverse, inverse), -1.0, 1.0)
    return scaled
