"""The distribution of a numeric column, from its published histograms of all stages.

The bins of one stage are not those of another. Between all of their edges are cells that every bin
is a union of, and the numbers of table cells in them are fitted by non-negative least squares: to
all counts, to the number of rows, and to the expectation that neighbouring densities are of the
same size. Where the number of rows is public this is worth knowing: a cumulative count is then
known from both of its ends.

Many table cells may have one value. Such *atoms* are in a bin with far more cells than its
neighbours suggest. A value is then the roundest number in the bin: what is published does not say
more, and intervals reach from one end of the bin to the other. If all cells seem to be whole
numbers, all values are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import ndtri

from gramercy.schemas.evidence import Histogram
from gramercy.schemas.facts import RowsFacts

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
EXPLAINED = 2.0  # standard deviations of noise that explain a difference
UNIT = 1.0  # of whole numbers
_NARROW = 1e-2  # share of the width of a neighbour
_CERTAINLY = 4.0  # standard deviations that the sum of empty bins hardly ever exceeds
_FEW, _CLEARLY = 0.01, 4.0  # share of cells that need not be whole; times what noise explains
_OCCUPIED = 4.0  # standard deviations
_UNEVEN = (0.25, 0.12, 0.06)  # expected differences of neighbouring counts, by their size
_EXACT = 1e-3  # deviation of a number that is known, in those of counts
_ATOM, _WIDE, _ALONE = 5.0, 2.0, 3.0  # deviations; typical widths; deviations of a narrow bin
_MOST_JOINED = 12  # narrow bins around one value
_MOST_WHOLE = 64  # whole numbers of a bin that are kept apart


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


def missing_share(stages: Sequence[Histogram], rows: RowsFacts, present: float | None) -> Share:
    """The share of missing cells of a numeric column, from all stages.

    `present`: the published share of the other cells, which is 1 if noise may explain the missing
    ones; None if it is not published.
    """
    terms, weights = [], []
    for each in stages:
        bins, variance = each.count.size, each.sd**2
        # The counts have equal variances, and their sum is the number of rows.
        part = variance / (bins * variance + rows.sd**2) if variance > 0 else 1 / bins
        terms.append(float(each.count[-1]) + part * (rows.value - float(each.count.sum())))
        weights.append(1 / max(variance * (1 - part), 1e-12))
    total = math.fsum(weights)
    found = math.fsum(x * w for x, w in zip(terms, weights, strict=True)) / total / rows.value
    value = min(max(found if present is None else 1 - present, 0.0), 1.0)
    noise = math.hypot(1 / math.sqrt(total), value * rows.sd) / rows.value
    return Share(value, math.sqrt(noise**2 + value * (1 - value) / rows.value))


@dataclass(frozen=True)
class Distribution:
    """The cells of a numeric column that have a value; `bins` bins without the missing cells."""

    edges: Array  # those of all stages, shape (bins + 1,)
    counts: Array  # not negative; they add up to the number of cells with a value. Shape (bins,)
    unbiased: Array  # the same without the bound at zero
    covariance: Array  # of the errors of `unbiased` by noise; shape (bins, bins)
    errors: Array  # covariance of the errors of cumulative counts, shape (bins + 1, bins + 1)
    last: NDArray[np.intp]  # places of the edges of the last stage, of which some may be the same

    @classmethod
    def of(
        cls, stages: Sequence[Histogram], rows: RowsFacts, present: float | None = None
    ) -> Distribution:
        """The fit to all stages; `rows`, `present` are as in `missing_share`."""
        counted = _Counted.of(stages, rows, present)
        # Bins that may have atoms say nothing about their neighbours.
        _, atoms = counted.fitted(_UNEVEN[0], narrow(np.diff(counted.edges))).atoms
        best = max(_UNEVEN, key=lambda uneven: counted.evidence(uneven, atoms > 0))
        return counted.fitted(best, atoms > 0)

    @property
    def published(self) -> tuple[Array, Array]:
        """Counts in the bins of the last stage, and standard deviations of their noise."""
        cumulative = np.concatenate([[0.0], np.cumsum(self.counts)])[self.last]
        errors = self.errors[np.ix_(self.last, self.last)]
        variance = np.diag(errors)[1:] + np.diag(errors)[:-1] - 2 * np.diag(errors, 1)
        return np.diff(cumulative), np.sqrt(np.maximum(variance, 0.0))

    @property
    def widths(self) -> Array:
        """Widths of the bins, shape (bins,)."""
        return np.diff(self.edges)

    @property
    def deviations(self) -> Array:
        """Standard deviations of the errors of `unbiased` by noise; shape (bins,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @cached_property
    def whole(self) -> bool:
        """Whether the cells are whole numbers, as far as the bins can tell.

        In bins of at most half a unit, smooth densities would have far more cells between whole
        numbers than noise explains, and all other bins have no more than that.
        """
        total, fine = float(self.counts.sum()), self.widths <= UNIT / 2
        between = fine & ~contain_whole_numbers(self.edges)
        explained = [
            EXPLAINED * math.sqrt(max(float(chosen @ self.covariance @ chosen), 0.0)) + _FEW * total
            for chosen in (between, ~fine)
        ]
        sums = [float(self.unbiased[chosen].sum()) for chosen in (between, ~fine)]
        if sums[0] > explained[0] or sums[1] > explained[1]:
            return False
        width = max(float(self.widths[fine].sum()), 1e-300)
        smooth = float(self.unbiased[fine].sum()) * float(self.widths[between].sum()) / width
        return bool(smooth > _CLEARLY * explained[0])

    @cached_property
    def parts(self) -> tuple[Array, Array, Array, NDArray[np.intp]]:
        """Lower and upper ends of all parts of bins, equal for atoms; their shares of the bin; bin.

        Cells are spread evenly within a part.
        """
        found: list[tuple[float, float, float, int]] = []
        values, atoms = self.atoms
        for k, (low, high) in enumerate(zip(self.edges[:-1], self.edges[1:], strict=True)):
            if self.whole and (numbers := self._whole_numbers(k)) is not None:
                found += [(x, x, 1 / len(numbers), k) for x in numbers]
            elif atoms[k] > 0:
                value, rest = float(values[k]), 1 - float(atoms[k])
                below = rest * (value - low) / (high - low)
                found += [(low, value, below, k), (value, value, 1 - rest, k)]
                found += [(value, high, rest - below, k)]
            else:
                found.append((low, high, 1.0, k))
        lower, upper, share, of_bin = zip(*found, strict=True)
        return np.array(lower), np.array(upper), np.array(share), np.array(of_bin, dtype=np.intp)

    def _whole_numbers(self, k: int) -> Array | None:
        """The whole numbers of a bin that are kept apart; None if there are none, or many."""
        low, high = float(self.edges[k]), float(self.edges[k + 1])
        last = math.floor(high) if k == len(self.counts) - 1 else math.ceil(high) - 1
        if not math.ceil(low) <= last or last - low > _MOST_WHOLE:
            return None
        return np.arange(math.ceil(low), last + 1, dtype=np.float64) + 0.0

    @cached_property
    def atoms(self) -> tuple[Array, Array]:
        """The value that an atom in each bin has, and its share of the bin's cells; 0 if none."""
        widths, counts, sd = self.widths, self.counts, self.deviations
        thin = narrow(widths)
        values = np.array(
            [
                roundest(float(low), float(high), k == len(counts) - 1)
                for k, (low, high) in enumerate(zip(self.edges[:-1], self.edges[1:], strict=True))
            ]
        )
        shares = np.where(thin, 1.0, 0.0)
        wide = np.flatnonzero(~thin)
        if wide.size == 0:
            return values, shares
        order = wide[np.argsort(widths[wide])]
        below = np.cumsum(counts[order])
        typical = widths[order[int(np.searchsorted(below, below[-1] / 2))]]
        candidates = (counts[wide] > _ATOM * sd[wide]) & (widths[wide] <= _WIDE * typical)
        density, noise = counts[wide] / widths[wide], sd[wide] / widths[wide]
        smooth = widths[wide] * [_around(density, noise, k) for k in range(len(wide))]
        excess = counts[wide] - smooth
        found = candidates & (excess > _ATOM * sd[wide]) & (excess > smooth)
        shares[wide[found]] = excess[found] / counts[wide[found]]
        return values, shares

    @cached_property
    def likely(self) -> Array:
        """Counts without those of bins that look empty; shape (bins,).

        These are the bins beyond the outermost ones whose counts noise does not give: on each side,
        beyond the end of the outermost run of bins whose sum is clearly above zero. Farther out,
        most bins are empty, and the sum of their noise exceeds what is left of a column's tail. A
        narrow bin within noise is empty too, and so are bins between whole numbers.
        """
        sums = np.concatenate([[0.0], np.cumsum(self.unbiased)])
        variance = np.diag(self.errors)[:, None] + np.diag(self.errors) - 2 * self.errors
        deviations = np.sqrt(np.maximum(variance, 0.0))
        first = _outermost(sums, deviations)
        last = _outermost(-sums[::-1], deviations[::-1, ::-1])
        seen, bins = np.ones(len(self.counts), dtype=bool), len(self.counts)
        if first is not None and last is not None and first <= bins - 1 - last:
            seen[:first] = seen[bins - last :] = False
        seen &= ~narrow(self.widths) | (self.unbiased > _ALONE * self.deviations)
        if self.whole:
            seen &= contain_whole_numbers(self.edges)
        kept = np.where(seen, self.counts, 0.0)
        total = float(self.counts.sum())
        return kept * (total / float(kept.sum())) if kept.sum() > 0 else self.counts

    def counts_within(self, edges: Array) -> Array:
        """Counts between other edges; the last bin includes its upper edge. Shape (bins,)."""
        lower, upper, share, of_bin = self.parts
        mass = self.likely[of_bin] * share
        sums = np.zeros(len(edges))
        for k, edge in enumerate(edges):
            width = np.where(upper > lower, upper - lower, 1.0)
            atom = upper <= edge if k == len(edges) - 1 else upper < edge
            below = np.where(upper > lower, np.clip((edge - lower) / width, 0.0, 1.0), atom)
            sums[k] = float(mass @ below)
        return np.maximum(np.diff(sums), 0.0)

    def quantiles(self, at: Sequence[float] = QUANTILES, level: float = 0.95) -> list[Quantile]:
        """Quantiles of the cells that are present; `at` are probabilities between 0 and 1.

        An interval has the values at which the cumulative count differs from its target by no more
        than noise and sampling explain. Within a bin the cumulative count is interpolated, and may
        deviate from the straight line by as much as the densities of the neighbouring bins suggest:
        little where they agree, and by the whole count of the bin where it differs, as if all of
        its cells were equal. It may also deviate by the count of one unit, since all cells may be
        whole numbers. Cells that are rounded to tens or more are taken to be evenly spread.

        A value is a quantile of the bins that have cells as far as their counts can tell: see
        `likely`. The noise of the many bins far out is in its interval.

        In the narrow bin around zero all cells are taken to be zero.
        """
        bends = _bends(self.counts, self.widths, np.diag(self.covariance))
        cumulative = np.concatenate([[0.0], np.cumsum(self.counts)])
        return [self._quantile(each, level, cumulative, bends) for each in at]

    def _quantile(
        self, probability: float, level: float, cumulative: Array, bends: Array
    ) -> Quantile:
        total = float(cumulative[-1])
        target = probability * total
        common = self.errors[:, -1]
        noise = np.diag(self.errors) - 2 * probability * common
        noise = np.maximum(noise + probability**2 * float(common[-1]), 0.0)
        sampling = total * probability * (1 - probability)
        error = -float(ndtri((1 - level) / 2)) * np.sqrt(noise + sampling)
        value = self._value(target)
        lower = self._first_reaching(target, cumulative + error, bends)
        upper = self._last_not_above(target, cumulative - error, bends)
        return Quantile(
            self._cell(value, np.rint),
            self._cell(min(lower, value), np.floor),
            self._cell(max(upper, value), np.ceil),
        )

    def _value(self, target: float) -> float:
        """The smallest value up to which there are as many cells as the target."""
        lower, upper, share, of_bin = self.parts
        mass = self.likely[of_bin] * share
        sums = np.cumsum(mass)
        k = min(int(np.searchsorted(sums, target)), len(sums) - 1)
        part = 1 - (float(sums[k]) - target) / float(mass[k]) if mass[k] > 0 else 0.5
        return float(lower[k] + min(max(part, 0.0), 1.0) * (upper[k] - lower[k]))

    def _cell(self, value: float, rounded: np.ufunc) -> float:
        """The cell that a value within a bin stands for; `rounded` if the bin has no whole one."""
        start, end = self.edges[:-1], self.edges[1:]
        around = (start <= 0) & (end >= 0) & narrow(self.widths)
        if (around & (start <= value) & (value <= end)).any():
            return 0.0
        if not self.whole:
            return value
        k = int(np.clip(np.searchsorted(self.edges, value, side="right") - 1, 0, start.size - 1))
        return float((np.rint if contain_whole_numbers(self.edges)[k] else rounded)(value)) + 0.0

    def _first_reaching(self, target: float, largest: Array, bends: Array) -> float:
        """The smallest value at which the count may be as large as the target."""
        reached = largest[1:] >= target
        if not reached.any():
            return float(self.edges[-1])
        k = int(np.argmax(reached))
        return self._within(k, target - float(bends[k]), largest)

    def _last_not_above(self, target: float, least: Array, bends: Array) -> float:
        """The largest value at which the count may be as small as the target."""
        small = least[:-1] <= target
        if not small.any():
            return float(self.edges[0])
        k = small.size - 1 - int(np.argmax(small[::-1]))
        return self._within(k, target + float(bends[k]), least)

    def _within(self, k: int, target: float, bound: Array) -> float:
        """The value in bin k at which the straight line between its bounds is at a target."""
        start, end = float(bound[k]), float(bound[k + 1])
        part = (target - start) / (end - start) if end > start else float(target > start)
        low, high = float(self.edges[k]), float(self.edges[k + 1])
        return low + min(max(part, 0.0), 1.0) * (high - low)


@dataclass(frozen=True)
class _Counted:
    """What the counts of all stages say about the cells between all edges; missing cells last."""

    edges: Array
    information: Array  # shape (bins + 1, bins + 1)
    score: Array
    most: Array  # count of the smallest bin of which a bin is a part, shape (bins,)
    least: float  # the smallest deviation of a count
    cells: float  # with a value
    noise: bool
    last: NDArray[np.intp]  # see `Distribution`

    @classmethod
    def of(cls, stages: Sequence[Histogram], rows: RowsFacts, present: float | None) -> _Counted:
        edges, bins_of = _common_edges(stages)
        bins, least = len(edges) - 1, max(min(each.sd for each in stages), 1e-3)
        information: Array = np.zeros((bins + 1, bins + 1))
        score, most = np.zeros(bins + 1), np.full(bins, np.inf)
        for each, (own, counts, joined) in zip(stages, bins_of, strict=True):
            places = np.append(np.searchsorted(own, edges[:-1], side="right") - 1, len(own) - 1)
            weights = 1 / np.append(joined, 1) / max(each.sd, 1e-3) ** 2
            information += weights[places] * (places[:, None] == places)
            score += (weights * np.append(counts, each.count[-1]))[places]
            most = np.minimum(most, np.maximum(counts[places[:-1]], 0))
        weight = 1 / (rows.sd**2 + (_EXACT * least) ** 2)
        information += weight
        score += weight * rows.value
        if present == 1:  # nothing is missing
            information[-1, -1] += 1 / (_EXACT * least) ** 2
        cells = rows.value * (1 - missing_share(stages, rows, present).value)
        noise, last = any(each.sd for each in stages), _joined(edges, stages[-1])
        return cls(edges, information, score, most, least, cells, noise, last)

    def fitted(self, uneven: float, alone: Flags) -> Distribution:
        """The fit, if neighbouring counts differ by `uneven`; apart from bins that are `alone`."""
        bins = len(self.most)
        information = self._with_evenness(uneven, alone)
        covariance: Array = np.linalg.inv(information).astype(np.float64)
        unbiased: Array = (covariance @ self.score)[:-1]
        root = np.linalg.cholesky(information)
        target = scipy.linalg.solve_triangular(root, self.score, lower=True)
        fitted: Array = scipy.optimize.nnls(root.T, target, maxiter=100 * bins)[0][:-1]
        fitted = fitted * (self.cells / max(float(fitted.sum()), 1e-300))
        covariance = covariance[:-1, :-1] * float(self.noise)
        errors: Array = np.zeros((bins + 1, bins + 1))
        errors[1:, 1:] = np.cumsum(np.cumsum(covariance, axis=0), axis=1)
        return Distribution(self.edges, fitted, unbiased, covariance, errors, self.last)

    def evidence(self, uneven: float, alone: Flags) -> float:
        """Logarithm of the probability of the counts, up to a constant."""
        root = np.linalg.cholesky(self._with_evenness(uneven, alone))
        explained = scipy.linalg.solve_triangular(root, self.score, lower=True)
        pairs = max(int((~alone).sum()) - 1, 0)
        volume = float(np.log(np.diag(root)).sum()) + pairs * math.log(uneven)
        return float(explained @ explained) / 2 - volume

    def _with_evenness(self, uneven: float, alone: Flags) -> Array:
        information = self.information.copy()
        evenness = _evenness(self.most, np.diff(self.edges), self.least, alone)
        information[:-1, :-1] += evenness / uneven**2
        return information


def roundest(low: float, high: float, closed: bool = False) -> float:
    """The number with the fewest digits in [low, high), or in [low, high] if it is `closed`."""
    if low <= 0 and (high > 0 or (closed and high == 0)):
        return 0.0
    exponent = math.floor(math.log10(max(abs(low), abs(high)))) + 1
    for digits in range(-exponent, 17 - exponent):
        for factor in (5, 1):
            step = factor * 10.0 ** -(digits + 1) if factor == 5 else 10.0 ** -(digits + 1)
            least = math.ceil(low / step - 1e-9)
            found = round(least * step, max(digits + 1, 0))
            if low <= found < high or (closed and found == high):
                return found + 0.0
    return low


def contain_whole_numbers(edges: Array) -> Flags:
    """Which bins contain a whole number; the last one includes its upper edge."""
    found = np.ceil(edges[:-1]) < edges[1:]
    found[-1] |= edges[-1] == np.rint(edges[-1])
    return found


def narrow(widths: Array) -> Flags:
    """Which bins are far narrower than a neighbour: they are for cells that coincide."""
    return widths <= _NARROW * np.maximum(*neighbours(widths))


def neighbours(values: Array) -> tuple[Array, Array]:
    """The values of the bins before and after each bin; those at the ends are repeated."""
    return np.append(values[:1], values[:-1]), np.append(values[1:], values[-1:])


def _common_edges(
    stages: Sequence[Histogram],
) -> tuple[Array, list[tuple[Array, Array, Array]]]:
    """The edges of all stages; and of each stage its edges among them, counts, and joined bins.

    Narrow bins around one value differ in width from stage to stage; they become one.
    """
    edges = np.unique(np.concatenate([_edges(each) for each in stages]))
    widths, start, kept = np.diff(edges), 0, np.ones(len(edges), dtype=bool)
    while start < widths.size:
        longest = start + 1
        for end in range(start + 2, min(start + _MOST_JOINED, widths.size) + 1):
            outside = max([*widths[max(start - 1, 0) : start], *widths[end : end + 1]], default=0.0)
            if edges[end] - edges[start] <= _NARROW * outside:
                longest = end
        kept[start + 1 : longest] = False
        start = longest
    common: Array = edges[kept]
    found: list[tuple[Array, Array, Array]] = []
    for each in stages:
        places = _joined(common, each)
        # Bins within a common narrow one have its places at both ends.
        starts = np.flatnonzero(np.diff(places) > 0)
        inside = np.minimum(np.searchsorted(starts, np.arange(len(places) - 1)), len(starts) - 1)
        before = np.maximum(inside - 1, 0)
        empty = np.diff(places) == 0
        thin = narrow(np.diff(common))[np.maximum(places[:-1] - 1, 0)]
        at_end = empty & (places[:-1] > 0) & thin
        group = np.where(at_end, before, inside)
        counts: Array = np.bincount(group, each.count[:-1], len(starts)).astype(np.float64)
        joined = np.bincount(group, minlength=len(starts)).astype(np.float64)
        found.append((common[np.append(places[starts], len(common) - 1)], counts, joined))
    return common, found


def _edges(histogram: Histogram) -> Array:
    return np.append(histogram.lower[:-1], histogram.upper[-2])


def _joined(common: Array, histogram: Histogram) -> NDArray[np.intp]:
    """Places of the edges of a stage among the common ones: of joined bins, the nearest end."""
    own = _edges(histogram)
    above = np.clip(np.searchsorted(common, own), 0, len(common) - 1)
    below = np.maximum(above - (common[above] > own), 0)
    nearest: NDArray[np.intp] = np.where(own - common[below] < common[above] - own, below, above)
    return nearest


def _evenness(counts: Array, widths: Array, sd: float, alone: Flags) -> Array:
    """Information about counts whose neighbouring densities differ by their size at most."""
    information, kept = np.zeros((counts.size, counts.size)), np.flatnonzero(~alone)
    i, j = kept[:-1], kept[1:]
    share, scale = widths[j] / (widths[i] + widths[j]), np.maximum(counts[i] + counts[j], sd)
    first, second = share / scale, (share - 1) / scale
    np.add.at(information, (i, i), first**2)
    np.add.at(information, (j, j), second**2)
    information[i, j] = information[j, i] = first * second
    return information


def _around(density: Array, noise: Array, k: int) -> float:
    """The largest density that a bin would have if it went on as on one of its sides.

    On each side it goes on as from the second bin to the first, if it grows.
    """
    most = 0.0
    upper = np.maximum(density, 0.0) + EXPLAINED * noise
    for near, further in ((k - 1, k - 2), (k + 1, k + 2)):
        if 0 <= near < len(density):
            beyond = float(upper[further]) if 0 <= further < len(density) else 0.0
            first = float(upper[near])
            most = max(most, first * max(first / beyond if beyond > 0 else 1.0, 1.0))
    return most


def _outermost(sums: Array, deviations: Array) -> int | None:
    """First bin of the first run with a significant sum; `deviations` are of all sums of bins.

    Of all runs up to the first bin where one is significant, it is the most significant one.
    """
    for end in range(1, sums.size):
        size = (sums[end] - sums[:end]) / np.maximum(deviations[end, :end], 1e-12)
        if (size > _CERTAINLY).any():
            return int(np.argmax(size))
    return None


def _bends(counts: Array, widths: Array, variances: Array) -> Array:
    """How far a cumulative count may deviate from a straight line within each bin.

    A density that changes linearly across a bin deviates by an eighth of its slope times the
    squared width; twice that is allowed. A density that differs from the mean of its neighbours by
    more than noise explains is not taken to be smooth. Whole numbers deviate by the count of one of
    them; in bins of less than half a unit, they differ visibly from their neighbours.

    A narrow bin that may be empty says nothing about densities, and is left out.
    """
    compared = ~narrow(widths) | (counts > _OCCUPIED * np.sqrt(variances))
    filled, spans = counts[compared], widths[compared]
    density, noise = filled / spans, (variances[compared] + filled) / spans**2
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
