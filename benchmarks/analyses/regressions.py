"""Ways to a regression of the last column on all others, at the same guarantee."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.analyses.adassp import adassp
from benchmarks.analyses.populations import Fitted, Population
from benchmarks.analyses.releases import DELTA, declared_release, private_release
from benchmarks.statistics.methods import middle_and_half
from benchmarks.statistics.tables import Table
from gramercy.estimators.linear.design import Design
from gramercy.estimators.linear.inference import inference
from gramercy.estimators.linear.regression import regression
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts

Array = NDArray[np.float64]
Scores = dict[str, dict[str, float]]
Release = Callable[[Table, float, np.random.Generator], Evidence]
LEVEL = 0.95
_NORMAL = 1.959963984540054  # its quantile
LENGTHS = (0.5, 1.0, 1.5, 3.0)  # bounds on rows in standard units, by sqrt(p)
_LARGEST = 3.0  # bound on the outcome in standard units


def of_release(
    release: Release, population: Population, epsilon: float, rng: np.random.Generator, times: int
) -> Scores:
    """Gramercy's regression, and least squares from the same matrices."""
    found: dict[str, list[Fitted]] = {"regression": [], "raw": [], "denoised": []}
    for _ in range(times):
        evidence = release(population.sample(rng), epsilon, rng)
        found["regression"].append(_regression(evidence))
        found["raw"].append(_least_squares(evidence, evidence.raw))
        found["denoised"].append(_least_squares(evidence, evidence.repaired))
    return {form: population.scores(fits) for form, fits in found.items()}


def private(population: Population, epsilon: float, rng: np.random.Generator, times: int) -> Scores:
    """See `of_release`."""
    return of_release(private_release, population, epsilon, rng, times)


def declared(
    population: Population, epsilon: float, rng: np.random.Generator, times: int
) -> Scores:
    """See `of_release`."""
    return of_release(declared_release, population, epsilon, rng, times)


def _regression(evidence: Evidence) -> Fitted:
    outcome = len(evidence.raw) - 1
    result = regression(evidence, Design(outcome, tuple(range(1, outcome))))
    if result is None:
        _, centre, _ = _constants(evidence)
        unknown = np.full(outcome - 1, np.nan)
        return Fitted(np.append(centre, np.zeros(outcome - 1)), unknown, unknown)
    table = inference(result, ["Intercept", *evidence.names[1:outcome]], LEVEL)
    lower, upper = (table[name].to_numpy(dtype=np.float64)[1:] for name in ("lower", "upper"))
    return Fitted(result.fitted, lower, upper)


def _least_squares(evidence: Evidence, matrix: Array) -> Fitted:
    """Least squares with its classical intervals, as if the matrix had no noise."""
    inner, cross = matrix[:-1, :-1], matrix[:-1, -1]
    inverse = np.linalg.pinv(inner, rcond=1e-10, hermitian=True)
    scaled = inverse @ cross
    residual = np.append(-scaled, 1.0)
    weight = max(float(matrix[0, 0]), 1e-12)
    variance = max(float(residual @ matrix @ residual), 0.0) / weight
    variances = weight * variance * np.diag(inverse)[1:] / evidence.rows
    centres, centre, slopes = _constants(evidence)
    errors = slopes * np.sqrt(np.maximum(variances, 0.0))
    own = slopes * scaled[1:]
    scale = _facts(evidence)[-1].scale
    intercept = centre + scale * scaled[0] - centres @ own
    reach = _NORMAL * errors
    return Fitted(np.append(intercept, own), own - reach, own + reach)


def _constants(evidence: Evidence) -> tuple[Array, float, Array]:
    """Centres of the regressors and of the outcome, and scales of the outcome over theirs."""
    *regressors, outcome = _facts(evidence)
    centres = np.array([each.centre for each in regressors])
    scales = np.array([each.scale for each in regressors])
    return centres, outcome.centre, outcome.scale / scales


def _facts(evidence: Evidence) -> list[ColumnFacts]:
    return [each for each in evidence.columns if isinstance(each, ColumnFacts)]


def from_bounds(
    population: Population, epsilon: float, rng: np.random.Generator, times: int
) -> Scores:
    """AdaSSP on rows in bounds; no row is clipped."""
    centre, scale = middle_and_half(population.table)
    longest = float(np.sqrt(population.table.p))
    fits = [
        _adassp(population.sample(rng), centre, scale, longest, 1.0, epsilon, rng)
        for _ in range(times)
    ]
    return {"": population.scores(fits)}


def from_true_constants(
    population: Population, epsilon: float, rng: np.random.Generator, times: int
) -> Scores:
    """AdaSSP with the true means and deviations, which cost nothing, and several lengths."""
    cells = population.table.cells
    centre, scale = cells.mean(axis=0), cells.std(axis=0)
    samples = [population.sample(rng) for _ in range(times)]
    result = {}
    for length in LENGTHS:
        longest = length * float(np.sqrt(population.table.p))
        fits = [_adassp(each, centre, scale, longest, _LARGEST, epsilon, rng) for each in samples]
        result[f"{length:g}"] = population.scores(fits)
    return result


def _adassp(
    table: Table,
    centre: Array,
    scale: Array,
    longest: float,
    largest: float,
    epsilon: float,
    rng: np.random.Generator,
) -> Fitted:
    scaled = (table.cells - centre) / scale
    x = np.column_stack([np.ones(table.n), scaled[:, :-1]])
    found = adassp(x, scaled[:, -1], longest, largest, gdp_mu(epsilon, DELTA), rng)
    own = found[1:] * scale[-1] / scale[:-1]
    intercept = centre[-1] + scale[-1] * found[0] - centre[:-1] @ own
    return Fitted(np.append(intercept, own))
