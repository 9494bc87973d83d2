"""Bins of a column's histogram, and its centre and scale from the noisy counts in them.

Bins are fixed by public facts, and by constants already published.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from gramercy.scaling.runs import SEEN, centred

_LEAST_SQUARE = 1e-6
_MEMORY, _SIMILAR = 0.25, 4.0
_SMALLEST_RATIO = 2.0**-40
_UNRESOLVED, _FINE_BINS = 3, 128
_FINER = ((300.0, 32), (1500.0, 64))  # rows per noise, bins


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

    First, all counts are shifted by the same amount, so that their sum is n. Then a run of
    neighbouring bins is chosen, see `best_run`. No count is compared with a threshold, because
    one false bin or one lost tail would spoil the column. Centre and scale are the mean and the
    standard deviation of the run. If those of the stage before are similar, they count for a
    quarter, because their noise is independent.
    """
    values = centred(counts, n)
    present = present_share(float(values[-1]), sd, n)
    histogram = NoisyHistogram(values[:-1], grid.edges, sd, n * present)
    first, last = best_run(histogram, previous.scale if previous else None)
    centre, scale = _moments(histogram, first, last)
    if previous is not None:
        centre, scale = _with_memory(centre, scale, previous)
    centre, scale = rounded(centre, max(scale, abs(centre) * _SMALLEST_RATIO))
    if lower is not None and upper is not None:
        centre = min(max(centre, lower), upper)
    strength = histogram.mass / sd
    return Constants(
        centre,
        scale,
        present,
        _next_bins(last - first, strength),
    )


def present_share(missing: float, sd: float, n: float) -> float:
    """Share of rows with a value: 1 unless missing cells exceed their noise."""
    share = max(missing, 0.0) / n
    if share <= SEEN * sd / n:
        return 1.0
    return float(f"{min(max(1 - share, sd / n, 1e-6), 1.0):.6g}")


def _moments(histogram: NoisyHistogram, first: int, last: int) -> tuple[float, float]:
    """Mean and standard deviation of a run, with raw counts: negative ones are kept.

    The deviation is at most half of the width. If the run has no cells, its middle and a quarter of
    its width.
    """
    counts = histogram.counts[first:last]
    low, half = histogram.half_edges[first], histogram.half_edges[last]
    half -= low  # half of the width, which itself may exceed the largest float
    total = math.fsum(counts)
    mean, deviation = 0.5, 0.25
    if total > 0:
        places = (histogram.half_edges[first : last + 1] - low) / half  # from 0 to 1
        widths = np.diff(places)
        middles = places[:-1] + widths / 2
        mean = min(max(math.fsum(counts * middles) / total, 0.0), 1.0)
        squares = (middles - mean) ** 2 + widths * widths / 12
        square = math.fsum(counts * squares) / total
        deviation = math.sqrt(min(max(square, _LEAST_SQUARE), 1 / 4))
    return 2 * float(low + half * mean), 2 * float(half * deviation)


def _with_memory(centre: float, scale: float, previous: Constants) -> tuple[float, float]:
    """Combine constants with those of the stage before, unless nearly all cells were in one bin."""
    resolved = previous.bins < _FINE_BINS
    if resolved and 1 / _SIMILAR < scale / previous.scale < _SIMILAR:
        if abs(centre - previous.centre) < scale:
            centre += _MEMORY * (previous.centre - centre)
        scale += _MEMORY * (previous.scale - scale)
    return centre, scale


def _next_bins(run: int, strength: float) -> int:
    """Number of equal bins of the next stage."""
    if run <= _UNRESOLVED:
        return _FINE_BINS
    bins = BINS
    for limit, finer in _FINER:
        if strength >= limit:
            bins = finer
    return bins


Array = NDArray[np.float64]

_PENALTY = 2.0
_CHANCE = 16.0  # squared standard deviations that the best of some 10,000 runs reaches by chance
_USUAL_WIDTH, _SURPRISE = 16.0, 3.0


