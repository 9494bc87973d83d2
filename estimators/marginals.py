"""Shares and quantiles from published marginals, with intervals.

Every count of a histogram has independent noise of one standard deviation, and the counts of a
column add up to the number of rows, which is public or has noise of its own. Where the number is
public this is worth knowing: a cumulative count is then known from both of its ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray
from scipy.special import ndtri

from gramercy.schemas.evidence import Histogram
from gramercy.schemas.facts import RowsFacts
from gramercy.schemas.manifest import ReleaseManifest

Array = NDArray[np.float64]

EXPLAINED = 2.0  # standard deviations of noise that explain a difference
UNIT = 1.0  # of whole numbers
_NARROW = 1e-3  # share of the width of a neighbour
_CERTAINLY = 4.0  # standard deviations that the sum of empty bins hardly ever exceeds
_FEW, _CLEARLY = 0.01, 4.0  # share of cells that need not be whole; times what noise explains


def are_whole(counts: Array, edges: Array, sd: float) -> bool:
    """Whether the cells of a column are whole numbers, as far as its bins can tell.

    In bins of at most half a unit, smooth densities would have far more cells between whole numbers
    than noise explains, and all other bins have no more than that.
    """
    widths = np.diff(edges)
    fine = widths <= UNIT / 2
    between = fine & ~contain_whole_numbers(edges)
    explained = [
        EXPLAINED * sd * math.sqrt(chosen.sum()) + _FEW * counts.sum()
        for chosen in (between, ~fine)
    ]
    if counts[between].sum() > explained[0] or counts[~fine].sum() > explained[1]:
        return False
    smooth = counts[fine].sum() * widths[between].sum() / max(widths[fine].sum(), 1e-300)
    return bool(smooth > _CLEARLY * explained[0])


def occupied(counts: Array, sd: float) -> slice:
    """The bins between the outermost ones whose counts noise does not give.

    On each side, this is the end of the outermost run of bins whose sum is clearly above zero; all
    bins if there is no such run. Farther out, most bins are empty, and the sum of their noise
    exceeds what is left of a column's tail.
    """
    last = _outermost(counts[::-1], sd)
    first = _outermost(counts, sd)
    if first is None or last is None or first > counts.size - 1 - last:
        return slice(0, counts.size)
    return slice(first, counts.size - last)


def _outermost(counts: Array, sd: float) -> int | None:
    """Index of the outer end of the first significant run, which extends towards the beginning."""
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    for inner in range(1, counts.size + 1):
        lengths = np.arange(1, inner + 1)
        significant = sums[inner] - sums[inner - lengths] > _CERTAINLY * sd * np.sqrt(lengths)
        if significant.any():
            return inner - 1 - int(np.argmax(significant))
    return None


def contain_whole_numbers(edges: Array) -> NDArray[np.bool_]:
    """Which bins contain a whole number; the last one includes its upper edge."""
    found = np.ceil(edges[:-1]) < edges[1:]
    found[-1] |= edges[-1] == np.rint(edges[-1])
    return found


def narrow(widths: Array) -> NDArray[np.bool_]:
    """Which bins are far narrower than a neighbour: they are for cells that coincide."""
    return widths <= _NARROW * np.maximum(*neighbours(widths))


def neighbours(values: Array) -> tuple[Array, Array]:
    """The values of the bins before and after each bin; those at the ends are repeated."""
    return np.append(values[:1], values[:-1]), np.append(values[1:], values[-1:])


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_OCCUPIED = 4.0  # standard deviations


@dataclass(frozen=True)
class Share:
    """A share of the rows, with its standard error from noise and sampling."""

    value: float
    standard_error: float


@dataclass(frozen=True)
class Quantile:
    """A quantile of a column with an interval, in the column's units."""

    value: float
    lower: float
    upper: float


def counted_rows(marginals: Sequence[Histogram]) -> RowsFacts:
    """The noisy number of rows, or of persons, that published marginals give: the mean total."""
    columns = len(marginals)
    observed = sum(float(each.count.sum()) for each in marginals) / columns
    sd = marginals[0].sd * math.sqrt(sum(each.count.size for each in marginals)) / columns
    return RowsFacts(value=max(1.0, observed), observed=observed, status="noisy", sd=sd)


def rows_counted(facts: ReleaseManifest, marginals: Sequence[Histogram]) -> RowsFacts:
    """The number of rows, or of persons, that the marginals of a release count.

    The declared number of persons is not compared with the table, so the counts tell it better.
    """
    return counted_rows(marginals) if facts.privacy_unit == "person" else facts.rows


