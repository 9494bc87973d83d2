"""Means and standard deviations in the columns' own units, and their errors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.arrays import Array
from benchmarks.statistics import methods
from benchmarks.statistics.correlations import noisy
from benchmarks.statistics.methods import (
    Errors,
    Method,
    middle_and_half,
    released_pair,
    scaled_rows,
)
from benchmarks.statistics.tables import Table
from gramercy.estimators.table_units import TableUnits, table_units
from gramercy.estimators.uncertainty.table_entries import table_deviations, table_means
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.schemas.evidence import Evidence
from tests.support.private_release import DELTA, clipped_moment

MEASURED = (
    *("normal", "normal, wide", "lognormal", "bimodal", "zero-inflated, wide", "counts"),
    *("off-centre", "three columns", "sachs", "wine_quality"),
)
EPSILONS = (0.1, 1.0, 4.0)
_MOST = np.log(10.0)  # the error of a deviation that is unknown, or wrong by more than that


def errors_of(table: Table, means: Array, deviations: Array) -> Errors:
    """Errors of estimates in the columns' units, of shape (times, p), per release.

    Means in units of the true deviation, deviations as logarithms of estimate over truth, at most
    log 10; root mean squares and medians over the columns. All estimates are put within the bounds;
    an unknown mean is the middle of the bounds.
    """
    middle, half = middle_and_half(table)
    truth, deviation = table.cells.mean(axis=0), table.cells.std(axis=0)
    means = np.clip(np.where(np.isnan(means), middle, means), middle - half, middle + half)
    known = deviations > 0  # not NaN
    ratio = np.minimum(np.where(known, deviations, 1.0), half) / deviation
    off = {
        "means": (means - truth) / deviation,
        "deviations": np.minimum(np.where(known, np.abs(np.log(ratio)), _MOST), _MOST),
    }
    result = {}
    for name, each in off.items():
        result[name] = list(map(float, np.sqrt(np.mean(each**2, axis=1))))
        result[f"{name}, median"] = list(map(float, np.median(np.abs(each), axis=1)))
    return result


def _private(table: Table, epsilon: float, rng: np.random.Generator, times: int) -> Errors:
    pairs = [released_pair(table, epsilon, rng) for _ in range(times)]
    if not all(pairs):
        return {}  # the rule then takes unit rows, which have no means
    result: Errors = {}
    for form in methods.FORMS:
        found = [_published(pair[form]) for pair in pairs if pair]
        errors = errors_of(table, *np.stack(found, axis=1))
        result |= {f"{of}, {form}" if form else of: each for of, each in errors.items()}
    return result


def _published(release: Evidence) -> Array:
    """Means and deviations as a release gives them, shape (2, p); NaN where unknown."""
    units = table_units(release)
    assert units is not None  # rows are clipped, with an intercept
    entries = table_means(release, units), table_deviations(release, units)
    return np.stack([np.where(each.estimable, each.estimate, np.nan) for each in entries])


def _bounds(table: Table, epsilon: float, rng: np.random.Generator, times: int) -> Errors:
    """No row is longer than sqrt(p + 1), so that none is clipped."""
    centre, scale = middle_and_half(table)
    units = TableUnits(_names(table), centre, scale, np.ones(table.p))
    rows, sd = scaled_rows(table.cells, centre, scale), 1 / (gdp_mu(epsilon, DELTA) * table.n)
    moment = clipped_moment(rows, float(np.sqrt(table.p + 1)))
    found = [_release(moment, units, sd, rng) for _ in range(times)]
    return errors_of(table, *np.stack(found, axis=1))


def _release(moment: Array, units: TableUnits, sd: float, rng: np.random.Generator) -> Array:
    """Means and deviations as a release gives them, shape (2, p); NaN for those in the noise."""
    released = noisy(moment, sd, rng)
    spread = np.full(moment.shape, sd)
    np.fill_diagonal(spread, np.sqrt(2) * sd)
    estimate, unknown = units.moments(released), np.diag(units.unknown(released, spread))
    return np.stack([estimate.mean, np.where(unknown, np.nan, estimate.standard_deviation)])


def _names(table: Table) -> tuple[str, ...]:
    return tuple(map(str, range(table.p)))


METHODS: Mapping[str, Method] = {
    "own units, private": Method(
        "private constants",
        "`scaling: private`, from the release whose correlations are measured above",
        _private,
        needs_bounds=True,
        tables=MEASURED,
        epsilons=EPSILONS,
    ),
    "own units, bounds": Method(
        "bounds, no row clipped",
        "the middle and half width of the bounds, and the radius sqrt(p + 1), which no row exceeds",
        _bounds,
        needs_bounds=True,
        tables=MEASURED,
        epsilons=EPSILONS,
    ),
}
