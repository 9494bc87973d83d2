"""Regressions on one regressor at pure epsilon: from a release, and by OpenDP."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.analyses.populations import Fitted, Population
from benchmarks.analyses.regressions import regression_of
from benchmarks.analyses.releases import pure_release
from benchmarks.peers import OPENDP
from benchmarks.statistics.methods import middle_and_half

Scores = dict[str, dict[str, float]]
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