def share(histogram: Histogram, index: int, rows: RowsFacts) -> Share:
    """The share of rows in one bin.

    `index`: index of the bin; -1 for missing cells, or for cells of no declared level. `rows`:
    number of rows or persons: see `rows_counted`.
    """
    value = min(max(float(histogram.count[index]) / rows.value, 0.0), 1.0)
    noise = math.hypot(histogram.sd, value * rows.sd) / rows.value
    sampling = value * (1 - value) / rows.value
    return Share(value, math.sqrt(noise**2 + sampling))


def quantiles(
    histogram: Histogram, rows: RowsFacts, at: Sequence[float] = QUANTILES, level: float = 0.95
) -> list[Quantile]:
    """Quantiles of the cells that are present.

    `histogram`: of a numeric column. `rows`: number of rows or persons: see `rows_counted`. `at`:
    probabilities, between 0 and 1. Interpolated within bins.

    An interval has the values at which the cumulative count differs from its target by no more than
    noise and sampling explain. Within a bin the cumulative count is interpolated, and may deviate
    from the straight line by as much as the densities of the neighbouring bins suggest: little
    where they agree, and by the whole count of the bin where it differs, as if all of its cells
    were equal. It may also deviate by the count of one unit, since all cells may be whole numbers.
    Cells that are rounded to tens or more are taken to be evenly spread.

    A value is a quantile of the bins that have cells as far as their counts can tell. The noise of
    the many bins far out is in its interval.

    In the narrow bin around zero all cells are taken to be zero. If nearly all cells are in bins
    that contain a whole number, although the bins are fine enough to tell, they are taken to be
    whole numbers, and so are the quantiles: those of a column of 0 and 1 are 0 or 1.
    """
    cumulative = _CumulativeCounts.of(histogram, rows)
    return [cumulative.quantile(probability, level) for probability in at]


@dataclass(frozen=True)
class _CumulativeCounts:
    """Estimated number of cells below every edge of a column's bins."""

    edges: Array  # shape (bins + 1,)
    counts: Array  # nondecreasing from 0 to the number of cells that are present, shape (bins + 1,)
    # the same with no cells in bins that look empty: see `estimators.marginals.occupied`
    likely: Array
    # how far the cumulative count may deviate from a straight line within each bin, shape (bins,)
    bends: Array
    variance: float  # of the noise on a count
    # part of the difference from the known number of rows that is added to every count
    adjustment: float
    whole: bool  # whether the cells are whole numbers: see `estimators.marginals.are_whole`

    @classmethod
    def of(cls, histogram: Histogram, rows: RowsFacts) -> _CumulativeCounts:
        counts, variance = histogram.count.astype(np.float64), histogram.sd**2
        # Generalised least squares: the counts have equal variances, and their sum is `rows`.
        adjustment = variance / (counts.size * variance + rows.sd**2)
        adjusted = counts + adjustment * (rows.value - counts.sum())
        edges = np.append(histogram.lower[:-1], histogram.upper[-2])
        cumulative = np.concatenate([[0.0], np.cumsum(adjusted[:-1])])
        total = max(float(cumulative[-1]), 1.0)
        monotone = _nondecreasing(cumulative, total)
        seen, bins = np.zeros(counts.size - 1), occupied(counts[:-1], histogram.sd)
        seen[bins] = adjusted[:-1][bins]
        kept = np.concatenate([[0.0], np.cumsum(seen)])
        likely = _nondecreasing(kept * (total / max(float(kept[-1]), 1.0)), total)
        bends = _bends(np.diff(monotone), np.diff(edges), variance)
        whole = are_whole(adjusted[:-1], edges, histogram.sd)
        return cls(edges, monotone, likely, bends, variance, adjustment, whole)

    def quantile(self, probability: float, level: float) -> Quantile:
        total, bins = float(self.counts[-1]), self.edges.size - 1
        target = probability * total
        below = np.arange(bins + 1)
        # Variance of sum_k a_k e_k, where a_k is 1 - q below the edge and -q above, and the noise
        # e_k of adjusted counts has covariance variance * (1[k = l] - adjustment).
        squares = below * (1 - probability) ** 2 + (bins - below) * probability**2
        common = self.adjustment * (below - bins * probability) ** 2
        noise = self.variance * (squares - common)
        sampling = total * probability * (1 - probability)
        error = -float(ndtri((1 - level) / 2)) * np.sqrt(noise + sampling)
        value = float(np.interp(target, self.likely, self.edges))
        lower = self._first_reaching(target, self.counts + error)
        upper = self._last_not_above(target, self.counts - error)
        return Quantile(
            self._cell(value, np.rint),
            self._cell(min(lower, value), np.floor),
            self._cell(max(upper, value), np.ceil),
        )

    def _cell(self, value: float, rounded: np.ufunc) -> float:
        """The cell that a value within a bin stands for; `rounded` if the bin has no whole one."""
        start, end = self.edges[:-1], self.edges[1:]
        around = (start <= 0) & (end >= 0) & narrow(np.diff(self.edges))
        if (around & (start <= value) & (value <= end)).any():
            return 0.0
        if not self.whole:
            return value
        k = int(np.clip(np.searchsorted(self.edges, value, side="right") - 1, 0, start.size - 1))
        return float((np.rint if contain_whole_numbers(self.edges)[k] else rounded)(value)) + 0.0

    def _first_reaching(self, target: float, largest: Array) -> float:
        """The smallest value at which the count may be as large as the target."""
        reached = largest[1:] >= target
        if not reached.any():
            return float(self.edges[-1])
        k = int(np.argmax(reached))
        return self._within(k, target - float(self.bends[k]), largest)

    def _last_not_above(self, target: float, least: Array) -> float:
        """The largest value at which the count may be as small as the target."""
        small = least[:-1] <= target
        if not small.any():
            return float(self.edges[0])
        k = small.size - 1 - int(np.argmax(small[::-1]))
        return self._within(k, target + float(self.bends[k]), least)

    def _within(self, k: int, target: float, bound: Array) -> float:
        """The value in bin k at which the straight line between its bounds is at a target."""
        start, end = float(bound[k]), float(bound[k + 1])
        part = (target - start) / (end - start) if end > start else float(target > start)
        low, high = float(self.edges[k]), float(self.edges[k + 1])
        return low + min(max(part, 0.0), 1.0) * (high - low)


