"""Populations that are resampled from tables, and the intervals of releases of samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array, Rng
from benchmarks.statistics.tables import Table, load
from gramercy.estimators.table_units import table_units
from gramercy.estimators.uncertainty.entries import CorrelationKind, correlation
from gramercy.estimators.uncertainty.entry_estimates import Entries
from gramercy.estimators.uncertainty.table_entries import table_deviations, table_means
from gramercy.schemas.evidence import Evidence

MOST_COLUMNS = 10
QUANTITIES = ("mean", "standard-deviation", "correlation", "partial-correlation")
LEVEL = 0.95
FOLDS = (1, 10)  # 1: no folds


def population(name: str) -> Table:
    """The table of that name with some of its columns, at even distances."""
    table = load(name)
    chosen = np.unique(np.linspace(0, table.p - 1, MOST_COLUMNS).round().astype(int))
    bounds = None if table.bounds is None else table.bounds[:, chosen]
    return Table(table.cells[:, chosen], bounds)


def sample(table: Table, n: int, rng: Rng) -> Table:
    """So many rows of a table, drawn with replacement."""
    return Table(table.cells[rng.integers(0, table.n, size=n)], table.bounds)


def moments(table: Table) -> dict[str, Array]:
    """Means, standard deviations and, of the pairs above the diagonal, correlations of a table."""
    values = (
        np.nanmean(table.cells, axis=0),
        np.nanstd(table.cells, axis=0),
        table.correlations[np.triu_indices(table.p, 1)],
    )
    return dict(zip(QUANTITIES[:3], values, strict=True))


def quantities(table: Table) -> dict[str, Array]:
    """The moments and the partial correlations of a table; see `QUANTITIES`."""
    inverse = np.linalg.inv(table.correlations)
    root = np.sqrt(np.diag(inverse))
    partial = -inverse / np.outer(root, root)
    return {**moments(table), QUANTITIES[3]: partial[np.triu_indices(table.p, 1)]}


@dataclass(frozen=True)
class Estimated:
    """The entries of one quantity in one release; every array has shape (k,).

    Parameters
    ----------
    estimate, lower, upper
        Estimates, and their intervals for the population.
    known
        Whether the interval is bounded, and for correlations shorter than [-1, 1].
    own_lower, own_upper
        Intervals for the values of the table that was released.
    """

    estimate: Array
    lower: Array
    upper: Array
    known: NDArray[np.bool_]
    own_lower: Array
    own_upper: Array


def intervals(release: Evidence) -> dict[str, Estimated]:
    """The intervals of all quantities of a release with means and scales of its own."""
    of = QUANTITIES[3]
    return {**moment_intervals(release), of: _pairs(release, "partial-correlation")}


def moment_intervals(release: Evidence) -> dict[str, Estimated]:
    """The same without partial correlations."""
    units = table_units(release)
    assert units is not None  # rows are clipped, with an intercept
    return {
        "mean": _estimated(table_means(release, units)),
        "standard-deviation": _estimated(table_deviations(release, units)),
        "correlation": _pairs(release, "correlation"),
    }


def _pairs(release: Evidence, of: CorrelationKind) -> Estimated:
    entries = correlation(release, of)
    return _estimated(entries, np.triu_indices(len(entries.estimate), 1))


def _estimated(entries: Entries, where: tuple[NDArray[np.int64], ...] | None = None) -> Estimated:
    """Some of the entries; those of correlations are not known if they may have every value."""
    chosen = where or (np.arange(len(entries.estimate)),)
    lower, upper = (bound[chosen] for bound in entries.interval(LEVEL))
    known = entries.estimable[chosen] & np.isfinite(lower) & np.isfinite(upper)
    if where is not None:
        known &= (lower > -1) | (upper < 1)
    own = (bound[chosen] for bound in entries.interval(LEVEL, "table"))
    return Estimated(entries.estimate[chosen], lower, upper, known, *own)
