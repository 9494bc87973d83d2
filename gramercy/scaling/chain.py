"""The chain from published histograms to the constants of a release.

Publishing draws one stage after the other; verification recomputes all of them from what was
published.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy.scaling.clipping_radius import (
    RowLengths,
    clipping_radius,
    length_edges,
    lost_cut,
    missing_cut,
)
from gramercy.scaling.column_constants import Grid, LevelGrid
from gramercy.scaling.column_scan import ColumnConstants, ColumnScan
from gramercy.scaling.normal_scores import is_rank, with_scores
from gramercy.scaling.runs import SEEN
from gramercy.scaling.whitening import Pilot, Turning
from gramercy.schemas.column import UNBOUNDED, level_names
from gramercy.schemas.evidence import ROW_LENGTHS, TURNED_LENGTHS, Histogram
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.normalisation import Clip

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
AnyGrid = Grid | LevelGrid
Limits = tuple[float | None, float | None]
NO_LIMITS: Limits = (None, None)


@dataclass(frozen=True)
class ConstantsChain:
    """The constants of a release after some stages of its histograms."""

    spec: ReleaseSpec  # the public facts of the release, whose constants are estimated
    noise: float  # of the sum of rows: see `Mechanism.noise_of_sum`
    stage: int  # number of stages so far
    # number of rows or persons from all counts so far, and the deviation of its noise; before the
    # first stage, the public or the planned number
    counted: float
    counted_sd: float
    # every table column so far; None for levels
    columns: tuple[ColumnScan | None, ...]

    @classmethod
    def start(cls, spec: ReleaseSpec, noise: float) -> ConstantsChain:
        """The chain before the first stage."""
        bounds = spec.scaling.bounds if spec.scaling else ()
        if not bounds:
            raise TypeError("the constants of this release are declared")
        columns = tuple(
            None if isinstance(column, LevelsFacts) else ColumnScan(*(limits or NO_LIMITS))
            for column, limits in zip(spec.columns, bounds, strict=True)
        )
        return cls(spec, noise, 0, float(spec.dataset.count), math.inf, columns)

    @property
    def rows(self) -> float:
        """The number of rows or persons: the public one, unless the counts contradict it."""
        public = float(self.spec.dataset.count)
        if not self.spec.neighbours.count_is_public:
            return self.counted
        return self.counted if abs(self.counted - public) > SEEN * self.counted_sd else public

    @property
    def grids(self) -> list[AnyGrid]:
        """The bins of the next stage, for every table column."""
        return [
            LevelGrid(len(facts.levels)) if isinstance(facts, LevelsFacts) else column.grid  # type: ignore[union-attr]
            for facts, column in zip(self.spec.columns, self.columns, strict=True)
        ]

    def after(self, counts: Sequence[Counts], sd: float) -> ConstantsChain:
        """The chain after one more stage."""
        chain = self._counting([(float(each.sum()), each.size) for each in counts], sd)
        columns = tuple(
            None if column is None else column.after(each, sd, chain.rows)
            for column, each in zip(self.columns, counts, strict=True)
        )
        return replace(chain, stage=self.stage + 1, columns=columns)

    def _counting(self, totals: Sequence[tuple[float, int]], sd: float) -> ConstantsChain:
        """The number of rows with that of more histograms, by inverse variance."""
        weight = 0.0 if math.isinf(self.counted_sd) else 1 / self.counted_sd**2
        terms, weights = [self.counted * weight], [weight]
        for total, bins in totals:
            weights.append(1 / (bins * sd * sd))
            terms.append(total * weights[-1])
        weight = math.fsum(weights)
        counted = max(1.0, math.fsum(terms) / weight)
        return replace(self, counted=counted, counted_sd=1 / math.sqrt(weight))

    def histograms(self, counts: Sequence[Counts], sd: float) -> list[Histogram]:
        """The published histograms of the next stage; see `after`."""
        return [
            _histogram(self.stage + 1, column, grid, each, sd)
            for column, grid, each in zip(self.spec.columns, self.grids, counts, strict=True)
        ]

    @cached_property
    def constants(self) -> tuple[ColumnConstants | None, ...]:
        """The constants of every table column after the last stage; None for levels."""
        q = len(self.spec.names)
        return tuple(
            None if column is None else column.finished(self.rows, self.noise, q)
            for column in self.columns
        )

    @cached_property
    def scaled(self) -> ReleaseSpec:
        """The facts of the release with the constants of the last stage, and no radius yet.

        Without a stage they are as planned: the constants are those of another release.
        """
        if self.stage == 0:
            return self.spec
        constants = self.constants
        pairs = list(zip(self.spec.columns, self.columns, constants, strict=True))
        columns = tuple(self._with_constants(*each) for each in pairs)
        update = {
            "present": tuple(1.0 if each is None else each.present for each in constants),
            "signs": tuple(
                facts.name
                for facts, each in zip(columns, constants, strict=True)
                if each is not None and each.sign and not is_rank(facts)
            ),
        }
        assert self.spec.scaling is not None  # noqa: S101
        scaling = self.spec.scaling.model_copy(update=update)
        return self.spec.model_copy(update={"columns": columns, "scaling": scaling})

    def _with_constants(
        self,
        facts: ColumnFacts | LevelsFacts,
        scan: ColumnScan | None,
        constants: ColumnConstants | None,
    ) -> ColumnFacts | LevelsFacts:
        if scan is None or constants is None or isinstance(facts, LevelsFacts):
            return facts
        if is_rank(facts):
            return with_scores(facts, scan, self.rows)
        keys = ("lower", "upper", "centre", "scale")
        return facts.model_copy(update={key: getattr(constants, key) for key in keys})

    def length_histogram(self, counts: Counts, sd: float) -> Histogram:
        """The published histogram of row lengths over `lengths_of`."""
        edges = lengths_of(self.scaled)
        return Histogram.of_lengths(self.stage + 1, ROW_LENGTHS, edges, counts, sd)

    def turned_histogram(self, edges: Array, counts: Counts, sd: float) -> Histogram:
        """The published histogram of row lengths in the metric of the pilot matrix."""
        return Histogram.of_lengths(self.stage + 2, TURNED_LENGTHS, edges, counts, sd)

    def turning(self, lengths: Histogram, spec: ReleaseSpec, total: Array, noise: float) -> Turning:
        """What a pilot matrix shows.

        Parameters
        ----------
        lengths
            The published histogram of row lengths.
        spec
            The facts of the release with constants and radius.
        total, noise
            The sum of rows of the unit ball without its noise, shape (q, q), and the standard
            deviation of the noise off the diagonal.
        """
        radius, seen = spec.radius or math.nan, self._seen(lengths)
        square = radius * radius / seen.rows
        return Turning(Pilot(total * square, noise * square, radius, seen.rows), seen)

    def turning_again(self, lengths: Histogram, spec: ReleaseSpec, pilot: Pilot) -> Turning:
        """The same with the pilot matrix of another release; see `turning`."""
        seen = self._seen(lengths)
        return Turning(replace(pilot, radius=spec.radius or math.nan, rows=seen.rows), seen)

    def _seen(self, lengths: Histogram) -> RowLengths:
        """What row lengths say, with the number of rows by all counts."""
        chain = self._counting([(float(lengths.count.sum()), lengths.count.size)], lengths.sd)
        return RowLengths.of(lengths, chain.rows)

    def clipped(
        self,
        lengths: Histogram,
        noise: float,
        lost_noise: float | None = None,
        near: float | None = None,
    ) -> ReleaseSpec:
        """The facts of the release with constants, radius and cuts, for the noise of its sum.

        Without a stage the radius is known, too; the cuts follow from the lengths.

        Parameters
        ----------
        lengths
            The published histogram of row lengths.
        noise, lost_noise
            See `Mechanism.noise_of_sum`: of the rows, and of what they lose by clipping. None
            without further matrices, which need cuts.
        near
            A radius that is kept if the chosen one is at most a quarter octave away.
        """
        spec = self.scaled
        seen, q = self._seen(lengths), len(spec.names)
        p = q - int(spec.intercept)
        known = spec.radius if self.stage == 0 else None
        radius = _kept_if_near(known or clipping_radius(seen, q, p, noise), near)
        update: dict[str, Any] = {"normalisation": Clip(radius=radius)}
        if lost_noise is not None and spec.scaling is not None:
            cut = lost_cut(seen, radius, p, lost_noise)
            cuts: dict[str, Any] = {"cut": cut}
            if spec.intercept:
                cuts["missing_cut"] = missing_cut(spec.scaling.present or ())
            update["scaling"] = spec.scaling.model_copy(update=cuts)
        return spec.model_copy(update=update)

    def whitened(
        self,
        spec: ReleaseSpec,
        turning: Turning,
        turned: Histogram,
        metric: Array,
        noise: float,
        near: float | None = None,
    ) -> ReleaseSpec:
        """The facts of the release with the radius in the metric, if it pays; see `clipped`."""
        seen = RowLengths.of(turned, turning.pilot.rows)
        radius = turning.radius(seen, metric, noise)
        if spec.scaling is None:
            return spec
        update = {"metric_radius": None if radius is None else _kept_if_near(radius, near)}
        scaling = spec.scaling.model_copy(update=update)
        return spec.model_copy(update={"scaling": scaling})


_NEAR = 1.2  # a quarter octave, with the rounding of the radius

_PERSONS_ROOM = 16.0


def _kept_if_near(radius: float, near: float | None) -> float:
    return near if near is not None and 1 / _NEAR <= radius / near <= _NEAR else radius


def lengths_of(spec: ReleaseSpec) -> NDArray[np.float64]:
    """The edges of the bins of row lengths, up to the longest row that the bounds in use allow."""
    return length_edges(len(spec.names), longest_row(spec))


def longest_row(spec: ReleaseSpec) -> float:
    """Length of the longest row that is expected, or of a person's rows together."""
    room = 1.0 if spec.privacy_unit == "row" else _PERSONS_ROOM
    return spec.largest_norm * room