def _nondecreasing(cumulative: Array, total: float) -> Array:
    """The closest nondecreasing counts from 0 to a total."""
    monotone: Array = np.clip(scipy.optimize.isotonic_regression(cumulative).x, 0.0, total)
    monotone[-1] = total
    return monotone


def _bends(counts: Array, widths: Array, variance: float) -> Array:
    """How far a cumulative count may deviate from a straight line within each bin.

    A density that changes linearly across a bin deviates by an eighth of its slope times the
    squared width; twice that is allowed. A density that differs from the mean of its neighbours by
    more than noise explains is not taken to be smooth. Whole numbers deviate by the count of one of
    them; in bins of less than half a unit, they differ visibly from their neighbours.

    A narrow bin that may be empty says nothing about densities, and is left out.
    """
    compared = ~narrow(widths) | (counts > _OCCUPIED * math.sqrt(variance))
    filled, spans = counts[compared], widths[compared]
    density, noise = filled / spans, (variance + filled) / spans**2
    slope = np.zeros_like(filled)
    for near, noise_near, width in zip(*map(neighbours, (density, noise, spans)), strict=True):
        difference = _beyond(density - near, noise + noise_near)
        slope = np.maximum(slope, difference / (spans + width) * 2)
    around, noise_around = sum(neighbours(density)) / 2, sum(neighbours(noise)) / 4
    rough = _beyond(density - around, noise + noise_around)
    smooth = slope * spans**2 / 4 + 2 * rough * spans
    whole = np.where(spans >= UNIT / 2, UNIT * density, 0.0)
    bends = counts.copy()
    bends[compared] = np.minimum(np.maximum(smooth, whole), filled)
    return bends


def _beyond(difference: Array, variance: Array) -> Array:
    """The part of a difference that its noise does not explain."""
    return np.maximum(np.abs(difference) - EXPLAINED * np.sqrt(variance), 0.0)


def marginals_frame(marginals: Sequence[Histogram], rows: RowsFacts) -> pd.DataFrame:
    """Published marginals, one line for each bin.

    Returns ``column``, ``lower``, ``upper`` and ``level`` of the bin (none of them for missing
    cells), ``count``, and ``share`` with its ``standard_error``.
    """
    frames = []
    for each in marginals:
        shares = [share(each, index, rows) for index in range(each.count.size)]
        frames.append(
            pd.DataFrame(
                {
                    "column": each.column,
                    "lower": each.lower,
                    "upper": each.upper,
                    "level": list(each.level),
                    "count": each.count,
                    "share": [one.value for one in shares],
                    "standard_error": [one.standard_error for one in shares],
                }
            )
        )
    return pd.concat(frames, ignore_index=True)
