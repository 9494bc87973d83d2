"""Principal components: equal to numpy's without noise; coverage; what is unknown is said to be."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gramercy.estimators import Estimate, registry
from gramercy.estimators.components import column_moments, functional_variance, noise_edge
from gramercy.estimators.noise.draws import draw, stream
from gramercy.estimators.uncertainty.entry_covariance import noise_covariance
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import Family, NoiseLaw
from tests.support.problems import raises
from tests.support.simulated_release import declared_columns, released
from tests.support.survey import NUMERIC, survey_evidence, survey_table

TABLE = survey_table(4000)


def pca(evidence: Evidence, **settings: Any) -> Estimate:
    return registry["pca"](name="pca", **settings).fit(evidence)


def simulated(covariance: np.ndarray, rows: int, sd: float, seed: int, **law: Any) -> Evidence:
    """A release of Gaussian rows that are hardly clipped; `sd` in units of the covariance."""
    q, rng = len(covariance), np.random.default_rng(seed)
    table = rng.normal(size=(rows, q)) @ np.linalg.cholesky(covariance).T
    if law.get("heavy"):
        table *= np.sqrt(4 / rng.chisquare(6, size=rows))[:, None]
    columns = [
        each.model_copy(update={"scale": 1.0}) for each in declared_columns([(-100.0, 100.0)] * q)
    ]
    radius = 100.0
    evidence = released(table, columns, radius, sd / radius**2 + 1e-15, seed=seed)
    return replace(evidence, names=("(intercept)", *(f"c{j}" for j in range(q))))


def random_covariance(q: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = np.sort(rng.gamma(0.7, size=q))[::-1] + 0.05
    vectors = np.linalg.qr(rng.normal(size=(q, q)))[0]
    return (vectors * values) @ vectors.T


@pytest.mark.parametrize("scale", ["correlation", "covariance"])
def test_without_noise_they_are_those_of_the_table(scale: str) -> None:
    numbers = TABLE[list(NUMERIC)]
    expected = numbers.corr() if scale == "correlation" else numbers.cov(ddof=0)
    values, vectors = (each[..., ::-1] for each in np.linalg.eigh(expected))
    found = pca(survey_evidence(TABLE), scale=scale)
    assert found.kind == "components"
    np.testing.assert_allclose(found.tables["eigenvalues"]["eigenvalue"], values, rtol=1e-9)
    np.testing.assert_allclose(found.tables["shares"]["share"], values / values.sum(), rtol=1e-9)
    loadings = found.tables["loadings"]["loading"].to_numpy().reshape(3, 3)
    np.testing.assert_allclose(np.abs(loadings), np.abs(vectors.T), atol=1e-8)
    assert (loadings[np.arange(3), np.abs(loadings).argmax(axis=1)] > 0).all()
    columns = found.tables["columns"].set_index("column")
    np.testing.assert_allclose(columns["mean"], numbers.mean())
    if scale == "correlation":
        np.testing.assert_allclose(columns["divisor"], numbers.std(ddof=0))


def test_columns_are_chosen_by_name() -> None:
    evidence = survey_evidence(TABLE)
    assert list(pca(evidence).tables["columns"]["column"]) == list(NUMERIC)
    chosen = pca(evidence, columns=("age", "ward")).tables["columns"]["column"]
    assert list(chosen) == ["age", "ward=A", "ward=B", "ward=C"]
    with raises(families.ANALYSIS, unknown=("wage",)):
        pca(evidence, columns=("wage",))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("q", "rows", "sd", "scale"),
    [
        (5, 2000, 0.01, "covariance"),
        (5, 2000, 0.03, "correlation"),
        pytest.param(12, 4000, 0.003, "covariance", marks=pytest.mark.slow),
        pytest.param(12, 4000, 0.02, "correlation", marks=pytest.mark.slow),
    ],
)
def test_intervals_of_shares_cover(q: int, rows: int, sd: float, scale: str) -> None:
    covered = []
    for seed in range(25):
        covariance = random_covariance(q, seed)
        found = pca(simulated(covariance, rows, sd, seed), scale=scale)
        root = np.sqrt(np.diag(covariance))
        truth = covariance / np.outer(root, root) if scale == "correlation" else covariance
        values = np.linalg.eigvalsh(truth)[::-1]
        if found.tuning["left_out"]:
            continue
        for line in found.tables["shares"].itertuples():
            share = values[line.first - 1 : line.first - 1 + line.size].sum() / values.sum()
            covered.append(line.lower <= share <= line.upper)
    assert len(covered) > 20
    assert np.mean(covered) >= 0.9


@pytest.mark.slow
def test_folds_cover_rows_with_heavy_tails() -> None:
    rng = np.random.default_rng(5)
    covered = []
    for _ in range(20):
        table = TABLE.sample(3000, replace=True, random_state=int(rng.integers(1 << 30)))
        evidence = survey_evidence(table, 0.002, int(rng.integers(1 << 30)), folds=10)
        found = pca(evidence).tables["shares"]
        assert found["law"][0] == "jackknife over 10 folds"
        values = np.linalg.eigvalsh(TABLE[list(NUMERIC)].corr())[::-1]
        covered += [
            line.lower
            <= values[line.first - 1 : line.first + line.size - 1].sum() / 3
            <= line.upper
            for line in found.itertuples()
        ]
    assert np.mean(covered) >= 0.9


@pytest.mark.slow
def test_noise_alone_has_no_components() -> None:
    """At most one release in twenty, or a little more, has one."""
    found = 0
    for seed in range(40):
        evidence = simulated(np.eye(6) * 1e-12, 1000, 0.05, seed)
        found += pca(evidence, scale="covariance").tuning["components"] > 0
    assert found <= 7


def test_columns_within_the_noise_are_left_out() -> None:
    evidence = survey_evidence(TABLE, sd=0.0005)
    raw = evidence.raw.copy()
    raw[2] = raw[:, 2] = 0.0
    lost = pca(replace(evidence, raw=raw, repaired=raw))
    assert lost.tuning["left_out"] == 1
    columns = lost.tables["columns"]
    assert list(columns["column"][columns["used"] == "no"]) == ["age"]
    nothing = pca(replace(evidence, raw=raw * 0, repaired=raw * 0))
    assert nothing.tuning["components"] == 0
    assert len(nothing.tables["eigenvalues"]) == 0


def test_equal_eigenvalues_are_tied_and_their_loadings_unknown() -> None:
    matrix = np.diag([4.0, 4.0, 1.0, 0.5, 0.01]) / 10
    law = NoiseLaw(family="gaussian-isotropic", sd_diagonal=0.0015, sd_off_diagonal=0.001)
    found = pca(Evidence(matrix, matrix, law, 3000.0, unit=False), scale="covariance")
    shares = found.tables["shares"]
    assert list(shares["components"]) == ["1 to 2", "3", "4"]
    assert shares["lower"][0] <= 8 / 9.51 <= shares["upper"][0]
    loadings = found.tables["loadings"]["loading"].to_numpy().reshape(4, 5)
    assert np.isnan(loadings[:2]).all()
    assert np.isfinite(loadings[2:]).all()


@pytest.mark.parametrize("family", ["gaussian-isotropic", "laplace", "wishart", "matrix-laplace"])
def test_edge_of_the_noise_is_a_95_percent_quantile(family: Family) -> None:
    dof = {"wishart": 30.0, "matrix-laplace": 7.0}.get(family)
    diagonal = 1.0 if family == "laplace" else math.sqrt(2)
    law = NoiseLaw(family=family, sd_diagonal=diagonal, sd_off_diagonal=1.0, dof=dof)
    linear = np.random.default_rng(1).normal(size=(5, 6))
    evidence = Evidence(np.eye(6), np.eye(6), law, 100.0)
    source = stream()
    source.seed(7)
    drawn = [np.linalg.eigvalsh(linear @ draw(source, 6, law) @ linear.T)[-1] for _ in range(800)]
    above = np.mean(np.array(drawn) > noise_edge(evidence, linear))
    assert 0.02 <= above <= 0.09


def test_edge_of_noisy_rows_and_of_no_noise() -> None:
    rows = NoiseLaw(family="noisy-rows", sd_diagonal=0.1, sd_off_diagonal=0.1, cell_variance=0.05)
    evidence = Evidence(np.eye(4) / 4, np.eye(4) / 4, rows, 200.0)
    assert 0 < noise_edge(evidence, np.eye(4)) < 1
    assert noise_edge(replace(evidence, law=NoiseLaw.none()), np.eye(4)) == 0


@pytest.mark.parametrize("family", ["gaussian-isotropic", "laplace"])
def test_variance_of_a_functional_is_that_of_draws(family: Family) -> None:
    diagonal = 1.0 if family == "laplace" else math.sqrt(2)
    law = NoiseLaw(family=family, sd_diagonal=diagonal, sd_off_diagonal=1.0)
    weights = np.random.default_rng(2).normal(size=(4, 4))
    weights += weights.T
    source = stream()
    sums = [(weights * draw(source, 4, law)).sum() for _ in range(4000)]
    expected = functional_variance(noise_covariance(law, np.eye(4), 1.0), weights)
    assert np.var(sums) == pytest.approx(expected, rel=0.12)


def test_missing_cells_are_corrected() -> None:
    rng = np.random.default_rng(4)
    table = TABLE[["income", "age", "hours"]].to_numpy()
    holes = rng.random(table.shape) < 0.2
    columns = declared_columns([(0.0, 120.0), (0.0, 100.0), (0.0, 80.0)])
    present = (1.0, *(1 - holes.mean(axis=0)))
    evidence = released(np.where(holes, np.nan, table), columns, 50.0, present=present)
    found = pca(evidence).tables["eigenvalues"]["eigenvalue"]
    np.testing.assert_allclose(found, np.linalg.eigvalsh(np.corrcoef(table.T))[::-1], atol=0.06)


def test_moments_of_unit_rows_are_those_of_directions() -> None:
    rows = np.random.default_rng(8).normal(size=(500, 3))
    evidence = released(rows, declared_columns([(-9.0, 9.0)] * 3), None, intercept=False)
    moments = column_moments(evidence, range(3), "covariance")
    np.testing.assert_allclose(moments.matrix, evidence.raw)
    assert np.isnan(pca(evidence).tables["columns"]["mean"]).all()
