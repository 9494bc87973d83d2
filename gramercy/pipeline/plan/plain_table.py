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

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from gramercy.estimators.accuracy.clipped_accuracy import ClippedAccuracy, Level, level_of
from gramercy.estimators.accuracy.row_simulation import one_factor_rows
from gramercy.estimators.noise.draws import draw, stream
from gramercy.pipeline.plan.planning import Plan
from gramercy.scaling.clipping_radius import RowLengths, clipping_radius, length_edges, lost_cut
from gramercy.schemas.evidence import ROW_LENGTHS, Evidence, Histogram, LostMatrix
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
    source, rows = stream(), _plain_rows(plan)
    persons = max(1, round(spec.dataset.rows / spec.dataset.count))
    rows = rows[: len(rows) // persons * persons]
    squares = (rows**2).sum(axis=1).reshape(-1, persons).sum(axis=1)
    edges = length_edges(len(spec.names), math.sqrt(float(squares.max())))
    bins = np.searchsorted(edges, np.sqrt(squares), side="right") - 1
    exact = np.bincount(bins, minlength=edges.size) * (spec.dataset.count / len(squares))
    count = spec.dataset.count / (1 if spec.by is None else len(spec.by.levels))
    for _ in range(_DRAWS):
        counted = np.rint(exact + counts.lengths.sd * source.standard_normal(edges.size))
        lengths = _length_histogram(edges, counted, counts.lengths.sd)
        clip, lost = _normalisation(plan, lengths)
        square = clip.length**2
        weight = np.minimum(1.0, square / squares)
        kept = _mean_product(rows, weight / square, persons)
        law = lost_noise.matrix_law(count / lost.cut)
        taken = _lost_moment(rows, squares, weight, lost)
        yield Evidence(
            raw=kept + draw(source, len(kept), plan.group_law),
            repaired=kept,
            law=plan.group_law,
            rows=count,
            names=tuple(spec.names),
            columns=spec.source_columns,
            unit=False,
            radius=clip.length,
            present=(1.0,) * len(kept),
            histograms=(lengths,),
            lost=LostMatrix(
                matrix=taken + square * draw(source, len(kept), law),
                sd=square * law.sd_off_diagonal,
                intercept=lost.intercept,
                cut=lost.cut,
                rows_per_unit=spec.dataset.rows / spec.dataset.count,
            ),
        )


def _plain_rows(plan: Plan) -> Array:
    """Rows in scaled units, the intercept first."""
    columns = plan.spec.source_columns[1:]
    factors = one_factor_rows(len(columns), _CORRELATION)
    cells = factors / _WIDE
    for k, column in enumerate(columns):
        if isinstance(column, LevelsFacts):
            cells[:, k] = factors[:, k] < ndtri(1 / (len(column.levels) + 1))
    return np.column_stack([np.ones(len(cells)), cells])


def _length_histogram(edges: Array, counted: Array, sd: float) -> Histogram:
    upper, levels = np.append(edges[1:], np.nan), (None,) * edges.size
    return Histogram(1, ROW_LENGTHS, edges, upper, levels, counted.astype(np.int64), sd)


def _normalisation(plan: Plan, lengths: Histogram) -> tuple[Clip, Lost]:
    """The radius and the cut that the lengths of rows give, if the radius is not known."""
    spec, calibration = plan.spec, plan.calibration
    q = len(spec.names)
    seen = RowLengths(lengths.count, lengths.sd, lengths.lower, float(spec.dataset.count))
    noise, known = calibration.noise_of_sum(spec), getattr(spec.normalisation, "radius", None)
    radius = known or clipping_radius(seen, q, q - 1, noise)
    cut = lost_cut(seen, radius, q - 1, calibration.noise_of_lost_sum(spec) or 0.0)
    intercept = radius / 2 / math.sqrt(spec.dataset.rows / spec.dataset.count)
    return Clip(radius=radius), Lost(radius=radius, unit=radius, cut=cut, intercept=intercept)


def _lost_moment(rows: Array, squares: Array, weight: Array, lost: Lost) -> Array:
    """What clipping takes from a row or a person; see `Lost`."""
    persons = len(rows) // len(squares)
    y = rows.copy()
    y[:, 0] = lost.intercept
    norms = (1 - weight) * (squares + persons * (lost.intercept**2 - 1))
    cut = np.minimum(1.0, lost.largest / np.maximum(norms, 1e-300))
    return _mean_product(y, (1 - weight) * cut, persons)


def _mean_product(rows: Array, weight: Array, persons: int) -> Array:
    """The weighted second moment: of rows, or the mean over persons of sums over their rows."""
    product: Array = (rows * np.repeat(weight, persons)[:, None]).T @ rows / len(weight)
    return product
