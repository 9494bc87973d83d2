"""Regressions of the last column on all others, from releases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.analyses.populations import Fitted, Population, coverage
from benchmarks.analyses.releases import (
    declared_release,
    private_constants,
    pure_release,
)
from benchmarks.arrays import Array
from benchmarks.peers import OPENDP
from benchmarks.statistics.methods import middle_and_half
from gramercy.estimators.linear.design import Design
from gramercy.estimators.linear.least_squares import regression
from gramercy.estimators.regression import inference
from gramercy.pipeline.plan.calibration import FOLDS
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts
from tests.support.private_release import Scaled

Scores = dict[str, dict[str, float]]
LEVEL = 0.95
_NORMAL = 1.959963984540054  # its quantile


def private(population: Population, epsilon: float, rng: np.random.Generator, times: int) -> Scores:
    """Gramercy's regression with private constants; least squares from the same matrices.

    And the regression of releases of the same samples in one stage, without a pilot matrix.
    """
    releases, targets, plain = [], [], []
    for _ in range(times):
        sample = population.sample(rng)
        scaled = private_constants(sample, epsilon, rng)
        releases.append(scaled.release(rng))
        targets.append(clipped_coefficients(population, scaled))
        one_stage = private_constants(sample, epsilon, rng, whitened=False)
        plain.append(regression_of(one_stage.release(rng)))
    fits = [regression_of(each) for each in releases]
    ours = population.scores(fits) | clipped_coverage(fits, targets)
    forms = _from_matrices(population, releases)
    return {"regression": ours, "one stage": population.scores(plain), **forms}


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


def clipped_coefficients(population: Population, scaled: Scaled) -> Array:
    """Least squares of the population's rows, clamped and clipped as in the release; shape (k,)."""
    moment = scaled.clipped_moment(population.table.cells)
    found = np.linalg.solve(moment[:-1, :-1], moment[:-1, -1])[1:]
    columns = (each for each in scaled.spec.columns if isinstance(each, ColumnFacts))
    scales = np.array([each.scale for each in columns])
    coefficients: Array = found * scales[-1] / scales[:-1]
    return coefficients


def clipped_coverage(fits: Sequence[Fitted], targets: Sequence[Array]) -> dict[str, float]:
    """``clipped coverage`` and ``clipped worst``: of the `clipped_coefficients` of each release."""
    found = coverage(fits, np.array(targets))
    return {f"clipped {of}": found[of] for of in ("coverage", "worst") if of in found}


def with_and_without(
    population: Population, epsilon: float, rng: np.random.Generator, times: int
) -> Scores:
    """Scores with ten folds and without, of the same samples.

    Those of `Population.scores` and `clipped_coverage`, and the median ``width`` of known intervals
    in standard deviations.
    """
    found: dict[int, list[tuple[Fitted, Array]]] = {FOLDS: [], 1: []}
    for _ in range(times):
        sample = population.sample(rng)
        for folds, fits in found.items():
            scaled = private_constants(sample, epsilon, rng, folds)
            fit = regression_of(scaled.release(rng))
            fits.append((fit, clipped_coefficients(population, scaled)))
    return {
        "folds" if folds > 1 else "no folds": _scores(population, fits)
        for folds, fits in found.items()
    }


def _scores(population: Population, pairs: Sequence[tuple[Fitted, Array]]) -> dict[str, float]:
    fits, targets = [fit for fit, _ in pairs], [target for _, target in pairs]
    deviations = population.table.cells.std(axis=0)
    bounds = np.array([(fit.lower, fit.upper) for fit in fits], dtype=np.float64)
    widths = np.diff(bounds, axis=1) * deviations[:-1] / deviations[-1]
    width = {"width": float(np.nanmedian(widths))}
    return population.scores(fits) | clipped_coverage(fits, targets) | width


CANDIDATES = (100, 1000)  # values of a median between the bounds
SCRIPT = Path(__file__).with_name("scripts") / "opendp_theil_sen.py"


def pure(population: Population, epsilon: float, rng: np.random.Generator, times: int) -> Scores:
    """Gramercy's regression from matrix Laplace noise."""
    samples = (population.sample(rng) for _ in range(times))
    fits = [regression_of(pure_release(each, epsilon, rng)) for each in samples]
    return {"": population.scores(fits)}


def opendp(population: Population, epsilon: float, rng: np.random.Generator, times: int) -> Scores:
    """OpenDP's Theil-Sen regression, for each number of candidates."""
    centre, scale = middle_and_half(population.table)
    samples = np.array([(population.sample(rng).cells - centre) / scale for _ in range(times)])
    result = {}
    for candidates in CANDIDATES:
        given = {"samples": samples, "candidates": np.array(float(candidates))}
        found = OPENDP.run(SCRIPT, given, epsilon)
        slopes = found["slopes"] * scale[1] / scale[0]
        intercepts = centre[1] + scale[1] * found["intercepts"] - slopes * centre[0]
        fits = [Fitted(np.array(each)) for each in zip(intercepts, slopes, strict=True)]
        result[str(candidates)] = population.scores(fits)
    return result
