"""Private constants with seeded noise: Gramercy's rule, on exact counts that numpy makes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array
from benchmarks.statistics.tables import Table
from gramercy.scaling.clipping_radius import clipping_radius, length_edges
from gramercy.scaling.column_constants import (
    Constants,
    Grid,
    column_constants,
    first_grid,
    winsorised_bounds,
    zoomed_grid,
)
from gramercy.scaling.shares import Shares
from gramercy.schemas.evidence import ROW_LENGTHS, Histogram


@dataclass(frozen=True)
class Scaled:
    """A table in scaled units, and what is left of the budget for its matrix.

    Parameters
    ----------
    rows
        The intercept first, missing cells zero, shape (n, p + 1).
    radius
        Clipping radius.
    present
        Published share of rows with a value, shape (p,).
    constants
        Of the p columns.
    mu
        Mu of the matrix.
    lengths
        Noisy histogram of the lengths of rows.
    """

    rows: Array
    radius: float
    present: Array
    constants: tuple[Constants, ...]
    mu: float
    lengths: Histogram


def privately_scaled(
    table: Table, mu: float, shares: Shares, rng: np.random.Generator, folds: int = 1
) -> Scaled:
    """Choose all constants from noisy histograms, under replace-one."""
    constants: list[Constants | None] = [None] * table.p
    for share in shares.stages:
        sd = math.sqrt(2 * table.p / share) / mu
        constants = [_constants(table, j, each, sd, rng) for j, each in enumerate(constants)]
    chosen = tuple(each for each in constants if each is not None)
    rows = private_rows(table, chosen)
    edges, sd = length_edges(table.p + 1), math.sqrt(2 / shares.lengths) / mu
    lengths = np.linalg.norm(rows, axis=1)
    bins = np.maximum(np.searchsorted(edges, lengths, side="right") - 1, 0)
    counts = _noisy(np.bincount(bins, minlength=len(edges)), sd, rng)
    left = mu * math.sqrt(1 - sum(shares.stages) - shares.lengths)
    radius = clipping_radius(counts, sd, table.n, table.p + 1, math.sqrt(folds) / left)
    present = np.array([each.present for each in chosen])
    upper, levels = np.append(edges[1:], np.nan), (None,) * len(edges)
    histogram = Histogram(len(shares.stages) + 1, ROW_LENGTHS, edges, upper, levels, counts, sd)
    return Scaled(rows, radius, present, chosen, left, histogram)


def private_rows(table: Table, constants: tuple[Constants, ...]) -> Array:
    """Rows in scaled units, the intercept first, missing cells zero; shape (n, p + 1)."""
    columns = [np.ones(table.n)]
    for j, each in enumerate(constants):
        low, high = winsorised_bounds(each, *limits(table, j))
        columns.append((np.clip(table.cells[:, j], low, high) - each.centre) / each.scale)
    return np.nan_to_num(np.column_stack(columns))


def limits(table: Table, column: int) -> tuple[float | None, float | None]:
    """The declared bounds of a column."""
    if table.bounds is None:
        return None, None
    return float(table.bounds[0, column]), float(table.bounds[1, column])


def _constants(
    table: Table, column: int, before: Constants | None, sd: float, rng: np.random.Generator
) -> Constants:
    bounds = limits(table, column)
    grid = first_grid(*bounds) if before is None else zoomed_grid(before, *bounds)
    counts = _noisy(_counts(table.cells[:, column], grid), sd, rng)
    return column_constants(counts, grid, sd, table.n, before, *bounds)


def _counts(cells: Array, grid: Grid) -> NDArray[np.int64]:
    present = np.clip(cells[~np.isnan(cells)], grid.edges[0], grid.edges[-1])
    counts = np.histogram(present, grid.edges)[0]
    return np.append(counts, len(cells) - len(present))


def _noisy(counts: NDArray[np.int64], sd: float, rng: np.random.Generator) -> NDArray[np.int64]:
    result: NDArray[np.int64] = np.rint(counts + sd * rng.normal(size=len(counts))).astype(np.int64)
    return result
