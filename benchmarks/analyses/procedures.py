"""Procedures for one regression of the last column on all others, at the same guarantee."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, ndtr, stdtrit

from benchmarks.analyses.populations import Fitted, Population
from benchmarks.arrays import Array
from benchmarks.statistics.correlations import noisy
from benchmarks.statistics.methods import middle_and_half
from benchmarks.statistics.tables import Table
from gramercy.mechanisms.accounting.gdp import gdp_mu
from tests.support.private_release import DELTA

Scores = dict[str, dict[str, float]]
# Coefficients of rows in [-1, 1]^p, the intercept first, and bounds of their intervals, if any.
Fit = tuple[Array, Array | None, Array | None]
Procedure = Callable[[Array, Array, float, np.random.Generator], Fit]
Measure = Callable[[Population, float, np.random.Generator, int], Scores]
LENGTHS = (0.5, 1.0, 1.5, 3.0)  # bounds on rows in standard units, by sqrt(p)
LARGEST = 3.0  # bound on the outcome, or on all columns, in standard units


def _from_bounds(fit: Procedure) -> Measure:
    """The scores of a procedure on rows that bounds carry to [-1, 1]^p."""

    def scores(
        population: Population, epsilon: float, rng: np.random.Generator, times: int
    ) -> Scores:
        constants = middle_and_half(population.table)
        return {"": _scores(fit, population, *constants, epsilon, rng, times)}

    return scores


def _from_true_constants(fit: Procedure) -> Measure:
    """The scores of a procedure with bounds at three true deviations, which cost nothing."""

    def scores(
        population: Population, epsilon: float, rng: np.random.Generator, times: int
    ) -> Scores:
        centre, scale = _true_constants(population)
        return {"": _scores(fit, population, centre, LARGEST * scale, epsilon, rng, times)}

    return scores


def _adassp(x: Array, y: Array, mu: float, rng: np.random.Generator) -> Fit:
    return adassp(x, y, float(np.sqrt(x.shape[1])), 1.0, mu, rng), None, None


def _statistics(x: Array, y: Array, mu: float, rng: np.random.Generator) -> Fit:
    x, y = np.clip(x, -1, 1), np.clip(y, -1, 1)
    found = noisy_statistics(x, y, float(np.sqrt(x.shape[1])), 1.0, mu, rng)
    return found.coefficients, found.lower, found.upper


def _binagg(x: Array, y: Array, mu: float, rng: np.random.Generator) -> Fit:
    x, y = np.clip(x, -1, 1), np.clip(y, -1, 1)
    lower, upper = -np.ones(x.shape[1]), np.ones(x.shape[1])
    lower[0] = 1.0  # the column of ones
    found = binagg(x, y, lower, upper, mu, rng)
    return found.coefficients, found.lower, found.upper


def adassp_from_true_constants(
    population: Population, epsilon: float, rng: np.random.Generator, times: int
) -> Scores:
    """AdaSSP with the true means and deviations, which cost nothing, and several lengths."""
    centre, scale = _true_constants(population)
    samples = [population.sample(rng) for _ in range(times)]
    result = {}
    for length in LENGTHS:
        longest = length * float(np.sqrt(population.table.p))

        def fit(
            x: Array, y: Array, mu: float, rng: np.random.Generator, longest: float = longest
        ) -> Fit:
            return adassp(x, y, longest, LARGEST, mu, rng), None, None

        fits = [_fitted(fit, each, centre, scale, epsilon, rng) for each in samples]
        result[f"{length:g}"] = population.scores(fits)
    return result


def _true_constants(population: Population) -> tuple[Array, Array]:
    cells = population.table.cells
    return cells.mean(axis=0), cells.std(axis=0)


def _scores(
    fit: Procedure,
    population: Population,
    centre: Array,
    scale: Array,
    epsilon: float,
    rng: np.random.Generator,
    times: int,
) -> dict[str, float]:
    samples = (population.sample(rng) for _ in range(times))
    return population.scores([_fitted(fit, each, centre, scale, epsilon, rng) for each in samples])


def _fitted(
    fit: Procedure,
    table: Table,
    centre: Array,
    scale: Array,
    epsilon: float,
    rng: np.random.Generator,
) -> Fitted:
    """The fit of scaled rows, in the columns' own units."""
    scaled = (table.cells - centre) / scale
    x = np.column_stack([np.ones(table.n), scaled[:, :-1]])
    found, *bounds = fit(x, scaled[:, -1], gdp_mu(epsilon, DELTA), rng)
    units = scale[-1] / scale[:-1]
    own = found[1:] * units
    intercept = centre[-1] + scale[-1] * found[0] - centre[:-1] @ own
    ends = (None if each is None else each[1:] * units for each in bounds)
    return Fitted(np.append(intercept, own), *ends)