@dataclass(frozen=True)
class NoisyHistogram:
    """A noisy histogram of a column."""

    # noisy counts of cells with a value, shifted so that their sum, together with that of the
    # missing cells, is the number of rows; shape (bins - 1,)
    counts: Array
    edges: Array  # edges of their bins, shape (bins,)
    sd: float  # standard deviation of the noise of a count
    mass: float  # number of cells with a value

    @property
    def half_edges(self) -> Array:
        """Half of each edge: the differences of edges may exceed the largest float."""
        return self.edges / 2

    @property
    def sums(self) -> Array:
        """Sum of the counts before every edge."""
        return np.concatenate([[0.0], np.cumsum(self.counts)])

    @property
    def run_masses(self) -> Array:
        """Noisy mass of the run from edge i to edge j, shape (bins, bins)."""
        sums = self.sums
        masses: Array = sums[None, :] - sums[:, None]
        return masses

    @property
    def run_bins(self) -> Array:
        """Number of bins of the run from edge i to edge j; not positive if there is none."""
        index = np.arange(len(self.edges), dtype=np.float64)
        bins: Array = index[None, :] - index[:, None]
        return bins

    def variance(self, bins: Array) -> Array:
        """Variance of the mass of a run of so many bins; the sum of all counts is known."""
        known = bins * (1 - bins / len(self.edges))
        return np.maximum(known, 0.5) * (self.sd * self.sd)


def best_run(histogram: NoisyHistogram, expected: float | None) -> tuple[int, int]:
    """First and last edge of the run of bins that is short and leaves little out.

    Among all runs, that with the least ``log2 W + 2 z^2 + 2 max(0, t^2 - 16) + 3 max(0, log2(W /
    (16 s)))`` is chosen: W is its width, z what its mass lacks of the column's cells, in
    standard deviations of the noise, t the same for the most conspicuous run outside of it, and s
    the expected scale. z finds tails that are spread over many bins, t a few distant bins; the last
    term asks for more evidence where the earlier histogram did not show a tail.
    """
    masses, halves = histogram.run_masses, histogram.half_edges
    runs = histogram.run_bins > 0
    bins = np.maximum(histogram.run_bins, 1.0)
    lost = np.maximum(histogram.mass - masses, 0.0)
    half_width = np.where(runs, halves[None, :] - halves[:, None], 1.0)
    objective = binary_logarithm(half_width) + _PENALTY * lost * lost / histogram.variance(bins)
    found = np.where(runs, np.maximum(masses, 0.0), 0.0)
    found = found * found / (bins * (histogram.sd * histogram.sd))
    before = np.maximum.accumulate(found.max(axis=0))
    after = np.maximum.accumulate(found.max(axis=1)[::-1])[::-1]
    outside = np.maximum(before[:, None], after[None, :])
    objective += _PENALTY * np.maximum(outside - _CHANCE, 0.0)
    if expected is not None:
        longer = binary_logarithm(half_width / (_USUAL_WIDTH * expected / 2))
        objective += _SURPRISE * np.maximum(longer, 0.0)
    best = int(np.argmin(np.where(runs, objective, np.inf)))
    return best // len(halves), best % len(halves)


def binary_logarithm(values: Array) -> Array:
    """Base-two logarithm to about 1e-7 by basic operations only: equal on every machine."""
    mantissas, exponents = np.frexp(values)
    root = math.sqrt(0.5)
    ratio = (mantissas - root) / (mantissas + root)
    square = ratio * ratio
    series = ratio * (1 + square * (1 / 3 + square * (1 / 5 + square * (1 / 7 + square / 9))))
    result: Array = exponents - 0.5 + series * (2 / math.log(2))
    return result


WINSOR = 8.0  # scales from the centre to which cells are clamped, where no tail is seen
BINS = 16


@dataclass(frozen=True)
class Constants:
    """Constants of a numeric column, from published counts."""

    # centre, scale: in the column's units; `scale` is positive
    centre: float
    scale: float
    present: float  # share of rows with a value, in (0, 1]
    # Number of equal bins around the centre that suits the next histogram. Its counts have the same
    # noise however narrow the bins are: many bins pay only if noise is small, or if nearly all
    # cells are in one bin, so that the scale is not known yet.
    bins: int = BINS


def rounded(centre: float, scale: float) -> tuple[float, float]:
    """Round a scale to three digits, and a centre to a tenth of the scale's leading power of ten.

    Three digits of the centre itself would turn 1013.25 with a scale of 0.1 into 1010. The
    arithmetic is decimal, so that the result is the nearest number to a short decimal.
    """
    step = Decimal(1).scaleb(Decimal(scale).adjusted() - 1)
    steps = int((Decimal(centre) / step).to_integral_value())  # an integer has no negative zero
    return float(steps * step), float(f"{scale:.2e}")


