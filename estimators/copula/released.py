"""What a release says about every table column, as the copula needs it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri

from gramercy.estimators.marginals import Distribution
from gramercy.estimators.released_table import ReleasedTable, Shares
from gramercy.estimators.table_units import TableMoments, table_units, weight_lost
from gramercy.schemas import families, wordings
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

# Columns of levels as functions of standard normal variables.
#
# An ordered choice cuts one variable at thresholds. It can give strong associations, but the same
# order of levels to all of them.
#
# A free choice has an independent variable for each level, and a row has the level with the largest
# log(share_k) + g_k, where g_k = -log(-log Phi(y_k)) has a Gumbel distribution. Every level may
# have its own covariances with other columns, but they cannot be as strong.
#
# In both, every level has exactly its share.

Array = NDArray[np.float64]

_GRID = np.linspace(-9.0, 9.0, 3601)


class LevelChoice(Protocol):
    """The way from latent variables to the levels of a column."""

    @property
    def shares(self) -> Array:
        """Of all levels, and of cells of no declared level; sum 1, shape (K,)."""
        ...

    @property
    def size(self) -> int:
        """Number of latent variables."""
        ...

    @property
    def slopes(self) -> Array:
        """Covariances of the indicators of levels with the latent variables; shape (K, size).

        A normal variable with the covariances c to the latent ones has the covariances `slopes` c
        to the indicators.
        """
        ...

    def chosen(self, latent: Array) -> NDArray[np.intp]:
        """Index of the level of every row; `latent` has shape (rows, size)."""
        ...


@dataclass(frozen=True)
class OrderedChoice:
    """Levels by thresholds of one variable; see `LevelChoice`."""

    shares: Array  # of all levels, and of cells of no declared level; sum 1, shape (K,)
    scores: Array  # by which levels are sorted; shape (K,)

    @property
    def size(self) -> int:
        """One variable; none if there is only one level."""
        return int(self._order.size > 1)

    @property
    def slopes(self) -> Array:
        slopes = np.zeros((self.shares.size, self.size))
        if self.size:
            density = np.exp(-(self._thresholds**2) / 2) / np.sqrt(2 * np.pi)
            slopes[self._order, 0] = -np.diff(density, prepend=0.0, append=0.0)
        return slopes

    def chosen(self, latent: Array) -> NDArray[np.intp]:
        if not self.size:
            return np.full(len(latent), self._order[0])
        return self._order[np.searchsorted(self._thresholds, latent[:, 0])]

    @property
    def _order(self) -> NDArray[np.intp]:
        order = np.argsort(self.scores, kind="stable")
        return order[self.shares[order] > 0]

    @property
    def _thresholds(self) -> Array:
        thresholds: Array = ndtri(np.minimum(np.cumsum(self.shares[self._order])[:-1], 1.0))
        return thresholds


@dataclass(frozen=True)
class FreeChoice:
    """Levels by the largest of several values; see `LevelChoice`."""

    shares: Array  # of all levels, and of cells of no declared level; sum 1, shape (K,)

    @property
    def possible(self) -> NDArray[np.intp]:
        """Indices of the levels with a positive share; shape (k,)."""
        return np.flatnonzero(self.shares > 0)

    @property
    def size(self) -> int:
        """One variable for each possible level; none if there is only one level."""
        return self.possible.size if self.possible.size > 1 else 0

    def chosen(self, latent: Array) -> NDArray[np.intp]:
        if not self.size:
            return np.full(len(latent), self.possible[0])
        # The largest log(share) + g belongs to the smallest of these exponential variables.
        arrival = -log_ndtr(latent) / self.shares[self.possible]
        indices: NDArray[np.intp] = self.possible[arrival.argmin(axis=1)]
        return indices

    @property
    def slopes(self) -> Array:
        """Given that level k has the largest value, Phi(y_k) is V^share_k with V uniform.

        Which of the other levels is largest does not depend on y_k.
        """
        slopes = np.zeros((self.shares.size, self.size))
        for j, k in enumerate(self.possible[: self.size]):
            share = self.shares[k]
            # E Phi^-1(V^share), V uniform: the mean of the largest of 1 / share normal variables.
            log_density = (1 / share - 1) * log_ndtr(_GRID) - _GRID**2 / 2
            density = np.exp(log_density - log_density.max())
            own = share * float(density @ _GRID / density.sum())
            slopes[:, j] = -own * self.shares / (1 - share)
            slopes[k, j] = own
        return slopes


_EXPLAINED = 3.0  # standard deviations of noise that explain a share of no level


@dataclass(frozen=True)
class Number:
    """A numeric column with its distribution."""

    facts: ColumnFacts  # of the contract or the release
    marginal: Marginal  # of the cells that are present
    missing: float  # share of missing cells


@dataclass(frozen=True)
class Category:
    """A column of levels with their shares; the last share is that of cells of no level."""

    facts: LevelsFacts
    choice: LevelChoice
    shares: Array  # as released; those of `choice` leave out what noise explains


TableColumn = Number | Category


def spans(sizes: Sequence[int]) -> list[slice]:
    """Neighbouring slices of these sizes."""
    ends = np.cumsum(sizes)
    return [slice(int(end) - size, int(end)) for end, size in zip(ends, sizes, strict=True)]


@dataclass(frozen=True)
class ReleasedColumns:
    """All columns of the table, and the correlations of their matrix columns."""

    columns: tuple[TableColumn, ...]  # in the table's order
    # of all numeric columns and indicators of levels, in the order of the matrix; zero where
    # nothing is known. Shape (q, q).
    correlation: Array

    @property
    def slices(self) -> list[slice]:
        """The matrix columns of every table column."""
        return spans([1 if isinstance(c, Number) else len(c.facts.levels) for c in self.columns])


def released_columns(evidence: Evidence) -> ReleasedColumns:
    """Distributions and correlations of a release with means.

    Columns have their published histograms; without histograms, means and standard deviations of
    the denoised matrix, and shares of levels from it.

    Raises RequestError if rows were divided by their own length, or there is no intercept; or if
    the noise hides the weight of the rows, and there are no histograms.
    """
    units = table_units(evidence)
    if units is None:
        raise wordings.analysis_needs_means("synthetic")
    lost = any(weight_lost(m, evidence.deviations) for m in (evidence.raw, evidence.repaired))
    if lost and not evidence.marginals:
        raise families.ANALYSIS(
            "The noise hides the weight of the rows, so nothing is known of the columns.",
            "Release with a larger epsilon, or with 'scaling: private', which publishes "
            "histograms.",
        )
    moments = units.moments(evidence.repaired)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.nan_to_num(moments.correlation, nan=0.0, posinf=0.0, neginf=0.0)
    hidden = np.diag(units.unknown(evidence.raw, evidence.deviations, evidence.terms))
    correlation[hidden, :] = correlation[:, hidden] = 0.0
    columns = _columns(ReleasedTable(evidence), moments)
    return ReleasedColumns(columns, np.clip(correlation, -1.0, 1.0))


def _columns(known: ReleasedTable, moments: TableMoments) -> tuple[TableColumn, ...]:
    columns: list[TableColumn] = []
    sources = known.evidence.columns[1:]
    for at, facts in enumerate(sources):
        if isinstance(facts, LevelsFacts) and facts not in sources[:at]:
            shares = known.levels(facts)
            columns.append(Category(facts, FreeChoice(_drawn(shares)), shares.value))
        elif isinstance(facts, ColumnFacts):
            missing = known.missing(facts.name)
            limit = moment_limit(known.evidence, 1 + at)
            marginal = _marginal(facts, known.distribution(facts.name), limit, moments, at)
            columns.append(Number(facts, marginal, missing.value if missing else 0.0))
    return tuple(columns)


def _marginal(
    facts: ColumnFacts,
    distribution: Distribution | None,
    limit: MomentLimit | None,
    moments: TableMoments,
    at: int,
) -> Marginal:
    lower, upper = facts.lower, facts.upper
    if distribution is not None:
        found = histogram_marginal(distribution, lower, upper, limit)
        if found is not None:
            return found
    mean = np.nan_to_num(moments.mean[at], nan=facts.centre)
    deviation = float(np.nan_to_num(moments.standard_deviation[at]))
    return clamped_normal(float(mean), deviation, lower, upper)


def _drawn(shares: Shares) -> Array:
    """Shares of the levels and, last, of cells of no level; equal ones if nothing is known.

    Without cells of no level if noise explains them.
    """
    found = shares.value.copy()
    if not np.isfinite(found).all():
        found = np.append(np.ones(len(found) - 1), 0.0)
    elif found[-1] <= max(_EXPLAINED * shares.noise_error[-1], 1e-9):
        found[-1] = 0.0
    drawn: Array = found / found.sum()
    return drawn


# Correlations of monotone functions of correlated normal variables, by Hermite expansions.
#
# With g(z) = sum a_k h_k(z) in normalised Hermite polynomials, E g_i(z_i) g_j(z_j) is
# sum a_ik a_jk rho^k for normal z_i, z_j with correlation rho (Mehler's formula). It increases with
# rho for nondecreasing functions.

_TERMS = 40
_HERMITE_GRID = np.linspace(-8.0, 8.0, 3201)
_CORRELATION_STEPS = 30  # of bisection
_LARGEST = 0.999  # latent correlation


def _polynomials() -> Array:
    """Normalised Hermite polynomials on the grid, times normal weights; shape (terms + 1, grid)."""
    weights = np.exp(-(_HERMITE_GRID**2) / 2)
    polynomials = [np.ones_like(_HERMITE_GRID), _HERMITE_GRID]
    for k in range(1, _TERMS):
        following = _HERMITE_GRID * polynomials[k] - np.sqrt(k) * polynomials[k - 1]
        polynomials.append(following / np.sqrt(k + 1))
    weighted: Array = np.stack(polynomials) * (weights / weights.sum())
    return weighted


_WEIGHTED = _polynomials()


def hermite_coefficients(marginal: Marginal) -> Array:
    """Coefficients of h_0, h_1, ..., and the variance.

    Returns shape (terms + 2,): the first one is the mean, and the last number is the variance of
    g(z).
    """
    values = marginal.values(_HERMITE_GRID)
    mean = float(_WEIGHTED[0] @ values)
    coefficients = _WEIGHTED @ (values - mean)  # a large mean would cost digits
    coefficients[0] = mean
    return np.append(coefficients, _WEIGHTED[0] @ (values - mean) ** 2)


def has_whole_numbers_alone(marginal: Marginal) -> bool:
    """Whether every cell is a whole number."""
    return bool((marginal.values(_HERMITE_GRID) % 1 == 0).all())


def latent_correlations(expanded: Array, covariances: Array) -> Array:
    """Latent correlations that give the covariances, as far as any do.

    `covariances`: of the columns; shape (q, q). Returns shape (q, q): between -0.999 and 0.999 off
    the diagonal; 1 on it.
    """
    a = expanded[:, 1:-1]
    low, high = (np.full(covariances.shape, end) for end in (-_LARGEST, _LARGEST))
    for _ in range(_CORRELATION_STEPS):
        middle = (low + high) / 2
        value = np.zeros_like(middle)
        for column in a.T[::-1]:
            value = (value + np.outer(column, column)) * middle
        below = value < covariances
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    latent: Array = (low + high) / 2
    constant = ~(expanded[:, -1] > 0)
    latent[constant, :] = latent[:, constant] = 0.0
    np.fill_diagonal(latent, 1.0)
    return latent


class Marginal(Protocol):
    """The distribution of a numeric column."""

    def values(self, latent: Array) -> Array:
        """Cells for standard normal values, nondecreasing; same shape."""
        ...


_STEPS = 60  # of bisection, and of a fixed point
_WIDEST, _NARROWEST = 1e3, 1e-6  # standard deviations of a latent normal, in ranges of the bounds
_TWO_VALUES = 0.98  # share of the largest variance from which all cells are at the bounds
_FAR = 1e9  # standard deviation of their latent normal, in ranges
_REACH = 10.0  # standard deviations around the bounds where its mean may be


@dataclass(frozen=True)
class ClampedNormal:
    """A normal variable, clamped to the bounds of its column."""

    # before clamping, in the column's units
    mean: float
    deviation: float
    lower: float
    upper: float

    def values(self, latent: Array) -> Array:
        return np.clip(self.mean + self.deviation * latent, self.lower, self.upper)


def clamped_normal(mean: float, deviation: float, lower: float, upper: float) -> ClampedNormal:
    """The clamped normal variable with a given mean and standard deviation.

    It exists for every distribution between the bounds. At the largest variance, that of two values
    at the bounds, the variable before clamping is infinitely wide; from 98 % of that variance on it
    is taken to be so, and a column of zeros and ones with these bounds stays one.

    `mean`, `deviation`: after clamping; brought into the possible range. `lower`, `upper`: finite
    bounds.

    For every width, the mean after clamping increases with the mean before; with the mean fixed,
    the variance increases with the width. Both are found by bisection.
    """
    width = upper - lower
    target = min(max((mean - lower) / width, 0.0), 1.0)
    variance = (deviation / width) ** 2
    if not (0 < target < 1 and variance > 0):
        return ClampedNormal(lower + target * width, 0.0, lower, upper)
    if variance > _TWO_VALUES * target * (1 - target):
        return ClampedNormal(float(ndtri(target)) * _FAR * width, _FAR * width, lower, upper)
    low, high = np.log([_NARROWEST, _WIDEST])
    for _ in range(_STEPS):
        s = float(np.exp((low + high) / 2))
        m = _latent_mean(target, s)
        first, second = _clamped_moments(m, s)
        low, high = (
            ((low + high) / 2, high) if second - first**2 < variance else (low, (low + high) / 2)
        )
    return ClampedNormal(lower + m * width, s * width, lower, upper)


def _latent_mean(target: float, s: float) -> float:
    low, high = -_REACH * s, 1 + _REACH * s
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _clamped_moments(middle, s)[0] < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _clamped_moments(m: float, s: float) -> tuple[float, float]:
    """First and second moment of a normal variable that is clamped to [0, 1]."""
    a, b = m / s, (m - 1) / s
    phi_a, phi_b = (float(np.exp(-x * x / 2)) / np.sqrt(2 * np.pi) for x in (a, b))
    above_a, above_b = float(ndtr(a)), float(ndtr(b))
    excess = (m - 1) * above_b + s * phi_b
    first = m * above_a + s * phi_a - excess
    squares = (m * m + s * s) * above_a + m * s * phi_a
    squares -= ((m - 1) ** 2 + s * s) * above_b + (m - 1) * s * phi_b
    return first, squares - 2 * excess


_TAIL = 0.1  # share of the rows
_TAIL_EXPLAINED = 1.5  # standard deviations of noise that explain the count beyond a tail's end
_SPIKE, _ROUNDS = 4.0, 4  # standard deviations above a smooth density; searches for such bins
_CONTRADICTED = 2.0  # standard deviations above a limit
_MOSTLY = 0.5  # share of a bin that makes it one of equal cells
_WIDER, _PARTS, _STEEPEST = 1.5, 8, 50.0  # of bins that are split


@dataclass(frozen=True)
class HistogramMarginal:
    """Evenly spread cells within every bin."""

    # ends of the bins, equal for a single value; in the column's units, shape (bins,)
    lower: Array
    upper: Array
    cumulative: Array  # share of the cells below every bin, and 1; shape (bins + 1,)

    def values(self, latent: Array) -> Array:
        probability = np.clip(ndtr(latent), 0.0, np.nextafter(1.0, 0.0))
        index = np.searchsorted(self.cumulative, probability, side="right") - 1
        index = np.minimum(index, self.lower.size - 1)
        start, share = self.cumulative[index], np.diff(self.cumulative)[index]
        part = (probability - start) / np.where(share > 0, share, 1.0)
        cells: Array = self.lower[index] + part * (self.upper - self.lower)[index]
        return cells


@dataclass(frozen=True)
class MomentLimit:
    """What a matrix of clipped rows says about cells far out.

    A row of weight w, with a cell z in scaled units, adds w z^2 to the matrix. As
    min(z^2, r^2) - w z^2 <= r^2 (1 - w) for every w from 0 to 1, the mean of min(z^2, r^2) is at
    most that of w z^2 and r^2 times the weight that clipping took away, both of which are released.
    """

    centre: float
    scale: float
    radius: float  # r
    most: float  # largest mean of min(z^2, r^2) of the cells that are present
    error: float  # standard deviation of its noise

    def excess(self, marginal: HistogramMarginal) -> float:
        """How far a distribution is above the limit, in standard deviations of the noise."""
        low, high = self.scaled(marginal.lower), self.scaled(marginal.upper)
        width = np.where(high > low, high - low, 1.0)
        spread = (self._integral(high) - self._integral(low)) / width
        mean = np.where(high > low, spread, np.minimum(low**2, self.radius**2))
        return (float(mean @ np.diff(marginal.cumulative)) - self.most) / self.error

    def scaled(self, cells: Array) -> Array:
        """Cells in scaled units."""
        return (cells - self.centre) / self.scale

    def _integral(self, z: Array) -> Array:
        """Of min(z^2, r^2), from 0."""
        inside = np.clip(z, -self.radius, self.radius)
        integral: Array = inside**3 / 3 + self.radius**2 * (z - inside)
        return integral


def moment_limit(evidence: Evidence, at: int) -> MomentLimit | None:
    """The limit of a numeric matrix column.

    None if rows were not clipped, if there is no noise, or if persons have several rows, of which
    histograms have one.
    """
    facts, r = evidence.columns[at], evidence.radius
    noise = evidence.deviations
    if r is None or evidence.persons or not noise[at, at] > 0 or not isinstance(facts, ColumnFacts):
        return None
    share = (evidence.present[at] if evidence.present else 1.0) or 1.0
    lost = max(1 - r**2 * float(evidence.raw[0, 0]), 0.0)
    return MomentLimit(
        facts.centre,
        facts.scale,
        r,
        r**2 * (float(evidence.raw[at, at]) + lost) / share,
        r**2 * math.hypot(float(noise[at, at]), r**2 * float(noise[0, 0])) / share,
    )


def histogram_marginal(
    distribution: Distribution, lower: float, upper: float, limit: MomentLimit | None = None
) -> HistogramMarginal | None:
    """The marginal of a published distribution.

    `lower`, `upper`: bounds to which cells were clamped. `limit`: what a matrix says about the
    cells. None if noise explains all counts.

    Cumulative counts are made nondecreasing by least squares. In each tail, which has a tenth of
    the rows, noise is a large part of the counts of wide bins, far from the centre; there the
    density is taken to be monotone, apart from bins that exceed it by more than noise explains, and
    to end where the count of all bins beyond is within one and a half standard deviations of the
    noise. Atoms keep their values.

    By chance, bins far out may keep counts that are small, but more than all other cells in a
    variance or a correlation. If `limit` contradicts the distribution, the farthest bins are left
    out until it agrees: bins beyond the radius, with counts that noise may give. If it does not
    agree without any of them, they are not the reason, and stay.
    """
    low, high, share, of_bin = distribution.parts
    counts = distribution.likely
    if not float(distribution.unbiased.sum()) > math.sqrt(
        max(float(distribution.errors[-1, -1]), 0)
    ):
        return None
    if not distribution.whole:
        atoms = np.bincount(of_bin[low == high], share[low == high], len(counts))
        widths = np.diff(np.clip(distribution.edges, lower, upper))
        sd = float(np.median(distribution.deviations))
        unbiased = np.where(counts > 0, distribution.unbiased, 0.0)
        counts = _smoothed(unbiased, widths, atoms > _MOSTLY, sd)
    found = _of_counts(distribution, counts, lower, upper)
    if found is None or limit is None or not limit.excess(found) > _CONTRADICTED:
        return found
    distance = np.abs(limit.scaled(distribution.edges))
    distance = np.maximum(distance[:-1], distance[1:])
    far = (distance > limit.radius) & (counts <= _SPIKE * distribution.deviations) & (counts > 0)
    order = np.flatnonzero(far)[np.argsort(-distance[far], kind="stable")]
    counts = counts.copy()
    for farthest in order:
        counts[farthest] = 0.0
        fewer = _of_counts(distribution, counts, lower, upper)
        if fewer is None or not limit.excess(fewer) > 0:
            return fewer or found
    return found


def _of_counts(
    distribution: Distribution, counts: Array, lower: float, upper: float
) -> HistogramMarginal | None:
    """The marginal with these counts in the bins of a distribution; None without any."""
    low, high, share, of_bin = distribution.parts
    masses = counts[of_bin] * share
    if not masses.sum() > 0:
        return None
    kept = masses > 0
    low, high, masses = _split(
        np.clip(low[kept], lower, upper), np.clip(high[kept], lower, upper), masses[kept]
    )
    cumulative = np.append(0.0, np.cumsum(masses) / masses.sum())
    cumulative[-1] = 1.0
    return HistogramMarginal(low, high, cumulative)


def _split(left: Array, right: Array, counts: Array) -> tuple[Array, Array, Array]:
    """Bins that are wider than the next one towards the median, split into parts.

    Their density is exponential, as the ratio of the two densities says; if it were even, cells
    would be too far from the median.
    """
    widths = right - left
    median = int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
    bins = []
    for k, (low, width, count) in enumerate(zip(left, widths, counts, strict=True)):
        inner = k + 1 if k < median else max(k - 1, 0)
        ratio = 1.0
        if min(count, widths[inner]) > 0 and width > _WIDER * widths[inner]:
            ratio = (counts[inner] / widths[inner]) * (width / count)
        if not ratio > 1:
            bins.append(np.array([[low], [low + width], [count]]))
            continue
        # At the inner end the logarithm of the density is between those of the two bins.
        # The rate of an exponential density on [0, 1] whose first value is `first`, above 1.
        first = ratio ** (width / (width + widths[inner]))
        decay = min(first, _STEEPEST)
        for _ in range(_STEPS):
            decay = max(min(first, _STEEPEST) * -float(np.expm1(-decay)), 1e-6)
        ends = np.linspace(0.0, 1.0, _PARTS + 1)
        shares = np.diff(np.expm1(-decay * ends)) / np.expm1(-decay)
        if k < median:
            shares = shares[::-1]
        edges = low + width * ends
        edges[-1] = right[k]
        bins.append(np.stack([edges[:-1], edges[1:], count * shares]))
    low, high, split = np.concatenate(bins, axis=1)
    return low, high, split


def _smoothed(counts: Array, widths: Array, single: NDArray[np.bool_], sd: float) -> Array:
    """Counts without negative ones, and with smooth tails; shape (bins,)."""
    cumulative = np.cumsum(counts)
    total = float(cumulative[-1])
    if not total > sd * np.sqrt(counts.size):
        return np.zeros_like(counts)
    cumulative = np.clip(scipy.optimize.isotonic_regression(cumulative).x, 0.0, total)
    smoothed: Array = np.diff(cumulative, prepend=0.0)
    if sd > 0:
        first = int(np.searchsorted(cumulative, _TAIL * total))
        last = int(np.searchsorted(cumulative, (1 - _TAIL) * total, side="right")) + 1
        for tail in (slice(0, first), slice(counts.size - 1, last - 1, -1)):
            smoothed[tail] = _tail(counts[tail], widths[tail], single[tail], sd)
    return smoothed


def _tail(counts: Array, widths: Array, single: NDArray[np.bool_], sd: float) -> Array:
    """Counts of a tail from its end: those of a nondecreasing density, and of spikes in it."""
    smooth, fitted = ~single & (widths > 0), np.zeros_like(counts)
    for _ in range(_ROUNDS):
        if not smooth.any():
            break
        density = scipy.optimize.isotonic_regression(
            counts[smooth] / widths[smooth], weights=widths[smooth], increasing=True
        ).x
        fitted[smooth] = density * widths[smooth]
        spikes = smooth & (counts - fitted > _SPIKE * sd)
        if not spikes.any():
            break
        smooth &= ~spikes
    kept = np.where(smooth, np.maximum(fitted, 0.0), np.where(counts > _SPIKE * sd, counts, 0.0))
    explained = np.cumsum(counts) <= _TAIL_EXPLAINED * sd * np.sqrt(np.arange(1, counts.size + 1))
    kept[: counts.size if explained.all() else int(np.argmin(explained))] = 0.0
    mass = float(kept.sum())
    total = max(float(counts.sum()), 0.0)
    return kept * (total / mass if mass > 0 else 0.0)