adassp_from_bounds = _from_bounds(_adassp)  # no row is clipped
statistics_from_bounds = _from_bounds(_statistics)
statistics_from_true_constants = _from_true_constants(_statistics)
binagg_from_bounds = _from_bounds(_binagg)
binagg_from_true_constants = _from_true_constants(_binagg)


_FAILURE = 0.05  # rho: the probability that the penalty is too small
_DELTA = 1e-6


def adassp(
    x: Array, y: Array, longest: float, largest: float, mu: float, rng: np.random.Generator
) -> Array:
    """Coefficients, shape (d,).

    AdaSSP is ridge regression from noisy sufficient statistics, with a private penalty: Wang
    (2018), "Revisiting differentially private linear regression: optimal and adaptive prediction &
    estimation in unbounded domain", algorithm 2. Its three queries share mu equally, and their
    noise has the exact size of the Gaussian mechanism under replace-one, where X^T X and X^T y
    change by up to sqrt(2) and 2 times as much as by one row more or less. Published is noise of
    sqrt(log(6 / delta)) / (epsilon / 3) per unit of sensitivity, which is larger.

    Parameters
    ----------
    x, y
        Shapes (n, d) and (n,); rows are clipped at the length `longest`, and outcomes at `largest`.
    longest, largest
        Public bounds on the lengths of rows, and on outcomes.
    mu
        Mu of the Gaussian guarantee of the whole, under replace-one.
    rng
        Of the noise.
    """
    d, each = x.shape[1], mu / math.sqrt(3)
    lengths = np.maximum(np.linalg.norm(x, axis=1), 1e-300)
    x, y = x * np.minimum(1, longest / lengths)[:, None], np.clip(y, -largest, largest)
    gram, sd = x.T @ x, longest**2 / each
    smallest = float(np.linalg.eigvalsh(gram)[0]) + sd * rng.normal()
    smallest = max(0.0, smallest - sd * math.sqrt(math.log(6 / _DELTA)))
    penalty = max(0.0, sd * math.sqrt(d * math.log(2 * d**2 / _FAILURE)) - smallest)
    cross = x.T @ y + rng.normal(size=d) * (2 * longest * largest / each)
    return np.linalg.solve(noisy(gram, sd, rng) + penalty * np.eye(d), cross).astype(np.float64)


_SHARES = np.array([0.4, 0.4, 0.2])
_SHIFT = 1e-6  # beyond the smallest eigenvalue, where it is negative
_LEVEL = 0.95


@dataclass(frozen=True)
class Intervals:
    """Coefficients and their 95 % intervals, shape (d,) each."""

    coefficients: Array
    lower: Array
    upper: Array