AROUND_ZERO = 1e-9
_OCTAVES = (*range(1, 15), 16, 18, 20)
SMALLEST_OCTAVE, _LARGEST_OCTAVE = -30, 40
_REACH, _LARGEST_REACH = 4.0, 2.0**1020
_LEAST_RATIO = 1.5  # of the distances of the ends of a bin far out


@dataclass(frozen=True)
class Grid:
    """A partition of the cells of a numeric column into bins."""

    # Increasing and finite, shape (bins,). Bin k is [edges[k], edges[k + 1]); smaller cells are in
    # the first of these bins, larger ones, and those equal to the last edge, in the last of them.
    # The last bin of all, with index len(edges) - 1, counts missing cells.
    edges: Array

    @property
    def size(self) -> int:
        """Number of bins, including the bin of missing cells."""
        return len(self.edges)


@dataclass(frozen=True)
class LevelGrid:
    """One bin for each level of a column, and one for cells that are not a level."""

    levels: int

    @property
    def size(self) -> int:
        """Number of bins, including the bin of other cells."""
        return self.levels + 1


def first_grid(lower: float | None, upper: float | None) -> Grid:
    """Return the bins of the first stage, which depend on the bounds only.

    Returns
    -------
    Grid
        With bounds: narrow bins at both of them, and 16 equal bins; where zero is within, also
        octaves on both sides of zero and a narrow bin around it, because many columns have most of
        their cells at or near zero. Few bins, because every one adds noise to the runs.
        Without bounds: octaves from 2^-30 to 2^40 on both sides of zero.
    """
    if lower is None or upper is None:
        octaves = np.ldexp(1.0, np.arange(SMALLEST_OCTAVE, _LARGEST_OCTAVE + 1))
        return Grid(np.concatenate([-octaves[::-1], octaves]))
    zero_is_within = lower <= 0 <= upper
    shares = np.arange(BINS + 1) / BINS
    narrow = (upper / 2 - lower / 2) * (2 * AROUND_ZERO)
    edges = [
        lower * (1 - shares) + upper * shares,
        np.array([lower, lower + narrow, upper - narrow, upper]),
    ]
    if zero_is_within:
        octaves = np.ldexp(max(-lower, upper), -np.array(_OCTAVES))
        edges += [octaves, -octaves, np.array([-narrow, narrow])]
    return merged_grid(edges, lower, upper)


def zoomed_grid(constants: Constants, lower: float | None, upper: float | None) -> Grid:
    """Return the bins of the next stage, around published constants.

    Returns `Constants.bins` equal bins within four scales of the centre, a narrow bin around zero,
    where values often coincide, and about an octave of distance in each bin farther out. These are
    unions of bins of the first stage as far as it has any, so that the counts of all stages are of
    the same cells.
    """
    first = first_grid(lower, upper).edges
    least, largest = float(first[0]), float(first[-1])
    centre, half = constants.centre, constants.bins // 2
    reach = min(_REACH * constants.scale, _LARGEST_REACH)
    parts = [centre + reach * (np.arange(-half, half + 1) / half), np.array([least, largest])]
    for side, edges in ((1.0, first[::-1].tolist()), (-1.0, first.tolist())):
        # Halves of distances, which may exceed the largest float.
        farther = side * (edges[0] / 2 - centre / 2)
        for edge in edges[1:]:
            distance = side * (edge / 2 - centre / 2)
            if distance < _LEAST_RATIO * reach:
                break
            if farther >= _LEAST_RATIO * distance:
                parts.append(np.array([edge]))
                farther = distance
        octave = reach
        while octave <= farther:
            parts.append(np.array([centre + side * 2 * octave]))
            octave *= 2 if 2 * _LEAST_RATIO * octave <= farther else math.inf
    if max(centre - reach, least) <= 0 <= min(centre + reach, largest):
        narrow = AROUND_ZERO * constants.scale
        parts.append(np.array([-narrow, narrow]))
    return merged_grid(parts, least, largest)


def merged_grid(parts: list[Array], lower: float, upper: float) -> Grid:
    """One partition of [lower, upper] with all of these edges."""
    return Grid(np.unique(np.clip(np.concatenate(parts), lower, upper)))
