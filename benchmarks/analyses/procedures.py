"""Procedures for one regression of the last column on all others, at the same guarantee."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.analyses.adassp import adassp
from benchmarks.analyses.binagg import binagg
from benchmarks.analyses.noisy_statistics import noisy_statistics
from benchmarks.analyses.populations import Fitted, Population
from benchmarks.analyses.releases import DELTA
from benchmarks.statistics.methods import middle_and_half
from benchmarks.statistics.tables import Table
from gramercy.mechanisms.accounting.gdp import gdp_mu

Array = NDArray[np.float64]
Scores = dict[str, dict[str, float]]
# Coefficients of rows in [-1, 1]^p, the intercept first, and bounds of their intervals, if any.
Fit = tuple[Array, Array | None, Array | None]
Procedure = Callable[[Array, Array, float, np.random.Generator], Fit]
Measure = Callable[[Population, float, np.random.Generator, int], Scores]
LENGTHS = (0.5, 1.0, 1.5, 3.0)  # bounds on rows in standard units, by sqrt(p)
LARGEST = 3.0  # bound on the outcome, or on all columns, in standard units


def _from_bounds(fit: Procedure) -> Measure:
    """The scores of a procedure on rows that bounds carry to [-1, 1]^p."""

    def scores(
        population: Population, epsilon: float, rng: np.random.Generator, times: int
    ) -> Scores:
        constants = middle_and_half(population.table)
        return {"": _scores(fit, population, *constants, epsilon, rng, times)}

    return scores


def _from_true_constants(fit: Procedure) -> Measure:
    """The scores of a procedure with bounds at three true deviations, which cost nothing."""

    def scores(
        population: Population, epsilon: float, rng: np.random.Generator, times: int
    ) -> Scores:
        centre, scale = _true_constants(population)
        return {"": _scores(fit, population, centre, LARGEST * scale, epsilon, rng, times)}

    return scores


def _adassp(x: Array, y: Array, mu: float, rng: np.random.Generator) -> Fit:
    return adassp(x, y, float(np.sqrt(x.shape[1])), 1.0, mu, rng), None, None


def _statistics(x: Array, y: Array, mu: float, rng: np.random.Generator) -> Fit:
    x, y = np.clip(x, -1, 1), np.clip(y, -1, 1)
    found = noisy_statistics(x, y, float(np.sqrt(x.shape[1])), 1.0, mu, rng)
    return found.coefficients, found.lower, found.upper


def _binagg(x: Array, y: Array, mu: float, rng: np.random.Generator) -> Fit:
    x, y = np.clip(x, -1, 1), np.clip(y, -1, 1)
    ends = np.array([-1.0, 1.0])[:, None] * np.ones(x.shape[1])
    ends[:, 0] = 1.0  # the column of ones
    found = binagg(x, y, *ends, mu, rng)
    return found.coefficients, found.lower, found.upper


def adassp_from_true_constants(
    population: Population, epsilon: float, rng: np.random.Generator, times: int
) -> Scores:
    """AdaSSP with the true means and deviations, which cost nothing, and several lengths."""
    centre, scale = _true_constants(population)
    samples = [population.sample(rng) for _ in range(times)]
    result = {}
    for length in LENGTHS:
        longest = length * float(np.sqrt(population.table.p))

        def fit(
            x: Array, y: Array, mu: float, rng: np.random.Generator, longest: float = longest
        ) -> Fit:
            return adassp(x, y, longest, LARGEST, mu, rng), None, None

        fits = [_fitted(fit, each, centre, scale, epsilon, rng) for each in samples]
        result[f"{length:g}"] = population.scores(fits)
    return result


def _true_constants(population: Population) -> tuple[Array, Array]:
    cells = population.table.cells
    return cells.mean(axis=0), cells.std(axis=0)


def _scores(
    fit: Procedure,
    population: Population,
    centre: Array,
    scale: Array,
    epsilon: float,
    rng: np.random.Generator,
    times: int,
) -> dict[str, float]:
    samples = (population.sample(rng) for _ in range(times))
    return population.scores([_fitted(fit, each, centre, scale, epsilon, rng) for each in samples])


def _fitted(
    fit: Procedure,
    table: Table,
    centre: Array,
    scale: Array,
    epsilon: float,
    rng: np.random.Generator,
) -> Fitted:
    """The fit of scaled rows, in the columns' own units."""
    scaled = (table.cells - centre) / scale
    x = np.column_stack([np.ones(table.n), scaled[:, :-1]])
    found, *bounds = fit(x, scaled[:, -1], gdp_mu(epsilon, DELTA), rng)
    units = scale[-1] / scale[:-1]
    own = found[1:] * units
    intercept = centre[-1] + scale[-1] * found[0] - centre[:-1] @ own
    ends = (None if each is None else each[1:] * units for each in bounds)
    return Fitted(np.append(intercept, own), *ends)


adassp_from_bounds = _from_bounds(_adassp)  # no row is clipped
statistics_from_bounds = _from_bounds(_statistics)
statistics_from_true_constants = _from_true_constants(_statistics)
binagg_from_bounds = _from_bounds(_binagg)
binagg_from_true_constants = _from_true_constants(_binagg)
