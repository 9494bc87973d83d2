"""Regressions of the last column on all others, from releases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.analyses.clipping import clipped_coefficients, clipped_coverage
from benchmarks.analyses.populations import Fitted, Population
from benchmarks.analyses.releases import declared_release, private_constants, release_with
from gramercy.estimators.linear.design import Design
from gramercy.estimators.linear.least_squares import regression
from gramercy.estimators.regression import inference
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts

Array = NDArray[np.float64]
Scores = dict[str, dict[str, float]]
LEVEL = 0.95
_NORMAL = 1.959963984540054  # its quantile


def private(population: Population, epsilon: float, rng: np.random.Generator, times: int) -> Scores:
    """Gramercy's regression with private constants; least squares from the same matrices."""
    releases, targets = [], []
    for _ in range(times):
        scaled = private_constants(population.sample(rng), epsilon, rng)
        releases.append(release_with(scaled, rng))
        targets.append(clipped_coefficients(population, scaled))
    fits = [regression_of(each) for each in releases]
    ours = population.scores(fits) | clipped_coverage(fits, targets)
    return {"regression": ours, **_from_matrices(population, releases)}


def declared(
    population: Population, epsilon: float, rng: np.random.Generator, times: int
) -> Scores:
    """The same with the middle and the half width of the bounds."""
    samples = (population.sample(rng) for _ in range(times))
    releases = [declared_release(each, epsilon, rng) for each in samples]
    ours = population.scores([regression_of(each) for each in releases])
    return {"regression": ours, **_from_matrices(population, releases)}


def _from_matrices(population: Population, releases: Sequence[Evidence]) -> Scores:
    return {
        form: population.scores([_least_squares(each, getattr(each, of)) for each in releases])
        for form, of in (("raw", "raw"), ("denoised", "repaired"))
    }


def regression_of(evidence: Evidence) -> Fitted:
    """Gramercy's regression of the last column on all others."""
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
