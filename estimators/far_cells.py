"""Cells far out that the histograms of all stages show, although no matrix may."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.scaling.column_constants import Grid
from gramercy.scaling.column_scan import ColumnScan, NoisyCells, Stage
from gramercy.schemas.column import UNBOUNDED
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts

Array = NDArray[np.float64]

_FAR = 4.0  # scales
# Standard deviations of the noise: of the bin at a bound, and of a run; for each empty bin before.
_AT_BOUND, _SEEN, _GAP = 2.7, 3.5, 0.08
_SURE = 1.64


def noisy_cells(
    evidence: Evidence, column: str, most_stages: int | None = None
) -> NoisyCells | None:
    """The histogram of a column by its first stages, or by all; None without one."""
    stages = tuple(
        Stage(each.count, Grid(np.append(each.lower[:-1], each.upper[-2])), each.sd)
        for each in evidence.histograms
        if each.column == column
    )
    stages = stages[:most_stages]
    return ColumnScan(None, None, stages).cells(max(evidence.rows, 1.0))[0] if stages else None


@dataclass(frozen=True)
class FarCells:
    """What a run of bins far from the centre adds to the moments, in scaled units."""

    least: float  # to the second moment, at least
    most: float  # to the second moment, at most
    mean_most: float  # to the mean distance, at most

    @classmethod
    def of(cls, evidence: Evidence, column: ColumnFacts) -> FarCells:
        """The run on either side that adds most; zeros if none exceeds the noise.

        The bin at a declared bound needs less evidence than others: bounds are often declared for
        the sake of a code, and there is one such bin, but there are many runs.
        """
        nothing = cls(0.0, 0.0, 0.0)
        cells = noisy_cells(evidence, column.name)
        if cells is None:
            return nothing
        low, high = (
            (each - column.centre) / column.scale for each in (cells.edges[:-1], cells.edges[1:])
        )
        above, below = low >= _FAR, high <= -_FAR
        inwards = slice(None, None, -1)
        sides = (
            cls._run(
                cells,
                np.flatnonzero(above),
                low[above],
                high[above],
                declared=cells.edges[-1] < UNBOUNDED,
            ),
            cls._run(
                cells,
                np.flatnonzero(below)[inwards],
                -high[below][inwards],
                -low[below][inwards],
                declared=cells.edges[0] > -UNBOUNDED,
            ),
        )
        return max((*filter(None, sides), nothing), key=lambda each: each.least)

    @classmethod
    def _run(
        cls, cells: NoisyCells, bins: NDArray[np.int64], low: Array, high: Array, declared: bool
    ) -> FarCells | None:
        """`bins`: those of one side from inside to outside; `low`, `high`: their distances.

        `declared`: whether the last bin is at a declared bound.
        """
        counts, variances = (
            np.concatenate([[0.0], np.cumsum(each[bins])])
            for each in (cells.counts, cells.deviations**2)
        )
        first, last = np.triu_indices(len(counts), 1)
        sums, sd = counts[last] - counts[first], np.sqrt(variances[last] - variances[first])
        at_bound = (first == len(bins) - 1) & declared
        needed = np.where(at_bound, _AT_BOUND, _SEEN + _GAP * np.maximum(first - 1, 0))
        seen = np.flatnonzero(sums >= needed * sd)
        if not seen.size:
            return None
        first, last, sums, sd = first[seen], last[seen], sums[seen], sd[seen]
        least = (sums - _SURE * sd) * low[first] ** 2
        best = int(np.argmax(least))
        number, farthest = float(sums[best] + _SURE * sd[best]), float(high[last[best] - 1])
        return cls(
            float(least[best]) / cells.cells,
            number * farthest**2 / cells.cells,
            number * farthest / cells.cells,
        )
