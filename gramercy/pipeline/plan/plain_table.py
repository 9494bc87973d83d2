"""What the report of a planned release would say of a plain table.

A release with private constants publishes what clipping took away, and its report judges the bounds
of all errors: see `estimators.accuracy.clipped_accuracy`. The same rule is applied here to releases
of a simulated table that is as plain as possible. Its columns are Gaussian with correlations of
0.3, or have levels of equal shares; no cells are missing, the centres are right, and the scales are
a little wide, as those from histograms. Tails, atoms and missing cells make a real report worse;
nothing is known of them before a release.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from gramercy.common.metric import congruence
from gramercy.estimators.accuracy.clipped_accuracy import ClippedAccuracy, Level, level_of
from gramercy.estimators.accuracy.row_simulation import one_factor_rows
from gramercy.estimators.noise.denoise import denoise
from gramercy.estimators.noise.draws import Stream, draw, stream
from gramercy.mechanisms.histograms import HistogramNoise
from gramercy.pipeline.plan.planning import Plan
from gramercy.scaling.clipping_radius import RowLengths, clipping_radius, length_edges, lost_cut
from gramercy.scaling.whitening import Pilot, Turning
from gramercy.schemas.evidence import (
    ROW_LENGTHS,
    TURNED_LENGTHS,
    Evidence,
    Histogram,
    LostMatrix,
    NoiseTerm,
    noise_sum,
)
from gramercy.schemas.facts import LevelsFacts
from gramercy.schemas.normalisation import Clip, Lost

Array = NDArray[np.float64]

_CORRELATION = 0.3
_WIDE = 1.05  # scales, in standard deviations
_DRAWS = 5


@dataclass(frozen=True)
class PlainAccuracy:
    """Errors of the correlations of a plain table: see `ClippedAccuracy`."""

    typical: float
    noise: float
    clipping: float
    largest: float
    lost_share: float

    @property
    def level(self) -> Level:
        """What the report would say."""
        return level_of(self.typical, self.largest, self.lost_share)


def plain_accuracy(plan: Plan) -> PlainAccuracy | None:
    """The accuracy of the correlations of a plain table; of groups, within one of equal size.

    The medians over several draws of the noise. None if the release does not publish what clipping
    takes away, or has no two columns besides an intercept.
    """
    if plan.calibration.lost is None or not plan.spec.intercept or plan.columns < 3:
        return None
    found = [each for each in map(ClippedAccuracy.of, _releases(plan)) if each is not None]
    if 2 * len(found) <= _DRAWS:  # the weight of all rows is within the noise
        return PlainAccuracy(math.inf, math.inf, math.inf, math.inf, 1.0)
    return PlainAccuracy(
        *(
            statistics.median(getattr(each, name) for each in found)
            for name in PlainAccuracy.__dataclass_fields__
        )
    )


def _releases(plan: Plan) -> Iterator[Evidence]:
    """Releases of the plain table, with different noise."""
    spec, counts, lost_noise = plan.spec, plan.calibration.added, plan.calibration.lost
    assert counts is not None  # noqa: S101
    assert lost_noise is not None  # noqa: S101
    source, table = stream(), _PlainTable.of(plan)
    edges = length_edges(plan.columns, table.longest)
    count = spec.dataset.count / (1 if spec.by is None else len(spec.by.levels))
    for _ in range(_DRAWS):
        seen = table.lengths(source, ROW_LENGTHS, edges, table.squares, counts.lengths)
        clip, lost = _normalisation(plan, seen)
        square = clip.length**2
        clipped = _clipped(source, plan, table, seen, clip)
        weight, root = clipped.weight, clipped.root
        kept = table.mean_product(table.rows, weight / square)
        noise, terms = noise_sum([NoiseTerm(plan.group_law, root)], plan.columns)
        law = lost_noise.matrix_law(count / lost.cut)
        taken = table.lost_moment(weight, lost)
        yield Evidence(
            raw=kept + congruence(root, draw(source, len(kept), plan.group_law)),
            repaired=kept,
            law=noise,
            terms=terms,
            rows=count,
            names=tuple(spec.names),
            columns=spec.source_columns,
            unit=False,
            radius=clip.length,
            present=(1.0,) * len(kept),
            metric_radius=clipped.radius,
            histograms=(seen, *clipped.lengths),
            lost=LostMatrix(
                matrix=taken + square * draw(source, len(kept), law),
                sd=square * law.sd_off_diagonal,
                intercept=lost.intercept,
                cut=lost.cut,
                rows_per_unit=spec.dataset.rows / spec.dataset.count,
            ),
        )


@dataclass(frozen=True, eq=False)
class _PlainTable:
    """Rows of the plain table, which stand for as many units as the contract states."""

    rows: Array  # in scaled units, the intercept first
    persons: int  # number of rows of one unit
    count: float  # the number of rows or persons by the contract

    @classmethod
    def of(cls, plan: Plan) -> _PlainTable:
        dataset, rows = plan.spec.dataset, _plain_rows(plan)
        persons = max(1, round(dataset.rows / dataset.count))
        return cls(rows[: len(rows) // persons * persons], persons, float(dataset.count))

    @cached_property
    def squares(self) -> Array:
        """The squared length of the rows of every unit together."""
        return self.squares_of(self.rows)

    def squares_of(self, rows: Array) -> Array:
        """The same for rows in another metric."""
        of_units: Array = (rows**2).sum(axis=1).reshape(-1, self.persons).sum(axis=1)
        return of_units

    @property
    def longest(self) -> float:
        """The largest length of a unit."""
        return math.sqrt(float(self.squares.max()))

    def lengths(
        self, source: Stream, name: str, edges: Array, squares: Array, law: HistogramNoise
    ) -> Histogram:
        """The published histogram of lengths, whose squares are given."""
        bins = np.searchsorted(edges, np.sqrt(squares), side="right") - 1
        exact = np.bincount(bins, minlength=edges.size) * (self.count / len(squares))
        counted = np.rint(exact + law.sd * source.standard_normal(edges.size))
        return Histogram.of_lengths(1, name, edges, counted.astype(np.int64), law.sd)

    def mean_product(self, rows: Array, weight: Array) -> Array:
        """The weighted second moment: the mean over units of sums over their rows."""
        product: Array = (rows * np.repeat(weight, self.persons)[:, None]).T @ rows / len(weight)
        return product

    def lost_moment(self, weight: Array, lost: Lost) -> Array:
        """What clipping takes from a unit; see `Lost`."""
        y = self.rows.copy()
        y[:, 0] = lost.intercept
        norms = (1 - weight) * (self.squares + self.persons * (lost.intercept**2 - 1))
        cut = np.minimum(1.0, lost.largest / np.maximum(norms, 1e-300))
        return self.mean_product(y, (1 - weight) * cut)


def _plain_rows(plan: Plan) -> Array:
    """Rows in scaled units, the intercept first."""
    columns = plan.spec.source_columns[1:]
    factors = one_factor_rows(len(columns), _CORRELATION)
    cells = factors / _WIDE
    for k, column in enumerate(columns):
        if isinstance(column, LevelsFacts):
            cells[:, k] = factors[:, k] < ndtri(1 / (len(column.levels) + 1))
    return np.column_stack([np.ones(len(cells)), cells])


def _normalisation(plan: Plan, lengths: Histogram) -> tuple[Clip, Lost]:
    """The radius and the cut that the lengths of rows give, if the radius is not known."""
    spec, calibration = plan.spec, plan.calibration
    q = len(spec.names)
    seen = RowLengths.of(lengths, float(spec.dataset.count))
    noise = calibration.noise_of_sum(spec)
    radius = spec.radius or clipping_radius(seen, q, q - 1, noise)
    cut = lost_cut(seen, radius, q - 1, calibration.noise_of_lost_sum(spec) or 0.0)
    intercept = radius / 2 / math.sqrt(spec.dataset.rows / spec.dataset.count)
    return Clip(radius=radius), Lost(radius=radius, unit=radius, cut=cut, intercept=intercept)


@dataclass(frozen=True, eq=False)
class _Clipped:
    """How the units of the table are clipped."""

    weight: Array  # of every unit
    root: Array  # G of `Whitening.root_of`; the identity without a metric
    radius: float | None = None  # in the metric; None without one
    lengths: tuple[Histogram, ...] = ()  # in the metric


def _clipped(
    source: Stream, plan: Plan, table: _PlainTable, lengths: Histogram, clip: Clip
) -> _Clipped:
    """The units of the table, clipped in the metric of a simulated pilot if that pays."""
    pilot, counts = plan.calibration.pilot, plan.calibration.added
    square, count = clip.length**2, table.count
    plain = _Clipped(np.minimum(1.0, square / table.squares), np.eye(plan.columns))
    if pilot is None or counts is None or counts.turned is None:
        return plain
    law = pilot.matrix_law(count)
    moment = table.mean_product(table.rows, plain.weight) / square + draw(source, plan.columns, law)
    estimate = square * denoise(moment, law, unit=False)
    shown = Pilot(estimate, pilot.noise_of_sum(1) * square / count, clip.length, count)
    turning = Turning(shown, RowLengths.of(lengths, count))
    metric = turning.metric
    squares = table.squares_of(table.rows @ metric)
    edges = turning.edges(metric, table.longest)
    turned = table.lengths(source, TURNED_LENGTHS, edges, squares, counts.turned)
    noise = plan.calibration.noise_of_sum(plan.spec)
    radius = turning.radius(RowLengths.of(turned, count), metric, noise)
    if radius is None:
        return plain
    root = np.asarray(np.linalg.inv(metric) * (radius / clip.length), np.float64)
    return _Clipped(np.minimum(1.0, radius**2 / squares), root, radius, (turned,))
