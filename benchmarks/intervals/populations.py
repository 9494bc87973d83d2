"""Populations that are resampled from tables, normalised by private constants."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.statistics.correlations import pairwise
from benchmarks.statistics.rule import private_rows, privately_scaled
from benchmarks.statistics.tables import Table, load
from gramercy.estimators.table_units import TableUnits
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.scaling.column_constants import Constants
from gramercy.scaling.shares import shares

Array = NDArray[np.float64]
MOST_COLUMNS, DELTA = 10, 1e-6
QUANTITIES = ("mean", "variance", "correlation", "partial-correlation")


@dataclass(frozen=True)
class Population:
    """Rows of the unit ball, drawn with replacement; all quantities are in scaled units.

    Parameters
    ----------
    rows
        The normalised rows of the table, the intercept first; shape (N, p + 1).
    radius
        Clipping radius.
    noise
        Standard deviation of the noise off the diagonal of the sum of the rows' outer products, of
        all rows or of a fold.
    normalised, original
        The quantities of the normalised rows, which a release estimates, and of the table itself;
        see `QUANTITIES`.
    """

    rows: Array
    radius: float
    noise: float
    normalised: dict[str, Array]
    original: dict[str, Array]

    @property
    def p(self) -> int:
        return self.rows.shape[1] - 1

    def sums(self, drawn: NDArray[np.int64], parts: int) -> Array:
        """Sums of the outer products of the drawn rows, in parts; shape (parts, p + 1, p + 1)."""
        rows = self.rows[drawn].reshape(parts, len(drawn) // parts, -1)
        result: Array = np.matmul(rows.transpose(0, 2, 1), rows)
        return result


def population(
    name: str, n: int, epsilon: float, folds: int, rng: np.random.Generator
) -> Population:
    """Draw n rows of a table, and normalise the table by private constants from these.

    The number of folds changes the radius, which depends on the noise.
    """
    table, mu = _narrow(load(name)), gdp_mu(epsilon, DELTA)
    planned = shares(n, table.p, mu)
    assert planned is not None  # n mu / sqrt(p) is large enough for private constants
    sample = Table(table.cells[rng.integers(0, table.n, size=n)], table.bounds)
    scaled = privately_scaled(sample, mu, planned, rng, folds)
    rows = private_rows(table, scaled.constants)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows *= np.minimum(1, scaled.radius / lengths) / scaled.radius
    units = TableUnits(
        tuple(map(str, range(table.p))), np.zeros(table.p), np.ones(table.p), np.ones(table.p)
    )
    moments = units.moments(rows.T @ rows / len(rows))
    return Population(
        rows,
        scaled.radius,
        1 / scaled.mu,
        _quantities(moments.mean, np.diag(moments.covariance), moments.correlation),
        _of_table(table, scaled.constants),
    )


def _narrow(table: Table) -> Table:
    """Some columns of a table, at even distances."""
    chosen = np.unique(np.linspace(0, table.p - 1, MOST_COLUMNS).round().astype(int))
    bounds = None if table.bounds is None else table.bounds[:, chosen]
    return Table(table.cells[:, chosen], bounds)


def _of_table(table: Table, constants: tuple[Constants, ...]) -> dict[str, Array]:
    centre, scale = np.array([(each.centre, each.scale) for each in constants]).T
    means, deviations = table.cells.mean(axis=0), table.cells.std(axis=0)
    return _quantities((means - centre) / scale, (deviations / scale) ** 2, pairwise(table.cells))


def _quantities(mean: Array, variance: Array, correlation: Array) -> dict[str, Array]:
    pairs = np.triu_indices(len(correlation), 1)
    inverse = np.linalg.inv(correlation)
    root = np.sqrt(np.diag(inverse))
    partial = -inverse / np.outer(root, root)
    values = (mean, variance, correlation[pairs], partial[pairs])
    return dict(zip(QUANTITIES, values, strict=True))
