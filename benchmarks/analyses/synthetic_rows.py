"""Synthetic rows from releases, and by SmartNoise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.analyses.releases import DELTA
from benchmarks.analyses.survey_release import survey_release
from benchmarks.analyses.surveys import Survey
from benchmarks.peers import SMARTNOISE_SYNTH
from gramercy.estimators.copula.rows import Copula

Array = NDArray[np.float64]
Scores = dict[str, dict[str, float]]
SCRIPT = Path(__file__).with_name("scripts") / "smartnoise_synth.py"


def copula(survey: Survey, epsilon: float, rng: np.random.Generator, times: int) -> Scores:
    """Gramercy's rows."""
    found = []
    for _ in range(times):
        evidence = survey_release(survey, survey.sample(rng), epsilon, rng)
        rows = Copula.of(evidence).draw(survey.n, missing=False)
        found.append(rows.to_numpy(dtype=np.float64))
    return {"": _mean(survey, found)}


def resampled(survey: Survey, _: float, rng: np.random.Generator, times: int) -> Scores:
    """The samples themselves, without privacy."""
    return {"": _mean(survey, (survey.sample(rng) for _ in range(times)))}


def smartnoise(
    bins: Sequence[int],
    aim: bool,
    survey: Survey,
    epsilon: float,
    rng: np.random.Generator,
    times: int,
) -> Scores:
    """Rows by MST or AIM, for each number of `bins` between the bounds of a numeric column."""
    given = {
        "samples": np.array([survey.sample(rng) for _ in range(times)]),
        "levels": np.array(survey.levels, dtype=np.float64),
        "bounds": survey.bounds,
    }
    result: Scores = {}
    for size in bins:
        found = SMARTNOISE_SYNTH.run(SCRIPT, given, epsilon, DELTA, float(size), float(aim))
        result[str(size)] = _mean(survey, found["rows"])
    return result


def _mean(survey: Survey, tables: Iterable[Array]) -> dict[str, float]:
    """Mean scores of several synthetic tables."""
    scores = [survey.scores(each) for each in tables]
    return {of: float(np.mean([each[of] for each in scores])) for of in scores[0]}