def noisy_statistics(
    x: Array, y: Array, longest: float, largest: float, mu: float, rng: np.random.Generator
) -> Intervals:
    """Coefficients and intervals.

    The procedure of Ghenis (2024), "Differentially private regression with valid statistical
    inference", and of the package dp-statsmodels that it describes: noise on X^T X, X^T y and
    y^T y, a shift of X^T X where it is indefinite, and standard errors by sampling and by both
    noises to first order. Its shares of the budget are .4, .4 and .2. Here they are shares of mu,
    and noise has the exact size of the Gaussian mechanism under replace-one; published is noise of
    sqrt(2 log(3.75 / delta)) / epsilon per unit of sensitivities that are two to four times as
    large.

    Parameters
    ----------
    x, y
        Shapes (n, d) and (n,).
    longest, largest
        Public bounds on the lengths of rows, and on outcomes; no row exceeds them.
    mu
        Mu of the Gaussian guarantee of the whole, under replace-one.
    rng
        Of the noise.
    """
    n, d = x.shape
    of_x, of_cross, of_y = mu * _SHARES / np.linalg.norm(_SHARES)
    sd, cross_sd = longest**2 / of_x, 2 * longest * largest / of_cross
    gram = noisy(x.T @ x, sd, rng)
    cross = x.T @ y + cross_sd * rng.normal(size=d)
    square = float(y @ y) + largest**2 / of_y * rng.normal()
    least = float(np.linalg.eigvalsh(gram)[0])
    if least <= 0:
        gram = gram + (abs(least) + _SHIFT) * np.eye(d)
    inverse = np.linalg.inv(gram)
    found = inverse @ cross
    spread = max((square - found @ cross) / (n - d), 0.0)
    by_noise = (cross_sd**2 + sd**2 * (found @ found)) * (inverse**2).sum(axis=1)
    error = np.sqrt(np.maximum(spread * np.diag(inverse) + by_noise, 0.0))
    reach = float(stdtrit(n - d, (1 + _LEVEL) / 2)) * error
    return Intervals(found, found - reach, found + reach)


_TREE_SHARES = np.array([1.0, 3.0, 3.0, 3.0])  # of mu: bins, counts, sums of x, sums of y
_LEAST_COUNT = 2
_NORMAL = 1.959963984540054  # quantile of 95 % intervals


@dataclass(frozen=True)
class Bin:
    """A box of regressors, with its rows."""

    lower: Array
    upper: Array
    rows: NDArray[np.int64]

    @property
    def volume(self) -> float:
        """Logarithm of the product of the sides; sides of length zero are left out."""
        sides = self.upper - self.lower
        return float(np.log(sides[sides > 0]).sum())

    def halves(self, x: Array) -> tuple[Bin, Bin]:
        """The two halves across the widest side."""
        side = int(np.argmax(self.upper - self.lower))
        middle = (self.lower[side] + self.upper[side]) / 2
        below = x[self.rows, side] < middle
        lower, upper = self.lower.copy(), self.upper.copy()
        upper[side] = lower[side] = middle
        return Bin(self.lower, upper, self.rows[below]), Bin(lower, self.upper, self.rows[~below])


def private_tree(
    x: Array, lower: Array, upper: Array, epsilon: float, rng: np.random.Generator
) -> list[Bin]:
    """Bins by PrivTree, at least d + 1 of them.

    Parameters
    ----------
    x
        Regressors within the bounds, shape (n, d).
    lower, upper
        Public bounds, shape (d,).
    epsilon
        Of its pure guarantee, for one row more or less.
    rng
        Of the noise.
    """
    scale = 3 / epsilon  # of Laplace noise, for two children
    decay = scale * math.log(2)
    waiting, leaves = deque([(Bin(lower, upper, np.arange(len(x))), 0)]), []
    while waiting:
        box, depth = waiting.popleft()
        score = max(len(box.rows) - decay * depth, -decay)
        if score + rng.laplace(scale=scale) > 0:
            waiting.extend((half, depth + 1) for half in box.halves(x))
        else:
            leaves.append(box)
    while len(leaves) <= x.shape[1]:
        largest = max(range(len(leaves)), key=lambda k: leaves[k].volume)
        leaves.extend(leaves.pop(largest).halves(x))
    return leaves


