"""Coverage of regression intervals with folds and without, where errors depend on regressors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.analyses.clipping import clipped_coefficients, clipped_coverage
from benchmarks.analyses.populations import Fitted, Population
from benchmarks.analyses.regressions import regression_of
from benchmarks.analyses.releases import private_constants, release_with
from gramercy.pipeline.plan.calibration import FOLDS

Array = NDArray[np.float64]
Scores = dict[str, dict[str, float]]


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
            fit = regression_of(release_with(scaled, rng, folds))
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
