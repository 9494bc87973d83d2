"""Simulated rows with the moments of a release, before and after their normalisation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtr, ndtri

from gramercy.estimators.noise.draws import stream, symmetric_root
from gramercy.schemas.evidence import Histogram
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

Array = NDArray[np.float64]
# From correlated standard normal cells, shape (n, q), to cells of any mean and deviation.
Law = Callable[[Array], Array]

_GOLDEN = (math.sqrt(5) - 1) / 2
_EVERY = 4  # one of so many columns is heavy-tailed where tails differ between columns


@dataclass(frozen=True)
class Marginal:
    """A histogram of a column, in scaled units."""

    edges: Array  # increasing, shape (k + 1,)
    weights: Array  # not negative, with a positive sum, shape (k,)
    tail: Array  # assumed in addition, where the noise hides the counts; shape (k,)

    def quantiles(self, levels: Array) -> Array:
        """Values at these levels from 0 to 1, linear within a bin."""
        sums = np.concatenate([[0.0], np.cumsum(self.weights + self.tail)])
        values: Array = np.interp(levels * sums[-1], sums, self.edges)
        return values

    def within(self, reach: float) -> Marginal:
        """The same without the bins of the tail that end farther than `reach` from zero."""
        outer = np.maximum(np.abs(self.edges[:-1]), np.abs(self.edges[1:]))
        return replace(self, tail=np.where(outer <= reach, self.tail, 0.0))


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


def copula(marginals: tuple[Marginal | None, ...], degrees: float | None = None) -> Law:
    """Columns with these histograms, and the dependence of a Gaussian or of a multivariate t law.

    A column without a histogram stays Gaussian.
    """

    def law(cells: Array) -> Array:
        if degrees is None:
            levels = ndtr(cells)
        else:
            ranks = _student(degrees, cells).argsort(axis=0).argsort(axis=0)
            levels = (ranks + 0.5) / len(cells)
        drawn = cells.copy()
        for j, marginal in enumerate(marginals):
            if marginal is not None:
                drawn[:, j] = marginal.quantiles(levels[:, j])
        return drawn

    return law


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


# Published histograms of columns, continued where the noise hides their tails.
#
# Most bins far out are empty, and their noise is not. So a histogram ends where two bins in a row
# are within the noise, and beyond that end its tail is assumed.

_NOISE_OF_COUNT = 2.0  # standard deviations that the count of a bin must exceed
_BODY = 2.0  # scales from the centre within which columns of few values have gaps
_POWERS, _BISECTIONS = (0.1, 40.0), 40


def published_marginals(
    histograms: Sequence[Histogram], facts: Sequence[ColumnFacts | LevelsFacts | None]
) -> tuple[Marginal | None, ...]:
    """The histograms of these columns in scaled units; None without one, and for levels."""
    published = {each.column: each for each in histograms}
    return tuple(
        _marginal(published[each.name], each)
        if isinstance(each, ColumnFacts) and each.name in published
        else None
        for each in facts
    )


def _marginal(published: Histogram, column: ColumnFacts) -> Marginal | None:
    inside = np.isfinite(published.lower) & np.isfinite(published.upper)
    edges = np.append(published.lower[inside], published.upper[inside][-1:])
    scaled = (edges - column.centre) / column.scale
    hidden = _NOISE_OF_COUNT * published.sd
    weights = seen(scaled, published.count[inside].astype(np.float64), hidden)
    if not weights.any():
        return None
    return Marginal(scaled, weights, with_tails(scaled, weights, hidden) - weights)


def seen(edges: Array, counts: Array, hidden: float, body: float = _BODY) -> Array:
    """The counts from the largest one outwards, up to a gap; zero in bins that may be empty.

    `edges`, `counts`: a histogram, shapes (k + 1,) and (k,). `hidden`: largest count of a bin that
    the noise may hide. `body`: gaps closer to zero than this do not count.
    """
    weights = np.where(counts > hidden, counts, 0.0)
    near = np.minimum(np.abs(edges[:-1]), np.abs(edges[1:])) < body
    empty = (weights == 0) & ~near
    gaps, mode = np.flatnonzero(empty[:-1] & empty[1:]), int(np.argmax(counts))
    above, below = gaps[gaps > mode], gaps[gaps + 1 < mode]
    if above.size:
        weights[above[0] :] = 0.0
    if below.size:
        weights[: below[-1] + 2] = 0.0
    return weights


def with_tails(edges: Array, weights: Array, hidden: float) -> Array:
    """Continue a histogram beyond its last bin that is not empty, on both sides of zero.

    Counts far out are lost in the noise, but much of the variance of a heavy-tailed column is
    there. The mass beyond a distance falls as a power of the distance; the power follows from the
    last bin and the bins from half its distance. Gaussian tails stay nearly empty.

    `hidden`: largest weight of a bin that the noise may hide.
    """
    above = _with_upper_tail(edges, weights, hidden)
    below = _with_upper_tail(-edges[::-1], weights[::-1], hidden)[::-1]
    return np.maximum(above, below)


def _with_upper_tail(edges: Array, weights: Array, hidden: float) -> Array:
    last = int(np.flatnonzero(weights)[-1])
    first = min(int(np.searchsorted(edges, edges[last] / 2)), last - 1)
    if last + 1 == len(weights) or first < 0 or edges[first] <= 0:
        return weights
    start = edges[last]
    # The power a with (inside^a - 1) / (1 - outside^a) = ratio; inside > 1 > outside. By bisection.
    ratio = float(weights[first:last].sum() / weights[last])
    inside = float(start / edges[first])
    outside = float(start / edges[last + 1])
    low, high = _POWERS
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        too_low = inside**middle - 1 < ratio * (1 - outside**middle)
        low, high = (middle, high) if too_low else (low, middle)
    reached = (edges[last:] / start) ** -high
    mass = weights[last] / (1 - reached[1])  # beyond the start of that bin
    continued = weights.copy()
    continued[last + 1 :] = np.minimum(mass * -np.diff(reached[1:]), hidden)
    return continued


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
