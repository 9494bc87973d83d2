"""A release with private constants in memory: exact counts and sums, and seeded noise.

The rule, the shares of the budget and the size of the noise are those of the pipeline. Only the
passes over a file and the sampler are replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, Whitening
from gramercy.common.metric import Metric, congruence
from gramercy.estimators.noise.denoise import denoise
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.pipeline.plan.calibration import calibrate, row_normalisation, without_noise
from gramercy.pipeline.plan.planning import (
    ReleasedMetric,
    constants_of_release,
    shares_of_released_constants,
)
from gramercy.pipeline.publish.drawing import release_manifest
from gramercy.scaling.chain import (
    AnyGrid,
    ConstantsChain,
    lengths_of,
    longest_row,
    starting_facts,
)
from gramercy.scaling.column_constants import LevelGrid
from gramercy.scaling.shares import shares, whitening_pays
from gramercy.schemas.budget import Budget
from gramercy.schemas.evidence import Evidence, Histogram
from gramercy.schemas.facts import BudgetFacts, ColumnFacts, DatasetFacts, LevelsFacts
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.neighbours import Neighbours
from gramercy.schemas.normalisation import Clip
from gramercy.schemas.request_parts import ScalingFacts
from gramercy.tables.sums.row_transform import normalise
from tests.support.noisy_matrices import goe

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Rng = np.random.Generator
Facts = ColumnFacts | LevelsFacts
Limits = tuple[float, float] | None
DELTA = 1e-6


def numeric_columns(bounds: Sequence[Limits]) -> tuple[ColumnFacts, ...]:
    """Columns of numbers with declared bounds, or without."""
    return tuple(starting_facts(f"c{j}", each) for j, each in enumerate(bounds))


def level_column(name: str, levels: int) -> LevelsFacts:
    """A column of levels, whose cells are their numbers from 0."""
    return LevelsFacts(name=name, levels=tuple(map(float, range(levels))))


@dataclass(frozen=True)
class Scaled:
    """A table in scaled units, by constants from its own noisy histograms."""

    spec: ReleaseSpec  # with constants and radius
    cells: Array  # of the table
    rows: Array  # the intercept first, missing cells zero; shape (n, q)
    histograms: tuple[Histogram, ...]
    whitening: Whitening | None = None  # the pilot matrix and its metric, without the last matrix

    @property
    def radius(self) -> float:
        """The clipping radius."""
        assert isinstance(self.spec.normalisation, Clip)
        return self.spec.normalisation.length

    def of(self, cells: Array) -> Array:
        """Other rows in the same units."""
        return _scaled(cells, self.spec.columns)

    @property
    def _metric(self) -> tuple[Array, Array, float]:
        """The metric in which rows are clipped, what maps it back, and the radius in it."""
        root = None if self.whitening is None else self.whitening.root_of(self.spec)
        if self.whitening is None or root is None or self.spec.scaling is None:
            identity = np.eye(len(self.rows.T))
            return identity, identity, self.radius
        return self.whitening.metric, root, self.spec.scaling.metric_radius or self.radius

    @cached_property
    def _measured(self) -> Array:
        """The rows in the metric in which they are clipped; shape (q, n)."""
        measured: Array = self._metric[0] @ self.rows.T
        return measured

    @cached_property
    def _blocks(self) -> list[tuple[Array, int]]:
        """The exact sum of the outer products of the clipped rows of each fold, and its rows."""
        rows = normalise(self._measured, Clip(radius=self._metric[2]))
        blocks = np.array_split(rows, self.spec.folds, axis=1)
        return [(each @ each.T, each.shape[1]) for each in blocks]

    @cached_property
    def _further(self) -> dict[str, Array]:
        """The exact sums of the further matrices."""
        further = {}
        for name, facts in self.spec.further_rows.items():
            own = normalise(self.rows.T, facts, cells=self.cells.T, measured=self._measured)
            further[name] = own @ own.T
        return further

    def clipped_moment(self, cells: Array) -> Array:
        """The second moment of other rows, clipped as in the release, in its units."""
        metric, root, radius = self._metric
        return congruence(root, clipped_moment(self.of(cells) @ metric, radius))

    def release(self, rng: Rng) -> Evidence:
        """Draw the noise of the matrices. Folds are blocks of consecutive rows."""
        return self.bundle(rng).evidence

    def bundle(self, rng: Rng) -> ReleaseBundle:
        """The release as a bundle; see `release`."""
        spec, n = self.spec, self.spec.dataset.rows
        calibration = calibrate(spec)
        whitening, (_, root, _) = self.whitening, self._metric
        noise = calibration.mechanism.law.sd_off_diagonal
        sums = [each + goe(rng, len(each), noise) for each, _ in self._blocks]
        sizes = [size for _, size in self._blocks]
        further = {}
        for name, exact in self._further.items():
            noise = calibration.further[name].law.sd_off_diagonal
            further[name] = (exact + goe(rng, len(exact), noise)) * (
                spec.further_rows[name].norm / n
            )
        manifest = release_manifest(
            spec,
            release="v1-r1",
            published="2026-11-01",
            row_counts=sizes if spec.folds > 1 else [n],
            versions={},
            histograms=self.histograms,
        )
        drawn = np.sum(sums, axis=0) / n
        raw = congruence(root, drawn)
        if whitening is not None and whitening.root_of(spec) is not None:
            whitening = replace(whitening, drawn=drawn)
        return ReleaseBundle(
            manifest=manifest,
            raw=raw,
            projected=raw,
            denoised=congruence(root, denoise(drawn, manifest.noise, rows=float(n), unit=False)),
            folds=tuple(congruence(root, s / k) for s, k in zip(sums, sizes, strict=True))
            if spec.folds > 1
            else (),
            sha256="",
            histograms=self.histograms,
            further=further,
            whitening=whitening,
        )


def _gram(rows: Array, sd: float, rng: Rng) -> Array:
    """The noisy sum of the outer products of rows, shape (q, n)."""
    gram: Array = rows @ rows.T + goe(rng, len(rows), sd)
    return gram


def privately_scaled(
    cells: Array,
    columns: Sequence[Facts],
    epsilon: float,
    rng: Rng,
    folds: int = 1,
    declared: int | None = None,
    whitened: bool = False,
) -> Scaled | None:
    """Choose all constants of a table from noisy histograms, at delta = 1e-6 under replace-one.

    Parameters
    ----------
    cells
        Shape (n, columns); NaN where missing.
    columns
        Declared facts; see `numeric_columns` and `level_column`.
    epsilon
        Of everything that is released.
    rng
        Of the noise.
    folds
        Their noise matters for the radius.
    declared
        Number of rows in the contract, if it is not that of the table; without folds.
    whitened
        Whether there is a pilot matrix, in whose metric the last one is drawn if that pays.

    Returns
    -------
    Scaled or None
        None if the noise is too large for private constants.
    """
    spec = _spec(declared or len(cells), columns, epsilon, folds, whitened)
    if spec is None:
        return None
    calibration = calibrate(spec)
    noise, of_sum = calibration.constants_noise, calibration.noise_of_sum(spec)
    assert noise is not None
    chain, histograms = ConstantsChain.start(spec, of_sum), list[Histogram]()
    ordered = [np.sort(each[~np.isnan(each)]) for each in cells.T]
    for law in noise.stages:
        counts = [
            _noisy(_counts(each, grid, len(cells)), law.sd, rng)
            for each, grid in zip(ordered, chain.grids, strict=True)
        ]
        histograms += chain.histograms(counts, law.sd)
        chain = chain.after(counts, law.sd)
    rows, lengths = _measured(cells, chain, noise.lengths.sd, rng)
    clipped = chain.clipped(lengths, of_sum, calibration.noise_of_lost_sum(spec))
    scaled = Scaled(clipped, cells, rows, (*histograms, lengths))
    return _turned(scaled, chain, rng) if whitened else scaled


def as_by_default(
    cells: Array, columns: Sequence[Facts], epsilon: float, rng: Rng, folds: int = 1
) -> Scaled | None:
    """See `privately_scaled`: with a pilot matrix where it pays, as a request has by default."""
    p = sum(len(each.levels) if isinstance(each, LevelsFacts) else 1 for each in columns)
    pays = p > 1 and whitening_pays(len(cells), p, gdp_mu(epsilon, DELTA))
    return privately_scaled(cells, columns, epsilon, rng, folds, whitened=pays)


def _turned(
    scaled: Scaled, chain: ConstantsChain, rng: Rng, released: ReleasedMetric | None = None
) -> Scaled:
    """The same with a pilot matrix, or that of another release, and a metric for the last one."""
    calibration = calibrate(scaled.spec)
    counted, lengths, total = calibration.constants_noise, scaled.histograms[-1], None
    assert counted is not None
    assert counted.turned is not None
    law = counted.turned
    if released is None:
        mechanism = calibration.pilot
        assert mechanism is not None
        of_pilot = mechanism.noise_of_sum(1)
        total = _gram(normalise(scaled.rows.T, row_normalisation(scaled.spec)), of_pilot, rng)
        shown = without_noise(mechanism, total, scaled.spec.dataset.count)
        turning = chain.turning(lengths, scaled.spec, shown, of_pilot)
        metric, near = Metric.near(turning.metric), None
    else:
        turning = chain.turning_again(lengths, scaled.spec, released.pilot)
        metric, near = released.metric, released.radius
    edges = turning.edges(metric.matrix, longest_row(scaled.spec))
    far = np.linalg.norm(metric.matrix @ scaled.rows.T, axis=0)
    bins = np.maximum(np.searchsorted(edges, far, side="right") - 1, 0)
    counts = _noisy(np.bincount(bins, minlength=edges.size), law.sd, rng)
    histogram = chain.turned_histogram(edges, counts, law.sd)
    of_sum = calibration.noise_of_sum(scaled.spec)
    spec = chain.whitened(scaled.spec, turning, histogram, metric.matrix, of_sum, near)
    return replace(
        scaled,
        spec=spec,
        histograms=(*scaled.histograms, histogram),
        whitening=Whitening(total, metric.matrix),
    )


def scaled_as(source: ReleaseBundle, cells: Array, rng: Rng) -> Scaled:
    """Another table of as many rows, with the constants of an earlier release of its law."""
    update: dict[str, Any] = {"normalisation": Clip(), "scaling": None}
    declared = source.manifest.model_copy(update=update)
    assert source.manifest.scaling is not None
    own = shares_of_released_constants(declared, source.manifest)
    assert own is not None
    scaling = ScalingFacts(
        kind="release",
        bounds=source.manifest.scaling.bounds,
        lengths=own.lengths,
        lost=own.lost,
        turned=own.turned,
        release=source.manifest.release,
        sha256="0" * 64,
    )
    spec = constants_of_release(declared.model_copy(update={"scaling": scaling}), source)
    calibration = calibrate(spec)
    noise = calibration.constants_noise
    assert noise is not None
    chain = ConstantsChain.start(spec, calibration.noise_of_sum(spec))
    rows, lengths = _measured(cells, chain, noise.lengths.sd, rng)
    lost_noise = calibration.noise_of_lost_sum(spec)
    clipped = chain.clipped(lengths, calibration.noise_of_sum(spec), lost_noise)
    scaled = Scaled(clipped, cells, rows, (lengths,))
    released = ReleasedMetric.of(source)
    return scaled if released is None else _turned(scaled, chain, rng, released)


def _measured(cells: Array, chain: ConstantsChain, sd: float, rng: Rng) -> tuple[Array, Histogram]:
    """The rows in scaled units, and the noisy histogram of their lengths."""
    rows, edges = _scaled(cells, chain.scaled.columns), lengths_of(chain.scaled)
    bins = np.searchsorted(edges, np.linalg.norm(rows, axis=1), side="right") - 1
    exact = np.bincount(np.maximum(bins, 0), minlength=edges.size)
    return rows, chain.length_histogram(_noisy(exact, sd, rng), sd)


def _spec(
    n: int, columns: Sequence[Facts], epsilon: float, folds: int, whitened: bool
) -> ReleaseSpec | None:
    """The public facts before the first histogram; None if constants cannot be estimated."""
    p = sum(len(each.levels) if isinstance(each, LevelsFacts) else 1 for each in columns)
    planned = shares(n, p, gdp_mu(epsilon, DELTA))
    if planned is None:
        return None
    planned = planned.with_pilot if whitened else planned
    return ReleaseSpec(
        dataset=DatasetFacts(id="toy", title="toy", curator="toy", version="v1", rows=n),
        columns=tuple(columns),
        intercept=True,
        neighbours=Neighbours.REPLACE_ONE,
        privacy_unit="row",
        normalisation=Clip(),
        mechanism={"name": "gaussian", "epsilon": epsilon, "delta": DELTA},
        folds=folds,
        budget=BudgetFacts.of(Budget(epsilon=epsilon, delta=DELTA)),
        scaling=ScalingFacts(
            kind="private",
            bounds=tuple(_limits(each) for each in columns),
            stages=planned.stages,
            lengths=planned.lengths,
            lost=planned.lost,
            pilot=planned.pilot,
            turned=planned.turned,
        ),
    )


def _limits(column: Facts) -> Limits:
    if isinstance(column, LevelsFacts) or column == starting_facts(column.name, None):
        return None
    return column.lower, column.upper


def _counts(ordered: Array, grid: AnyGrid, rows: int) -> Counts:
    """Exact counts of the cells with a value, in order, and of missing cells."""
    if isinstance(grid, LevelGrid):
        ends = np.searchsorted(ordered, np.arange(1, grid.levels))
    else:
        ends = np.searchsorted(ordered, grid.edges[1:-1], side="left")
    places = np.concatenate([[0], ends, [len(ordered), rows]])
    counts: Counts = np.diff(places)
    return counts


def _noisy(counts: Counts, sd: float, rng: Rng) -> Counts:
    noisy: Counts = counts + np.rint(rng.normal(size=counts.size) * sd).astype(np.int64)
    return noisy


def _scaled(cells: Array, columns: Sequence[Facts]) -> Array:
    """Rows in scaled units, the intercept first; missing cells are zero."""
    parts = [np.ones(len(cells))]
    for own, each in zip(cells.T, columns, strict=True):
        if isinstance(each, LevelsFacts):
            parts += [(own == level).astype(np.float64) for level in range(len(each.levels))]
        else:
            values = np.clip(each.published(own), each.lower, each.upper)
            parts.append((values - each.centre) / each.scale)
    return np.nan_to_num(np.column_stack(parts))


def clipped_moment(rows: Array, radius: float | None) -> Array:
    """The second moment of rows in the unit ball: clipped at a radius, or of length one."""
    squares = np.maximum((rows * rows).sum(axis=1), 1e-300)
    weights = 1 / squares
    if radius is not None:
        weights = np.minimum(weights, 1 / radius**2)
    result: Array = (rows * weights[:, None]).T @ rows / len(rows)
    return result
