"""The distribution that a noisy histogram gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import ndtr

from gramercy.schemas.evidence import Histogram

Array = NDArray[np.float64]

_TAIL = 0.1  # share of the rows
_EXPLAINED = 1.5  # standard deviations of noise that explain the count beyond the end of a tail
_SPIKE, _ROUNDS = 4.0, 4  # standard deviations above a smooth density; searches for such bins
_ATOM = 1e-6  # width of a bin in scales, below which all of its cells are equal
_WIDER, _PARTS, _STEEPEST = 1.5, 8, 50.0  # of bins that are split
_STEPS = 60  # of a fixed point


@dataclass(frozen=True)
class HistogramMarginal:
    """Evenly spread cells within every bin.

    Parameters
    ----------
    lower, upper
        Ends of the bins, equal for a single value; in the column's units, shape (bins,).
    cumulative
        Share of the cells below every bin, and 1; shape (bins + 1,).
    """

    lower: Array
    upper: Array
    cumulative: Array

    def values(self, latent: Array) -> Array:
        """See `Marginal.values`."""
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

    Parameters
    ----------
    histogram
        Of a numeric column.
    lower, upper
        Bounds to which cells were clamped.
    scale
        Of the column; narrower bins by a factor of a million hold one value.

    Returns
    -------
    HistogramMarginal or None
        None if noise explains all counts.

    Notes
    -----
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
        decay = _decay(ratio ** (width / (width + widths[inner])))
        ends = np.linspace(0.0, 1.0, _PARTS + 1)
        shares = np.diff(np.expm1(-decay * ends)) / np.expm1(-decay)
        if k < median:
            shares = shares[::-1]
        edges = low + width * ends
        edges[-1] = right[k]
        bins.append(np.stack([edges[:-1], edges[1:], count * shares]))
    low, high, split = np.concatenate(bins, axis=1)
    return low, high, split


def _decay(ratio: float) -> float:
    """The rate of an exponential density on [0, 1] whose first value is `ratio`, above 1."""
    rate = min(ratio, _STEEPEST)
    for _ in range(_STEPS):
        rate = max(min(ratio, _STEEPEST) * -float(np.expm1(-rate)), 1e-6)
    return rate


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
    explained = np.cumsum(counts) <= _EXPLAINED * sd * np.sqrt(np.arange(1, counts.size + 1))
    kept[: counts.size if explained.all() else int(np.argmin(explained))] = 0.0
    mass = float(kept.sum())
    total = max(float(counts.sum()), 0.0)
    scaled: Array = kept * (total / mass if mass > 0 else 0.0)
    return scaled
