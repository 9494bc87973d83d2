"""The chain from published histograms to the constants of a release.

Publishing draws one stage after the other; verification recomputes all of them from what was
published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gramercy.scaling.clipping_radius import clipping_radius, length_edges
from gramercy.scaling.column_constants import (
    UNBOUNDED,
    Constants,
    Grid,
    LevelGrid,
    column_constants,
    first_grid,
    winsorised_bounds,
    zoomed_grid,
)
from gramercy.schemas.column import level_names
from gramercy.schemas.evidence import ROW_LENGTHS, Histogram
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.normalisation import Clip
from gramercy.schemas.request_parts import ScalingFacts

Counts = NDArray[np.int64]
AnyGrid = Grid | LevelGrid
Limits = tuple[float | None, float | None]
NO_LIMITS: Limits = (None, None)


@dataclass(frozen=True)
class ConstantsChain:
    """The constants of a release after some stages of its histograms."""

    spec: ReleaseSpec  # the public facts of the release, whose constants are estimated
    stage: int  # number of stages so far
    rows: float  # number of rows or persons: public, or estimated from the counts of the last stage
    # constants of every table column; None for levels, and before the first stage
    constants: tuple[Constants | None, ...]

    @classmethod
    def start(cls, spec: ReleaseSpec) -> ConstantsChain:
        """The chain before the first stage."""
        return cls(spec, 0, float(spec.dataset.count), (None,) * len(spec.columns))

    @property
    def grids(self) -> list[AnyGrid]:
        """The bins of the next stage, for every table column."""
        return [
            LevelGrid(len(column.levels))
            if isinstance(column, LevelsFacts)
            else first_grid(*limits)
            if constants is None
            else zoomed_grid(constants, *limits)
            for column, limits, constants in zip(
                self.spec.columns, self._limits, self.constants, strict=True
            )
        ]

    def after(self, counts: Sequence[Counts], sd: float) -> ConstantsChain:
        """The chain after one more stage."""
        rows = self._count(counts)
        constants = tuple(
            None
            if isinstance(grid, LevelGrid)
            else column_constants(each, grid, sd, rows, before, *limits)
            for each, grid, before, limits in zip(
                counts, self.grids, self.constants, self._limits, strict=True
            )
        )
        return replace(self, stage=self.stage + 1, rows=rows, constants=constants)

    def histograms(self, counts: Sequence[Counts], sd: float) -> list[Histogram]:
        """The published histograms of the next stage; see `after`."""
        return [
            _histogram(self.stage + 1, column, grid, each, sd)
            for column, grid, each in zip(self.spec.columns, self.grids, counts, strict=True)
        ]

    @property
    def scaled(self) -> ReleaseSpec:
        """The facts of the release with the constants of the last stage, and no radius yet."""
        columns = tuple(
            column
            if constants is None or isinstance(column, LevelsFacts)
            else _with_constants(column, constants, limits)
            for column, constants, limits in zip(
                self.spec.columns, self.constants, self._limits, strict=True
            )
        )
        scaling = self._scaling.model_copy(update={"present": self.present})
        return self.spec.model_copy(update={"columns": columns, "scaling": scaling})

    @property
    def present(self) -> tuple[float, ...]:
        """Share of rows with a value, for every table column; 1 for levels."""
        return tuple(1.0 if each is None else each.present for each in self.constants)

    def length_histogram(self, counts: Counts, sd: float) -> Histogram:
        """The published histogram of row lengths over `lengths_of`."""
        lower = lengths_of(self.spec)
        upper = np.append(lower[1:], np.nan)
        return Histogram(
            self.stage + 1, ROW_LENGTHS, lower, upper, (None,) * counts.size, counts, sd
        )

    def clipped(self, lengths: Counts, sd: float, noise: float) -> ReleaseSpec:
        """The facts of the release with constants and radius."""
        radius = clipping_radius(lengths, sd, self.rows, len(self.spec.names), noise)
        return self.scaled.model_copy(update={"normalisation": Clip(radius=radius)})

    @property
    def _scaling(self) -> ScalingFacts:
        if self.spec.scaling is None:
            raise TypeError("the constants of this release are declared")
        return self.spec.scaling

    @property
    def _limits(self) -> list[Limits]:
        return [bounds or NO_LIMITS for bounds in self._scaling.bounds]

    def _count(self, counts: Sequence[Counts]) -> float:
        """The public number of rows or persons; under add-remove, the mean of columns' totals."""
        if self.spec.neighbours.count_is_public:
            return float(self.spec.dataset.count)
        return max(1.0, sum(int(each.sum()) for each in counts) / len(counts))


def lengths_of(spec: ReleaseSpec) -> NDArray[np.float64]:
    """The edges of the bins of row lengths."""
    return length_edges(len(spec.names))


def starting_facts(name: str, limits: tuple[float, float] | None) -> ColumnFacts:
    """A numeric column before the first histogram: the middle and the half width of its bounds."""
    lower, upper = limits or (-UNBOUNDED, UNBOUNDED)
    centre, scale = lower / 2 + upper / 2, upper / 2 - lower / 2
    return ColumnFacts(name=name, lower=lower, upper=upper, centre=centre, scale=scale)


def replayed(
    spec: ReleaseSpec, histograms: Sequence[Histogram]
) -> tuple[ConstantsChain, list[Histogram]]:
    """The chain that published histograms give, and the same histograms with recomputed bins.

    `histograms`: as published: those of all columns for each stage, and last those of row lengths.
    """
    chain, recomputed = ConstantsChain.start(spec), list[Histogram]()
    *of_columns, lengths = histograms
    width = len(spec.columns)
    if len(of_columns) % width or lengths.count.shape != lengths_of(spec).shape:
        raise ValueError
    for start in range(0, len(of_columns), width):
        stage = of_columns[start : start + width]
        counts, sd = [each.count for each in stage], stage[0].sd
        if [each.size for each in counts] != [grid.size for grid in chain.grids]:
            raise ValueError
        recomputed += chain.histograms(counts, sd)
        chain = chain.after(counts, sd)
    return chain, [*recomputed, chain.length_histogram(lengths.count, lengths.sd)]


def _histogram(
    stage: int, column: ColumnFacts | LevelsFacts, grid: AnyGrid, counts: Counts, sd: float
) -> Histogram:
    """A histogram with its bins; the last one counts missing or other cells."""
    unbounded = np.full(grid.size, np.nan)
    lower, upper = unbounded.copy(), unbounded.copy()
    level: tuple[str | None, ...] = (None,) * grid.size
    if isinstance(column, LevelsFacts):
        level = (*level_names(column.levels), None)
    elif isinstance(grid, Grid):
        lower[:-1], upper[:-1] = grid.edges[:-1], grid.edges[1:]
    return Histogram(stage, column.name, lower, upper, level, counts, sd)


def _with_constants(column: ColumnFacts, constants: Constants, limits: Limits) -> ColumnFacts:
    lower, upper = winsorised_bounds(constants, *limits)
    return column.model_copy(
        update={
            "lower": lower,
            "upper": upper,
            "centre": constants.centre,
            "scale": constants.scale,
        }
    )
