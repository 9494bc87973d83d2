"""Synthetic rows from releases, and by SmartNoise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.analyses.surveys import Survey
from benchmarks.arrays import Array
from benchmarks.peers import SMARTNOISE_SYNTH
from gramercy.estimators.copula.rows import Copula
from gramercy.scaling.chain import starting_facts
from gramercy.schemas.evidence import Evidence
from tests.support.private_release import DELTA, level_column, privately_scaled

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


def survey_release(
    survey: Survey, rows: Array, epsilon: float, rng: np.random.Generator
) -> Evidence:
    """A release of rows of the survey at delta = 1e-6 under replace-one.

    Raises
    ------
    ValueError
        If the noise is too large for private constants.
    """
    columns = [
        level_column(f"c{j}", levels) if levels else starting_facts(f"c{j}", (low, high))
        for j, (levels, (low, high)) in enumerate(
            zip(survey.levels, survey.bounds.T.tolist(), strict=True)
        )
    ]
    scaled = privately_scaled(rows, columns, epsilon, rng)
    if scaled is None:
        raise ValueError(f"private constants need more rows than {len(rows)}")
    return scaled.release(rng)
