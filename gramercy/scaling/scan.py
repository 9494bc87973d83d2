"""Centre and scale of a column from its noisy histogram."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gramercy.scaling.constants import BINS, LARGEST_WINSOR, LEAST_WINSOR, Constants, rounded
from gramercy.scaling.grid import Grid
from gramercy.scaling.runs import NoisyHistogram, best_run, size_of_rare_values

_TOO_FEW = 4.0
_LEAST_SQUARE = 1 / 144
_NARROW, _SHORT = 1e-6, 1e-3
_RARE_SIZE = 1 / 256
_MEMORY, _SIMILAR = 0.25, 4.0
_COLLAPSE = 1e-5
_SMALLEST_RATIO = 2.0**-40
_WINSOR_GROWTH = 0.5
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
    neighbouring bins is chosen, see `runs.best_run`. No count is compared with a threshold, because
    one false bin or one lost tail would spoil the column. Centre and scale are the mean and the
    standard deviation of the run. If those of the stage before are similar, they count for a
    quarter, because their noise is independent.

    Where nearly all cells are in the narrow bin around zero, other values are rare, and the noise
    hides how rare. The scale then follows from the mass outside of the run and from the size of
    rare values, see `runs.size_of_rare_values`.
    """
    values = counts.astype(np.float64)
    values += (n - float(counts.sum())) / len(values)
    present = _present(float(values[-1]), sd, n)
    histogram = NoisyHistogram(values[:-1], grid.edges, sd, n * present)
    first, last = best_run(histogram, previous.scale if previous else None)
    centre, scale = _moments(histogram, first, last)
    if _is_zero_alone(histogram, first, last, _reference(previous, lower, upper)):
        scale = _scale_of_rare_values(histogram, first, last, lower, upper)
    if previous is not None:
        centre, scale = _with_memory(centre, scale, previous)
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


def _moments(histogram: NoisyHistogram, first: int, last: int) -> tuple[float, float]:
    """Mean and standard deviation of a run, with raw counts: negative ones are kept.

    The deviation is at least a twelfth of the run's width where the noise of the second moment is
    larger, and at most half of the width. If the run has too few cells, its middle and a quarter of
    its width.
    """
    counts, sd = histogram.counts[first:last], histogram.sd
    low, half = histogram.half_edges[first], histogram.half_edges[last]
    half -= low  # half of the width, which itself may exceed the largest float
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


def _is_zero_alone(histogram: NoisyHistogram, first: int, last: int, reference: float) -> bool:
    """Whether a run is narrow, and all of its mass is in the narrow bin around zero."""
    halves, counts = histogram.half_edges, histogram.counts
    zero = min(int(np.searchsorted(histogram.edges, 0.0, side="right")), last) - 1
    if not (first <= zero and histogram.edges[zero] <= 0 <= histogram.edges[zero + 1]):
        return False
    widths = float(halves[zero + 1] - halves[zero]), float(halves[last] - halves[first])
    rest = math.fsum(counts[first:last]) - float(counts[zero])
    noise = histogram.sd * math.sqrt(last - first - 1)
    return widths[0] < _NARROW * reference and widths[1] < _SHORT * reference and rest <= 2 * noise


def _scale_of_rare_values(
    histogram: NoisyHistogram, first: int, last: int, lower: float | None, upper: float | None
) -> float:
    """Scale of a column that is zero except for rare values outside of a run."""
    inside = math.fsum(histogram.counts[first:last])
    share = min(max(histogram.mass - inside, histogram.sd) / histogram.mass, 1.0)
    usual = 1.0
    if lower is not None and upper is not None:
        usual = max(abs(lower), abs(upper)) * _RARE_SIZE
    return math.sqrt(share) * size_of_rare_values(histogram, first, last, usual)


def _with_memory(centre: float, scale: float, previous: Constants) -> tuple[float, float]:
    """Combine constants with those of the stage before; without any spread, keep those."""
    if scale < _COLLAPSE * previous.scale:
        return previous.centre, previous.scale
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
