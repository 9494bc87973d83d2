"""Populations that are resampled from tables, normalised by private constants."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array
from benchmarks.statistics.correlations import pairwise
from benchmarks.statistics.rule import private_rows, privately_scaled
from benchmarks.statistics.tables import Table, load
from gramercy.estimators.noise.denoise import denoise
from gramercy.estimators.table_units import TableUnits, table_units
from gramercy.estimators.uncertainty.entries import CorrelationKind, correlation
from gramercy.estimators.uncertainty.table_entries import table_covariance, table_means
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.scaling.column_constants import Constants
from gramercy.scaling.shares import shares
from gramercy.schemas.evidence import Evidence, Fold
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.noise import NoiseLaw

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


LEVEL = 0.95
FOLDS = (1, 10, 20)  # 1: no folds
PARTS = 20  # of the rows: a multiple of all numbers of folds


@dataclass(frozen=True)
class Estimated:
    """The entries of one quantity in one release; every array has shape (k,).

    Parameters
    ----------
    estimate, lower, upper
        Estimates, and their intervals.
    known
        Whether the interval is bounded, and for correlations shorter than [-1, 1].
    """

    estimate: Array
    lower: Array
    upper: Array
    known: NDArray[np.bool_]


def release(
    population: Population, sums: Array, n: int, folds: int, rng: np.random.Generator
) -> Evidence:
    """A release of n rows, whose sums of outer products are given in parts; `folds` may be one.

    Every fold has the noise that a release without folds has on the sum of all rows.
    """
    q, size = population.p + 1, n / folds
    law = NoiseLaw(
        family="gaussian-isotropic",
        sd_diagonal=math.sqrt(2) * population.noise,
        sd_off_diagonal=population.noise,
    )
    half = rng.normal(size=(folds, q, q)) * (population.noise / math.sqrt(2))
    moments = sums.reshape(folds, -1, q, q).sum(axis=1) + half + half.transpose(0, 2, 1)
    moments /= size
    raw, whole = moments.mean(axis=0), law.summed(folds).divided_by(n)
    return Evidence(
        raw,
        denoise(raw, whole, rows=float(n), unit=False),
        whole,
        float(n),
        columns=(None, *(_column(str(j)) for j in range(population.p))),
        unit=False,
        folds=tuple(Fold(moment, size) for moment in moments) if folds > 1 else (),
        radius=population.radius,
    )


def _column(name: str) -> ColumnFacts:
    """A column whose own units are the scaled ones: coverage is the same in all units."""
    return ColumnFacts(name=name, lower=-1.0, upper=1.0, centre=0.0, scale=1.0)


def intervals(evidence: Evidence) -> dict[str, Estimated]:
    """The intervals of all quantities."""
    units = table_units(evidence)
    assert units is not None  # rows are clipped, with an intercept
    means, covariance = table_means(evidence, units), table_covariance(evidence, units)
    lower, upper = (np.diag(bound) for bound in covariance.interval(LEVEL))
    variances = np.diag(covariance.estimate), lower, upper, np.diag(covariance.estimable)
    return {
        "mean": Estimated(means.estimate, *means.interval(LEVEL), means.estimable),
        "variance": Estimated(*variances),
        "correlation": _pairs(evidence, "correlation"),
        "partial-correlation": _pairs(evidence, "partial-correlation"),
    }


def _pairs(evidence: Evidence, of: CorrelationKind) -> Estimated:
    entries = correlation(evidence, of)
    pairs = np.triu_indices(len(entries.estimate), 1)
    lower, upper = (bound[pairs] for bound in entries.interval(LEVEL))
    known = entries.estimable[pairs] & ((lower > -1) | (upper < 1))
    return Estimated(entries.estimate[pairs], lower, upper, known)
