"""What cells beyond the bounds to which they are clamped add to the moments of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.continued_tail import ContinuedTail
from gramercy.estimators.far_cells import FarCells
from gramercy.schemas.evidence import Evidence, Histogram
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.request_parts import TailFacts

Array = NDArray[np.float64]

_LEAST_WIDTH = 1e-9  # relative: the narrow bin of zero may have no width in scaled units
_APART = 8.0  # times the median of the bounds by all stages
_RARE = 0.025  # expected cells beyond the end of a tail


@dataclass(frozen=True)
class ColumnTails:
    """What is beyond the clamps, in scaled units about the centres; arrays of shape (p,)."""

    mean: Array  # expected change of the mean
    mean_most: Array  # bound of the change
    square: Array  # expected change of the second moment
    square_most: Array  # upper bound of the change
    # What cells far out have of the second moment, at least and at most, and at most of the mean.
    far_least: Array
    far_most: Array
    far_mean_most: Array

    @classmethod
    def of(cls, evidence: Evidence) -> ColumnTails:
        """The tails of all columns but the intercept; zero where no histogram shows any.

        Of a column without a histogram, those of the earlier release with its constants. Of a group
        of rows, those of all rows are expected; they may all be in the group.
        """
        whole = evidence
        if evidence.of_all:
            rows = evidence.rows if evidence.counted is None else evidence.counted[0]
            whole = replace(evidence, histograms=evidence.of_all, rows=rows)
        stages: dict[str, list[Histogram]] = {}
        for each in whole.histograms:
            stages.setdefault(each.column, []).append(each)
        moments = np.zeros((len(evidence.columns) - 1, 7))
        for row, column in zip(moments, evidence.columns[1:], strict=True):
            if not isinstance(column, ColumnFacts) or column.name in evidence.signs:
                continue
            if column.name in stages:
                far = FarCells.of(whole, column)
                row[:4] = _of_stages([_both_sides(each, column) for each in stages[column.name]])
                row[4:] = far.least, far.most, far.mean_most
            elif column.name in evidence.tails:
                row[:] = evidence.tails[column.name]
        tails = cls(*moments.T)
        if not evidence.of_all or evidence.counted is None:
            return tails
        factor = max(evidence.counted[0], 1.0) / max(evidence.rows, 1.0)
        most = ("mean_most", "square_most", "far_most", "far_mean_most")
        return replace(tails, **{name: factor * getattr(tails, name) for name in most})

    def by_column(self, evidence: Evidence) -> dict[str, TailFacts]:
        """The tails of the numeric columns that have some, by name."""
        moments = np.column_stack([getattr(self, each.name) for each in fields(self)])
        names = [getattr(each, "name", "") for each in evidence.columns[1:]]
        pairs = zip(names, moments.tolist(), strict=True)
        return {name: tuple(each) for name, each in pairs if any(each)}


def _of_stages(found: Sequence[tuple[float, float, float, float]]) -> Array:
    """The four moments by all stages: the last one has most bins where the cells are.

    The bins of others may show more of a tail, so bounds are averages. One that is many times the
    others is noise, which looks like a tail that never ends.
    """
    last = np.array(found[-1])
    average = np.minimum(found, _APART * np.median(found, axis=0)).mean(axis=0)
    bound = np.array([False, True, False, True])
    moments: Array = np.where(bound, np.maximum(average, last), last)
    return moments


def _both_sides(marginal: Histogram, column: ColumnFacts) -> tuple[float, float, float, float]:
    """The four moments of one column: see `ColumnTails`."""
    counts = marginal.count[:-1].astype(np.float64)
    cells = max(float(counts.sum()), 1.0)
    shares, sd = counts / cells, marginal.sd / cells
    low, high = (
        (each[:-1] - column.centre) / column.scale for each in (marginal.lower, marginal.upper)
    )
    above = _beyond(shares, low, high, (column.upper - column.centre) / column.scale, sd, cells)
    clamp = (column.centre - column.lower) / column.scale
    below = _beyond(shares[::-1], -high[::-1], -low[::-1], clamp, sd, cells)
    return (
        above[0] - below[0],
        max(above[1], below[1]),
        above[2] + below[2],
        above[3] + below[3],
    )


def _beyond(
    shares: Array, low: Array, high: Array, clamp: float, sd: float, cells: float
) -> tuple[float, float, float, float]:
    """What is beyond a clamp on one side: of the mean distance, and of the mean squared one.

    `low`, `high`: distances of the bins' ends from the centre, from inside to outside. Returns
    the expected value and the upper bound of both.
    """
    outside = low > 0
    low = low[outside]
    high = np.maximum(high[outside], low * (1 + _LEAST_WIDTH))
    tail = ContinuedTail.of(shares[outside], low, high, sd)
    if tail is None or high[-1] <= clamp:
        return 0.0, 0.0, 0.0, 0.0
    # The logarithm of a distance is uniform in its bin.
    inner, logarithm = np.clip(clamp, low, high), np.log(high / low)
    share = np.log(high / inner)
    distance = np.maximum(high - inner - share * clamp, 0.0) / logarithm
    square = np.maximum((high**2 - inner**2) / 2 - share * clamp**2, 0.0) / logarithm
    # Cells are whole: an expected one, and of a bound one in forty, ends a tail.
    usual, longest = tail.ended(1 / cells), tail.ended(_RARE / cells)
    most = longest.most(distance), longest.most(square)
    return (
        min(usual.expected(distance), most[0]),
        most[0],
        min(usual.expected(square), most[1]),
        most[1],
    )