def starting_facts(name: str, limits: tuple[float, float] | None, **others: Any) -> ColumnFacts:
    """A numeric column before the first histogram: the middle and the half width of its bounds.

    `others`: facts that are not constants, such as its unit.
    """
    lower, upper = limits or (-UNBOUNDED, UNBOUNDED)
    centre, scale = lower / 2 + upper / 2, upper / 2 - lower / 2
    return ColumnFacts(name=name, lower=lower, upper=upper, centre=centre, scale=scale, **others)


def replayed(
    spec: ReleaseSpec, histograms: Sequence[Histogram], noise: float
) -> tuple[ConstantsChain, list[Histogram]]:
    """The chain that published histograms give, and the same histograms with recomputed bins.

    `histograms`: as published: those of all columns for each stage, and last those of row lengths.
    """
    chain, recomputed = ConstantsChain.start(spec, noise), list[Histogram]()
    *of_columns, lengths = [each for each in histograms if each.column != TURNED_LENGTHS]
    width = len(spec.columns)
    if len(of_columns) % width:
        raise ValueError
    for start in range(0, len(of_columns), width):
        stage = of_columns[start : start + width]
        counts, sd = [each.count for each in stage], stage[0].sd
        if [each.size for each in counts] != [grid.size for grid in chain.grids]:
            raise ValueError
        recomputed += chain.histograms(counts, sd)
        chain = chain.after(counts, sd)
    if lengths.count.shape != lengths_of(chain.scaled).shape:
        raise ValueError
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
