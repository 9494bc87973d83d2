"""Normal scores of a column: its distribution function by the noisy counts of all stages.

Shares of cells increase linearly between the edges of bins, and scores are their standard normal
quantiles. A bin that has room for one value only has the score of the middle of its cells, so that
equal cells, such as zeros, have their mean rank. Shares that noise hides are not kept apart: the
outermost scores are those of the share that a few standard deviations of the noise would give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from gramercy.scaling.column_constants import rounded
from gramercy.scaling.column_scan import ColumnScan
from gramercy.scaling.runs import centred
from gramercy.schemas.derived import Rank
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

Array = NDArray[np.float64]

_LEAST, _MOST = 1e-3, 0.25  # of the outermost shares
_NOISE = 3.0  # standard deviations of a count
_NARROW, _NEAR = 1e-3, 3  # width of a bin for one value, by that of one of some neighbours
_FINE = 0.5  # width of a bin for one whole number
_MOSTLY, _HARDLY = 0.5, 0.25  # of the cells
_NEXT = 4.0  # a part of a bin, next to one for one value
_PART = 0.05  # share of the cells between two knots
_UNITS = 1e6  # scores are rounded, so that they are equal on every machine


def is_rank(facts: ColumnFacts | LevelsFacts) -> bool:
    """Whether a column has normal scores by its histogram."""
    derived = facts.derived if isinstance(facts, ColumnFacts) else None
    return derived is not None and derived.function.declared == Rank()


def with_scores(facts: ColumnFacts, scan: ColumnScan, rows: float) -> ColumnFacts:
    """A column of ranks with the knots and the constants of its scores.

    The bounds are the outermost scores; centre and scale are the mean and the standard deviation of
    all scores by the counts.

    Parameters
    ----------
    scan
        The counts of the numbers that are ranked, after the last stage.
    rows
        Number of rows or persons.
    """
    derived, shares = facts.derived, _Shares.of(scan, rows)
    assert derived is not None  # noqa: S101
    knots, scores = list[float](), list[int]()
    ends = [end for x in shares.pieces for end in ((x.start, x.low), (x.end, x.high))]
    for knot, exact in ends:
        if not knots or knot > knots[-1]:
            knots.append(knot)
            score = round(exact * _UNITS)
            scores.append(max(score, scores[-1] + 1) if scores else score)
    rank = Rank(tuple(knots), tuple(each / _UNITS for each in scores))
    centre, scale = rounded(*shares.moments)
    update = {
        "lower": rank.scores[0],
        "upper": rank.scores[-1],
        "centre": min(max(centre, rank.scores[0]), rank.scores[-1]),
        "scale": scale,
        "derived": derived.model_copy(update={"transform": rank.text}),
    }
    return facts.model_copy(update=update)


@dataclass(frozen=True)
class _Shares:
    """The share of the cells with a value that are below each edge of the bins of all stages."""

    edges: Array  # increasing, shape (bins + 1,)
    below: Array  # nondecreasing, from 0 to 1, shape (bins + 1,)
    least: float  # of the outermost shares that are kept apart

    @classmethod
    def of(cls, scan: ColumnScan, rows: float) -> _Shares:
        """Sums of the counts below each edge, by inverse variance where stages share it.

        Noisy sums decrease here and there: the middle is taken between the largest sum so far and
        the smallest one from there on.
        """
        edges = np.unique(np.concatenate([stage.grid.edges for stage in scan.stages]))
        total, weight = np.zeros(len(edges)), np.zeros(len(edges))
        for stage in scan.stages:
            values = centred(stage.counts, rows)
            bins = np.arange(len(values), dtype=np.float64)  # below each edge
            known = np.maximum(bins * (1 - bins / len(values)), 0.5) * (stage.sd * stage.sd)
            places = np.searchsorted(edges, stage.grid.edges)
            total[places] += np.append(0.0, np.cumsum(values[:-1])) / known
            weight[places] += 1 / known
        cells = scan.cells(rows)[0].cells
        sums = np.clip(total / weight, 0.0, cells)
        sums[0], sums[-1] = 0.0, cells
        before, after = np.maximum.accumulate(sums), np.minimum.accumulate(sums[::-1])[::-1]
        least = min(max(_NOISE * scan.stages[-1].sd / cells, _LEAST), _MOST)
        return cls(edges, (before + after) / (2 * cells), least)

    @cached_property
    def single(self) -> NDArray[np.bool_]:
        """Bins for one value: very narrow ones, and fine ones with a whole number.

        The latter if hardly any cells are in fine bins without one, and most are in the others.
        """
        widths, masses = np.diff(self.edges), np.diff(self.below)
        around = np.lib.stride_tricks.sliding_window_view(np.pad(widths, _NEAR), 2 * _NEAR + 1)
        narrow: NDArray[np.bool_] = widths <= _NARROW * around.max(axis=1)
        numbers = np.ceil(self.edges[:-1]) < self.edges[1:]
        numbers[-1] |= self.edges[-1] == np.rint(self.edges[-1])
        fine = (widths <= _FINE) & ~narrow
        of_numbers, between = (float(masses[fine & x].sum()) for x in (numbers, ~numbers))
        is_whole = of_numbers > _MOSTLY and between < _HARDLY * of_numbers
        return narrow | (fine & numbers) if is_whole else narrow

    @cached_property
    def pieces(self) -> list[_Piece]:
        """Bins, or parts of them, in order.

        Next to a bin for one value a bin begins, or ends, a little farther on.
        """
        found = []
        for k, own in enumerate(np.diff(self.edges).tolist()):
            start, end = float(self.edges[k]), float(self.edges[k + 1])
            low, high = float(self.below[k]), float(self.below[k + 1])
            if self.single[k]:
                score = self._score(low / 2 + high / 2)
                found.append(_Piece(start, end, score, score, high - low))
                continue
            start += self._room(k - 1, own)
            end -= self._room(k + 1, own)
            rights = np.linspace(0.0, 1.0, max(math.ceil((high - low) / _PART), 1) + 1)
            places = (start * (1 - rights) + end * rights).tolist()
            scores = [self._score(x) for x in (low * (1 - rights) + high * rights).tolist()]
            mass = (high - low) / (len(places) - 1)
            found += [
                _Piece(*ends, *values, mass)
                for ends, values in zip(pairwise(places), pairwise(scores), strict=True)
            ]
        return found

    def _room(self, k: int, own: float) -> float:
        """What a bin of this width leaves to the next one, k."""
        if not 0 <= k < len(self.single) or not self.single[k]:
            return 0.0
        return min(float(self.edges[k + 1] - self.edges[k]), own / _NEXT)

    def _score(self, share: float) -> float:
        return NormalDist().inv_cdf(min(max(share, self.least), 1 - self.least))

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation of the scores of all cells."""
        mean = math.fsum(x.mass * (x.low + x.high) / 2 for x in self.pieces)
        squares = ((x.low**2 + x.low * x.high + x.high**2) / 3 * x.mass for x in self.pieces)
        hidden = self.least * self._score(self.least) ** 2  # where nearly all cells are equal
        return mean, math.sqrt(max(math.fsum(squares) - mean * mean, hidden))


@dataclass(frozen=True)
class _Piece:
    """A part of a bin in which scores are linear."""

    start: float
    end: float
    low: float  # scores
    high: float
    mass: float  # share of the cells
