"""A release with private constants in memory: exact counts and sums, and seeded noise.

The rule, the shares of the budget and the size of the noise are those of the pipeline. Only the
passes over a file and the sampler are replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.noise.denoise import denoise
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.pipeline.plan.calibration import Calibration, calibrate
from gramercy.scaling.chain import AnyGrid, ConstantsChain, lengths_of, starting_facts
from gramercy.scaling.column_constants import LevelGrid
from gramercy.scaling.shares import shares
from gramercy.schemas.budget import Budget
from gramercy.schemas.evidence import Evidence, Fold, Histogram, LostMatrix
from gramercy.schemas.facts import BudgetFacts, ColumnFacts, DatasetFacts, LevelsFacts
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.neighbours import Neighbours
from gramercy.schemas.normalisation import Clip, Lost
from gramercy.schemas.request_parts import ScalingFacts
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
    calibration: Calibration
    rows: Array  # the intercept first, missing cells zero; shape (n, q)
    histograms: tuple[Histogram, ...]

    @property
    def radius(self) -> float:
        """The clipping radius."""
        assert isinstance(self.spec.normalisation, Clip)
        return self.spec.normalisation.length

    def of(self, cells: Array) -> Array:
        """Other rows in the same units."""
        return _scaled(cells, self.spec.columns)

    def release(self, rng: Rng) -> Evidence:
        """Draw the noise of the matrices. Folds are blocks of consecutive rows."""
        spec, n, law = self.spec, float(len(self.rows)), self.calibration.mechanism.law
        parts = []
        for block in np.array_split(self.rows, spec.folds):
            noise = goe(rng, block.shape[1], law.sd_off_diagonal)
            size = float(len(block))
            parts.append(Fold(clipped_moment(block, self.radius) + noise / size, size))
        raw = np.sum([each.moment * (each.rows / n) for each in parts], axis=0)
        whole = self.calibration.mechanism.matrix_law(n, spec.parts)
        return Evidence(
            raw,
            denoise(raw, whole, rows=n, unit=False),
            whole,
            n,
            names=tuple(spec.names),
            columns=spec.source_columns,
            unit=False,
            folds=tuple(parts) if spec.folds > 1 else (),
            radius=self.radius,
            present=spec.present_shares,
            histograms=self.histograms,
            lost=self._lost(rng),
            signs=spec.scaling.signs if spec.scaling else (),
        )

    def _lost(self, rng: Rng) -> LostMatrix | None:
        lost, mechanism = self.spec.lost_rows, self.calibration.lost
        if lost is None or mechanism is None:
            return None
        sd = mechanism.law.sd_off_diagonal * lost.largest / len(self.rows)
        exact = lost_moment(self.rows, lost)
        return LostMatrix(exact + goe(rng, len(exact), sd), sd, lost.intercept, lost.cut)


def privately_scaled(
    cells: Array, columns: Sequence[Facts], epsilon: float, rng: Rng, folds: int = 1
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

    Returns
    -------
    Scaled or None
        None if the noise is too large for private constants.
    """
    spec = _spec(len(cells), columns, epsilon, folds)
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
    rows, edges = _scaled(cells, chain.scaled.columns), lengths_of(chain.scaled)
    bins = np.searchsorted(edges, np.linalg.norm(rows, axis=1), side="right") - 1
    exact = np.bincount(np.maximum(bins, 0), minlength=edges.size)
    lengths = chain.length_histogram(_noisy(exact, noise.lengths.sd, rng), noise.lengths.sd)
    clipped = chain.clipped(lengths, of_sum, calibration.noise_of_lost_sum(spec))
    return Scaled(clipped, calibration, rows, (*histograms, lengths))


def _spec(n: int, columns: Sequence[Facts], epsilon: float, folds: int) -> ReleaseSpec | None:
    """The public facts before the first histogram; None if constants cannot be estimated."""
    p = sum(len(each.levels) if isinstance(each, LevelsFacts) else 1 for each in columns)
    planned = shares(n, p, gdp_mu(epsilon, DELTA))
    if planned is None:
        return None
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
            parts.append((np.clip(own, each.lower, each.upper) - each.centre) / each.scale)
    return np.nan_to_num(np.column_stack(parts))


def clipped_moment(rows: Array, radius: float | None) -> Array:
    """The second moment of rows in the unit ball: clipped at a radius, or of length one."""
    squares = np.maximum((rows * rows).sum(axis=1), 1e-300)
    weights = 1 / squares
    if radius is not None:
        weights = np.minimum(weights, 1 / radius**2)
    result: Array = (rows * weights[:, None]).T @ rows / len(rows)
    return result


def lost_moment(rows: Array, lost: Lost) -> Array:
    """The second moment of what clipping takes away from rows with an intercept."""
    squares = (rows * rows).sum(axis=1)
    clipped = squares > lost.radius**2
    y, share = rows[clipped], 1 - lost.radius**2 / squares[clipped]
    y[:, 0] = lost.intercept
    norms = np.maximum(share * (y * y).sum(axis=1), 1e-300)
    weights = share * np.minimum(1.0, lost.largest / norms)
    result: Array = (y * weights[:, None]).T @ y / len(rows)
    return result
