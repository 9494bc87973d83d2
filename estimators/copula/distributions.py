"""Distributions of numeric columns as functions of a normal variable, and their covariances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from gramercy.schemas.evidence import Histogram

# Correlations of monotone functions of correlated normal variables, by Hermite expansions.
#
# With g(z) = sum a_k h_k(z) in normalised Hermite polynomials, E g_i(z_i) g_j(z_j) is
# sum a_ik a_jk rho^k for normal z_i, z_j with correlation rho (Mehler's formula). It increases with
# rho for nondecreasing functions.

Array = NDArray[np.float64]

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
_TAIL_EXPLAINED = 1.5  # standard deviations of noise that explain the count beyond the end of a tail
_SPIKE, _ROUNDS = 4.0, 4  # standard deviations above a smooth density; searches for such bins
_ATOM = 1e-6  # width of a bin in scales, below which all of its cells are equal
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


def histogram_marginal(
    histogram: Histogram, lower: float, upper: float, scale: float
) -> HistogramMarginal | None:
    """The distribution that a noisy histogram gives.

    `histogram`: of a numeric column. `lower`, `upper`: bounds to which cells were clamped. `scale`:
    of the column; narrower bins by a factor of a million hold one value. None if noise explains all
    counts.

    Cumulative counts are made nondecreasing by least squares. In each tail, which has a tenth of
    the rows, noise is a large part of the counts of wide bins, far from the centre; there the
    density is taken to be monotone, apart from bins that exceed it by more than noise explains, and
    to end where the count of all bins beyond is within one and a half standard deviations of the
    noise.
    """
    left = np.clip(histogram.lower[:-1], lower, upper)
    right = np.clip(histogram.upper[:-1], lower, upper)
    single = right - left < _ATOM * scale
    counts = _smoothed(histogram.count[:-1].astype(np.float64), right - left, single, histogram.sd)
    if not counts.sum() > 0:
        return None
    value = np.where((left <= 0) & (right >= 0), 0.0, (left + right) / 2)
    left, right = np.where(single, value, left), np.where(single, value, right)
    left, right, counts = _split(left, right, counts)
    cumulative = np.append(0.0, np.cumsum(counts) / counts.sum())
    cumulative[-1] = 1.0
    return HistogramMarginal(left, right, cumulative)


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
