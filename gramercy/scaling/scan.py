"""Centre and scale of a column from its noisy histogram."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.scaling.constants import BINS, LARGEST_WINSOR, LEAST_WINSOR, Constants, rounded
from gramercy.scaling.grid import Grid

Array = NDArray[np.float64]

_COVERED = 0.999
_PENALTY = 2.0
_TOLERANCE = 0.0
_USUAL, _SURPRISE = 16.0, 3.0
_MEMORY = 0.25
_CHANCE = 16.0  # squared standard deviations that the best of some 10,000 runs reaches by chance
_TOO_FEW = 4.0
_LEAST_SQUARE = 1 / 144  # of the second moment of a run, for the square of its width
_NARROW, _SHORT = 1e-6, 1e-3
_WIDTH_WEIGHT = 0.3
_COLLAPSE = 1e-5
_SMALLEST_RATIO = 2.0**-40
_WINSOR_GROWTH = 0.5
_UNRESOLVED, _FINE_BINS = 3, 128
_FINER = ((300.0, 32), (1500.0, 64))  # rows per noise, bins


@dataclass(frozen=True)
class _Histogram:
    """A noisy histogram of the cells with a value, all of which have the sum `mass`."""

    counts: Array
    edges: Array
    sd: float
    mass: float
    bins: int

    @property
    def half_edges(self) -> Array:
        """Half of each edge: differences of edges may be larger than the largest float."""
        return self.edges / 2

    def variance(self, width: Array) -> Array:
        """Variance of the sum of `width` neighbouring counts; the sum of all is known."""
        known = width * (1 - width / self.bins)
        return np.maximum(known, 0.5) * (self.sd * self.sd)


def column_constants(
    counts: NDArray[np.int64],
    grid: Grid,
    sd: float,
    n: float,
    previous: Constants | None,
    lower: float | None,
    upper: float | None,
) -> Constants:
    """Choose centre and scale of a column from a noisy histogram.

    Parameters
    ----------
    counts
        Noisy counts of the bins of `grid`; any integers.
    grid
        The bins.
    sd
        Standard deviation of the noise of a count.
    n
        Number of rows or persons, public or estimated.
    previous
        Constants from the stage before, or None in the first stage.
    lower, upper
        Declared bounds, or None.

    Notes
    -----
    First, all counts are shifted by the same amount, so that their sum is n. Then a run of
    neighbouring bins is chosen, see `_best_run`. No count is compared with a threshold, because
    one false bin or one lost tail would spoil the column. Centre and scale are the mean and the
    standard deviation of the run. The scale is at least a twelfth of the run's width, but not
    larger than the noise of the second moment requires, and at most half of the width.

    Where nearly all cells are in the narrow bin around zero, other values are rare, and the noise
    hides how rare. The scale then follows from the most conspicuous other run and from the mass
    outside.
    """
    values = counts.astype(np.float64)
    values += (n - float(counts.sum())) / len(values)
    present = _present(float(values[-1]), sd, n)
    histogram = _Histogram(values[:-1], grid.edges, sd, n * present, len(values))
    first, last = _best_run(histogram, previous and previous.scale)
    centre, scale = _moments(histogram, first, last)
    reference = _reference(previous, lower, upper)
    if _is_zero_alone(histogram, first, last, reference):
        scale = _scale_of_rare_values(histogram, first, last)
    if previous is not None and scale < _COLLAPSE * previous.scale:
        centre, scale = previous.centre, previous.scale
    if previous is not None and previous.bins < _FINE_BINS and 0.25 < scale / previous.scale < 4:
        share = _MEMORY
        if abs(centre - previous.centre) < scale:
            centre = (1 - share) * centre + share * previous.centre
        ratio = scale / previous.scale
        scale = scale * (1 - share + share / ratio)
    centre, scale = rounded(centre, max(scale, abs(centre) * _SMALLEST_RATIO))
    if lower is not None and upper is not None:
        centre = min(max(centre, lower), upper)
    strength = histogram.mass / sd
    winsor = min(max(_WINSOR_GROWTH * math.sqrt(strength), LEAST_WINSOR), LARGEST_WINSOR)
    return Constants(
        centre,
        scale,
        float(f"{present:.6g}"),
        float(f"{winsor:.2g}"),
        _next_bins(last - first, strength),
    )


def _present(missing: float, sd: float, n: float) -> float:
    """Share of rows with a value: 1 unless missing cells exceed their noise."""
    share = max(missing, 0.0) / n
    if share <= 3 * sd / n:
        return 1.0
    return min(max(1 - share, sd / n, 1e-6), 1.0)


def _best_run(histogram: _Histogram, expected: float | None = None) -> tuple[int, int]:
    """First and last edge of the run of bins that is short and leaves little out.

    Among all runs, that with the least ``log2 W + 2 z^2 + 2 max(0, t^2 - 16)`` is chosen: W is its
    width, z what its mass lacks of 99.9 % of the column's cells, in standard deviations of the
    noise, and t the same for the most conspicuous run outside of it. The first finds tails that
    are spread over many bins, the second a few distant bins.
    """
    edges, sums = histogram.edges, _sums(histogram.counts)
    mass = sums[None, :] - sums[:, None]  # of the run from edge i to edge j
    index = np.arange(len(edges))
    bins = index[None, :] - index[:, None]
    runs = bins > 0
    width = np.where(runs, bins, 1).astype(np.float64)
    lost = np.maximum(_COVERED * histogram.mass - mass, 0.0)
    spare = (1 - _COVERED) * histogram.mass
    surprise = np.maximum(mass - spare, 0.0)
    surprise = np.where(runs, surprise * surprise / (width * (histogram.sd * histogram.sd)), 0.0)
    before = np.maximum.accumulate(surprise.max(axis=0))
    after = np.maximum.accumulate(surprise.max(axis=1)[::-1])[::-1]
    outside = np.maximum(before[:, None], after[None, :])
    halves = histogram.half_edges
    length = np.where(runs, halves[None, :] - halves[:, None], 1.0)
    doubt = np.maximum(lost / np.sqrt(histogram.variance(width)) - _TOLERANCE, 0.0)
    objective = binary_logarithm(length) + _PENALTY * doubt * doubt
    objective += _PENALTY * np.maximum(outside - _CHANCE, 0.0)
    if expected is not None:
        longer = binary_logarithm(length / (_USUAL * expected / 2))
        objective += _SURPRISE * np.maximum(longer, 0.0)
    best = int(np.argmin(np.where(runs, objective, np.inf)))
    return best // len(edges), best % len(edges)


def _moments(histogram: _Histogram, first: int, last: int) -> tuple[float, float]:
    """Mean and standard deviation of a run, with raw counts: negative ones are kept."""
    counts, sd = histogram.counts[first:last], histogram.sd
    low, half = histogram.half_edges[first], histogram.half_edges[last]
    half -= low  # half of the width, which itself may be larger than the largest float
    total = math.fsum(counts)
    mean, deviation = 0.5, 0.25
    if total >= _TOO_FEW * sd * math.sqrt(last - first):
        places = (histogram.half_edges[first : last + 1] - low) / half  # from 0 to 1
        widths = np.diff(places)
        middles = places[:-1] + widths / 2
        mean = min(max(math.fsum(counts * middles) / total, 0.0), 1.0)
        squares = (middles - mean) ** 2 + widths * widths / 12
        square = math.fsum(counts * squares) / total
        noise = sd * math.sqrt(math.fsum(squares * squares)) / total
        deviation = math.sqrt(min(max(square, min(_LEAST_SQUARE, noise)), 1 / 4))
    return 2 * float(low + half * mean), 2 * float(half * deviation)


def _reference(previous: Constants | None, lower: float | None, upper: float | None) -> float:
    """The scale that the narrow bin around zero is compared with."""
    if previous is not None:
        return previous.scale
    return 1.0 if lower is None or upper is None else upper / 2 - lower / 2


def _is_zero_alone(histogram: _Histogram, first: int, last: int, reference: float) -> bool:
    """Whether a run is narrow, and all of its mass is in the narrow bin around zero."""
    halves, counts = histogram.half_edges, histogram.counts
    zero = min(int(np.searchsorted(histogram.edges, 0.0, side="right")), last) - 1
    if not (first <= zero and histogram.edges[zero] <= 0 <= histogram.edges[zero + 1]):
        return False
    widths = float(halves[zero + 1] - halves[zero]), float(halves[last] - halves[first])
    rest = math.fsum(counts[first:last]) - float(counts[zero])
    noise = histogram.sd * math.sqrt(last - first - 1)
    return widths[0] < _NARROW * reference and widths[1] < _SHORT * reference and rest <= 2 * noise


def _scale_of_rare_values(histogram: _Histogram, first: int, last: int) -> float:
    """Scale of a column that is zero except for rare values outside of a run."""
    edges, sums = histogram.edges, _sums(histogram.counts)
    index = np.arange(len(edges))
    bins = (index[None, :] - index[:, None]).astype(np.float64)
    outside = (bins > 0) & ((index[None, :] <= first) | (index[:, None] >= last))
    bins = np.maximum(bins, 1.0)
    mass = sums[None, :] - sums[:, None]
    # Wider runs are preferred a little: a chance maximum is more often a single bin.
    evidence = mass / np.sqrt(histogram.variance(bins)) + _WIDTH_WEIGHT * binary_logarithm(bins)
    best = int(np.argmax(np.where(outside, evidence, -np.inf)))
    low, high = edges[best // len(edges)], edges[best % len(edges)]
    inside = float(sums[last] - sums[first])
    share = min(max(histogram.mass - inside, histogram.sd) / histogram.mass, 1.0)
    return math.sqrt(share) * float(max(abs(low), abs(high)))


def _next_bins(run: int, strength: float) -> int:
    """Number of equal bins of the next stage."""
    if run <= _UNRESOLVED:
        return _FINE_BINS
    bins = BINS
    for limit, finer in _FINER:
        if strength >= limit:
            bins = finer
    return bins


def _sums(counts: Array) -> Array:
    """Sum of the counts before every edge."""
    return np.concatenate([[0.0], np.cumsum(counts)])


def binary_logarithm(values: Array) -> Array:
    """Base-two logarithm to about 1e-7 by basic operations only: equal on every machine."""
    mantissas, exponents = np.frexp(values)
    root = math.sqrt(0.5)
    ratio = (mantissas - root) / (mantissas + root)
    square = ratio * ratio
    series = ratio * (1 + square * (1 / 3 + square * (1 / 5 + square * (1 / 7 + square / 9))))
    result: Array = exponents - 0.5 + series * (2 / math.log(2))
    return result