def binagg(
    x: Array, y: Array, lower: Array, upper: Array, mu: float, rng: np.random.Generator
) -> Intervals:
    """Coefficients and intervals.

    Lin, Slavkovic and Bhoomireddy (2026), "Differentially private linear regression and synthetic
    data generation with statistical guarantees", algorithms 1 and 2 and theorem 4.2, as the
    documentation of the authors' package binagg states them, with its defaults: bins by PrivTree
    (Zhang, Xiao and Xie 2016) that halve the widest side while a noisy count is positive, budget
    1 : 3 : 3 : 3 for bins, counts, sums of x and sums of y, and bins with a noisy count below two
    left out. With bins k, noisy counts c_k, sums s_k and t_k, and D_k the diagonal covariance of
    the noise in s_k,

    b = M^-1 sum_k s_k t_k / c_k,   M = sum_k (s_k s_k^T - D_k) / c_k,
    Var b = M^-1 [K / (K - d) sum_k q_k q_k^T] M^-1,   q_k = (s_k (t_k - s_k^T b) + D_k b) / c_k.

    Noise has the size for mu under replace-one: PrivTree at half its epsilon, and Gaussian noise of
    the largest change that one replaced row makes in counts, in sums of x and in sums of y, given
    the bins. The package differs: its noise is for one row more or less and for one column of x at
    a time, and in b, unlike in Var b, it subtracts a K-th of the correction D_k.

    Parameters
    ----------
    x, y
        Shapes (n, d) and (n,), within the bounds; outcomes within -1 and 1.
    lower, upper
        Public bounds of the regressors, shape (d,).
    mu
        Mu of the Gaussian guarantee of the whole, under replace-one.
    rng
        Of the noise.
    """
    d = x.shape[1]
    of_bins, of_counts, of_x, of_y = mu * _TREE_SHARES / np.linalg.norm(_TREE_SHARES)
    # Pure epsilon implies mu with ndtr(-mu / 2) = 1 / (1 + exp(epsilon)); a replaced row costs two.
    bins = private_tree(x, lower, upper, float(logit(ndtr(of_bins / 2))) / 2, rng)
    lows, highs = (np.array([getattr(box, end) for box in bins]) for end in ("lower", "upper"))
    largest = np.maximum(np.abs(lows), np.abs(highs))
    counts = np.array([float(len(box.rows)) for box in bins])
    sums = np.array([x[box.rows].sum(axis=0) for box in bins])
    totals = np.array([y[box.rows].sum() for box in bins])

    # In units of `largest`, a row that changes bins moves two sums by up to 1 in each column, and
    # one that does not moves one sum by up to a side of its bin.
    within = (((highs - lows) / largest) ** 2).sum(axis=1).max()
    sd = largest * math.sqrt(max(2 * d, within)) / of_x
    counts = np.rint(counts + rng.normal(size=len(bins)) * math.sqrt(2) / of_counts)
    sums = sums + rng.normal(size=sums.shape) * sd
    totals = totals + rng.normal(size=len(bins)) * 2 / of_y

    kept = counts >= _LEAST_COUNT
    counts = counts[kept] * (len(x) / counts[kept].sum())  # the number of rows is public
    return weighted_fit(counts, sums[kept], totals[kept], sd[kept] ** 2)


def weighted_fit(counts: Array, sums: Array, totals: Array, variances: Array) -> Intervals:
    """The estimate from noisy sums; `variances` are those of the noise in `sums`, shape (K, d)."""
    k, d = sums.shape
    weighted = sums / counts[:, None]
    moment = weighted.T @ sums - np.diag((variances / counts[:, None]).sum(axis=0))
    inverse = np.linalg.pinv(moment, hermitian=True)
    found = inverse @ (weighted.T @ totals)
    scores = weighted * (totals - sums @ found)[:, None] + variances * found / counts[:, None]
    covariance = inverse @ (scores.T @ scores * (k / max(k - d, 1))) @ inverse
    reach = _NORMAL * np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return Intervals(found, found - reach, found + reach)
