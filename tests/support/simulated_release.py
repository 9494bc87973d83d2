"""Releases simulated with numpy: exact sums and seeded noise, without the pipeline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.noise.denoise import denoise
from gramercy.estimators.table_units import TableUnits, table_units
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.scaling.chain import ConstantsChain, lengths_of, starting_facts
from gramercy.scaling.column_constants import Grid
from gramercy.scaling.shares import shares
from gramercy.schemas.budget import Budget
from gramercy.schemas.evidence import Evidence, Histogram, LostMatrix
from gramercy.schemas.facts import BudgetFacts, ColumnFacts, DatasetFacts
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.normalisation import Clip, Lost
from gramercy.schemas.request_parts import ScalingFacts
from tests.support.noisy_matrices import gaussian_law, goe

Array = NDArray[np.float64]


def declared_columns(bounds: Sequence[tuple[float, float]]) -> list[ColumnFacts]:
    """Columns with the middle and half width of their bounds as constants."""
    return [starting_facts(f"c{j}", each) for j, each in enumerate(bounds)]


def scaled_rows(table: Array, columns: Sequence[ColumnFacts], intercept: bool) -> Array:
    """Rows in scaled units, with the intercept first; missing cells are zero."""
    cells = [
        (np.clip(table[:, j], c.lower, c.upper) - c.centre) / c.scale for j, c in enumerate(columns)
    ]
    ones = [np.ones(len(table))] if intercept else []
    return np.nan_to_num(np.column_stack(ones + cells))


def noisy_moment(
    table: Array,
    columns: Sequence[ColumnFacts],
    radius: float | None,
    sd: float,
    intercept: bool,
    seed: int,
) -> Array:
    """The second moment of rows, clipped or of unit length, with Gaussian noise."""
    rows = scaled_rows(table, columns, intercept)
    lengths = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
    factor = 1 / lengths if radius is None else np.minimum(1.0, radius / lengths) / radius
    rows = rows * factor[:, None]
    moment = rows.T @ rows / len(rows)
    return np.asarray(moment + goe(np.random.default_rng(seed), len(moment), sd))


def released(
    table: Array,
    columns: Sequence[ColumnFacts],
    radius: float | None,
    sd: float = 1e-9,
    intercept: bool = True,
    present: tuple[float, ...] = (),
    seed: int = 0,
) -> Evidence:
    """A release with Gaussian noise of deviation `sd` off the diagonal.

    Rows are clipped at `radius`, or divided by their length if it is None.
    """
    raw = noisy_moment(table, columns, radius, sd, intercept, seed)
    law = gaussian_law(sd)
    return Evidence(
        raw,
        denoise(raw, law, unit=radius is None),
        law,
        float(len(table)),
        columns=((None,) if intercept else ()) + tuple(columns),
        unit=radius is None,
        radius=radius,
        present=present,
    )


def units_of(release: Evidence) -> TableUnits:
    """The units of the columns of a release that has them."""
    units = table_units(release)
    assert units is not None
    return units


def privately_scaled(
    table: Array,
    bounds: Sequence[tuple[float, float]],
    epsilon: float,
    seed: int = 0,
    declared: int | None = None,
) -> Evidence:
    """A release with ``scaling: private``, and with what clipping takes away.

    `declared`: the number of rows in the contract, if it is not that of the table.
    """
    rows, p = declared or len(table), table.shape[1]
    stream, mu = np.random.default_rng(seed), gdp_mu(epsilon, 1e-6)
    planned = shares(rows, p, mu)
    assert planned is not None
    facts = ScalingFacts(
        kind="private",
        bounds=tuple(bounds),
        stages=planned.stages,
        lengths=planned.lengths,
        lost=planned.lost,
    )
    dataset = DatasetFacts(id="toy", title="toy", curator="toy", version="v1", rows=rows)
    spec = ReleaseSpec(
        dataset=dataset,
        columns=tuple(declared_columns(bounds)),
        intercept=True,
        neighbours="replace-one",
        privacy_unit="row",
        normalisation=Clip(),
        mechanism={"name": "gaussian"},
        budget=BudgetFacts.of(Budget(epsilon=1.0, delta=1e-6)),
        scaling=facts,
    )
    noise, lost_noise = (1 / (mu * math.sqrt(each)) for each in (planned.left, planned.lost))
    chain, histograms = ConstantsChain.start(spec, noise), list[Histogram]()
    for share in planned.stages:
        sd = math.sqrt(2 * p / share) / mu
        grids = [grid for grid in chain.grids if isinstance(grid, Grid)]
        counts = [
            _counts(table[:, j], grid) + np.rint(stream.normal(size=grid.size) * sd).astype(int)
            for j, grid in enumerate(grids)
        ]
        histograms += chain.histograms(counts, sd)
        chain = chain.after(counts, sd)
    columns = [column for column in chain.scaled.columns if isinstance(column, ColumnFacts)]
    scaled = scaled_rows(table, columns, intercept=True)
    edges, sd = lengths_of(chain.scaled), math.sqrt(2 / planned.lengths) / mu
    bins = np.searchsorted(edges, np.linalg.norm(scaled, axis=1), side="right") - 1
    counts_of_lengths = np.bincount(np.maximum(bins, 0), minlength=edges.size)
    counts_of_lengths += np.rint(stream.normal(size=edges.size) * sd).astype(int)
    histograms.append(chain.length_histogram(counts_of_lengths, sd))
    spec = chain.clipped(histograms[-1], noise, lost_noise)
    assert isinstance(spec.normalisation, Clip)
    assert spec.lost_rows is not None
    assert spec.scaling is not None
    evidence = released(
        table, columns, spec.normalisation.radius, noise / rows, True, spec.present_shares, seed
    )
    return replace(
        evidence,
        rows=float(rows),
        bounds=spec.declared_bounds,
        declared=float(rows),
        names=tuple(spec.names),
        columns=spec.source_columns,
        histograms=tuple(histograms),
        lost=lost_matrix(scaled, spec.lost_rows, lost_noise, stream),
        signs=spec.scaling.signs,
    )


def lost_matrix(scaled: Array, lost: Lost, noise: float, stream: np.random.Generator) -> LostMatrix:
    """What clipping takes from scaled rows, with Gaussian noise of the sum in the unit ball."""
    squares = (scaled**2).sum(axis=1)
    share = 1 - np.minimum(1.0, lost.radius**2 / squares)
    y = np.column_stack([np.full(len(scaled), lost.intercept), scaled[:, 1:]])
    norms = np.maximum(share * (y**2).sum(axis=1), 1e-300)
    weight, sd = share * np.minimum(1.0, lost.largest / norms), noise * lost.largest / len(scaled)
    matrix = (y * weight[:, None]).T @ y / len(scaled)
    return LostMatrix(matrix + goe(stream, len(matrix), sd), sd, lost.intercept, lost.cut)


def _counts(cells: Array, grid: Grid) -> NDArray[np.int64]:
    missing = np.isnan(cells)
    inside = np.clip(cells[~missing], grid.edges[0], grid.edges[-1])
    last = len(grid.edges) - 2
    bins = np.minimum(np.searchsorted(grid.edges, inside, side="right") - 1, last)
    counts = np.bincount(bins, minlength=grid.size)
    counts[-1] += np.count_nonzero(missing)
    return counts.astype(np.int64)
