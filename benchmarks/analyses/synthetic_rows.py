"""Synthetic rows from releases, and by SmartNoise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.analyses.releases import DELTA
from benchmarks.analyses.surveys import Survey
from benchmarks.arrays import Array
from benchmarks.peers import SMARTNOISE_SYNTH
from benchmarks.statistics.correlations import noisy
from benchmarks.statistics.methods import clipped_moment
from gramercy.estimators.copula.rows import Copula
from gramercy.estimators.noise.denoise import denoise
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.scaling.chain import ConstantsChain, lengths_of, starting_facts
from gramercy.scaling.column_constants import Grid
from gramercy.scaling.shares import Shares, shares
from gramercy.schemas.budget import Budget
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import BudgetFacts, ColumnFacts, DatasetFacts, LevelsFacts
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.normalisation import Clip
from gramercy.schemas.request_parts import ScalingFacts

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


Counts = NDArray[np.int64]
Facts = ColumnFacts | LevelsFacts


def survey_release(
    survey: Survey, rows: Array, epsilon: float, rng: np.random.Generator
) -> Evidence:
    """A release of rows of the survey at delta = 1e-6 under replace-one.

    Raises
    ------
    ValueError
        If the noise is too large for private constants.
    """
    n, q, mu = len(rows), rows.shape[1], gdp_mu(epsilon, DELTA)
    planned = shares(n, sum(max(each, 1) for each in survey.levels), mu)
    if planned is None:
        raise ValueError(f"private constants need more rows than {n}")
    chain, histograms = ConstantsChain.start(_spec(survey, planned)), []
    for share in planned.stages:
        sd = math.sqrt(2 * q / share) / mu
        counts = [
            _noisy(_counts(cells, grid if isinstance(grid, Grid) else None, grid.size), sd, rng)
            for cells, grid in zip(rows.T, chain.grids, strict=True)
        ]
        histograms += chain.histograms(counts, sd)
        chain = chain.after(counts, sd)
    scaled = _scaled(rows, chain.scaled.columns)
    edges, sd = lengths_of(chain.scaled), math.sqrt(2 / planned.lengths) / mu
    bins = np.searchsorted(edges, np.linalg.norm(scaled, axis=1), side="right") - 1
    lengths = _noisy(np.bincount(np.maximum(bins, 0), minlength=edges.size), sd, rng)
    histograms.append(chain.length_histogram(lengths, sd))
    left = mu * math.sqrt(1 - sum(planned.stages) - planned.lengths)
    spec = chain.clipped(lengths, sd, 1 / left)
    assert isinstance(spec.normalisation, Clip)
    radius, sd = spec.normalisation.radius, 1 / (left * n)
    raw = noisy(clipped_moment(scaled, radius), sd, rng)
    law = NoiseLaw(family="gaussian-isotropic", sd_diagonal=math.sqrt(2) * sd, sd_off_diagonal=sd)
    found = Evidence(
        raw,
        denoise(raw, law, rows=float(n), unit=False),
        law,
        float(n),
        names=tuple(spec.names),
        columns=spec.source_columns,
        unit=False,
        radius=radius,
        histograms=tuple(histograms),
    )
    return replace(found, present=spec.present_shares)


def _spec(survey: Survey, planned: Shares) -> ReleaseSpec:
    """The public facts before the first histogram."""
    limits = [(float(low), float(high)) for low, high in survey.bounds.T]
    columns = [
        LevelsFacts(name=f"c{j}", levels=tuple(map(float, range(levels))))
        if levels
        else starting_facts(f"c{j}", limits[j])
        for j, levels in enumerate(survey.levels)
    ]
    return ReleaseSpec(
        dataset=DatasetFacts(
            id="survey", title="survey", curator="survey", version="v1", rows=survey.n
        ),
        columns=tuple(columns),
        intercept=True,
        neighbours="replace-one",
        privacy_unit="row",
        normalisation=Clip(),
        mechanism={"name": "gaussian"},
        budget=BudgetFacts.of(Budget(epsilon=1.0, delta=1e-6)),
        scaling=ScalingFacts(
            kind="private",
            bounds=tuple(
                None if levels else each for levels, each in zip(survey.levels, limits, strict=True)
            ),
            stages=planned.stages,
            lengths=planned.lengths,
        ),
    )


def _counts(cells: Array, grid: Grid | None, size: int) -> Counts:
    """Exact counts of a column without missing cells, by bin or by level."""
    if grid is None:
        return np.bincount(cells.astype(np.int64), minlength=size)
    inside = np.clip(cells, grid.edges[0], grid.edges[-1])
    return np.append(np.histogram(inside, grid.edges)[0], 0)


def _noisy(counts: Counts, sd: float, rng: np.random.Generator) -> Counts:
    found: Counts = counts + np.rint(rng.normal(size=counts.size) * sd).astype(np.int64)
    return found


def _scaled(rows: Array, columns: tuple[Facts, ...]) -> Array:
    """Rows in scaled units, the intercept first."""
    parts = [np.ones(len(rows))]
    for cells, each in zip(rows.T, columns, strict=True):
        if isinstance(each, LevelsFacts):
            parts += [(cells == level).astype(np.float64) for level in each.levels]
        else:
            parts.append((np.clip(cells, each.lower, each.upper) - each.centre) / each.scale)
    return np.column_stack(parts)
