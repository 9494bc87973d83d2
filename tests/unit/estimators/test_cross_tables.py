"""Tables of counts: pandas' without noise, consistent with it, and a test that keeps its level."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency

from gramercy.api.tables import CrossTable
from gramercy.estimators import Estimate, registry
from gramercy.estimators.contingency import ALL, OTHER, Independence, cross_shares, independence
from gramercy.estimators.cross_tables import CrossTables
from gramercy.estimators.released_table import ReleasedTable
from gramercy.reports.analyses import heat_table
from gramercy.schemas import families
from gramercy.schemas.budget import Budget
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import BudgetFacts, DatasetFacts, LevelsFacts
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.noise import Family, NoiseLaw
from gramercy.schemas.normalisation import AnyNormalisation, Clip, Unit
from tests.support.problems import raises
from tests.support.survey import SEXES, WARDS, survey_columns, survey_evidence, survey_table

TABLE = survey_table(4000)
EXACT = pd.crosstab(TABLE["ward"], TABLE["sex"].where(TABLE["sex"] != "x", OTHER))


def tables(evidence: Evidence, **settings: Any) -> Estimate:
    return registry["tables"](name="tables", **settings).fit(evidence)


def spec(columns: tuple[Any, ...], normalisation: AnyNormalisation, intercept: bool) -> ReleaseSpec:
    dataset = DatasetFacts(id="toy", title="toy", curator="toy", version="v1", rows=100)
    return ReleaseSpec(
        dataset=dataset,
        columns=columns,
        intercept=intercept,
        neighbours="replace-one",
        privacy_unit="row",
        normalisation=normalisation,
        mechanism={"name": "gaussian"},
        budget=BudgetFacts.of(Budget(epsilon=1.0, delta=1e-6)),
    )


def independent_table(
    rng: np.random.Generator, rows: int, sd: float, extra: float = 0.0, family: Family = "laplace"
) -> Evidence:
    """Two independent columns of 4 and 3 levels; `extra` makes them dependent."""
    a, b = 4, 3
    shares = np.outer(rng.dirichlet(np.full(a, 5.0)), rng.dirichlet(np.full(b, 5.0)))
    shares[0, 0] += extra
    shares[1, 1] += extra
    counts = rng.multinomial(rows, shares.ravel() / shares.sum()).reshape(a, b) / rows
    moment = np.zeros((1 + a + b, 1 + a + b))
    both = np.concatenate([[1.0], counts.sum(axis=1), counts.sum(axis=0)])
    moment[0] = moment[:, 0] = both
    moment[1 : 1 + a, 1 + a :] = counts
    moment[1 + a :, 1 : 1 + a] = counts.T
    np.fill_diagonal(moment, both)
    if family == "laplace":
        drawn = rng.laplace(scale=sd / math.sqrt(2), size=moment.shape)
        noise, law = np.triu(drawn) + np.triu(drawn, 1).T, NoiseLaw.none()
        law = NoiseLaw(family=family, sd_diagonal=sd, sd_off_diagonal=sd)
    else:
        half = rng.normal(scale=sd / math.sqrt(2), size=moment.shape)
        noise = half + half.T
        law = NoiseLaw(family=family, sd_diagonal=sd * math.sqrt(2), sd_off_diagonal=sd)
    columns = (None, *[FIRST] * a, *[SECOND] * b)
    return Evidence(moment + noise, moment, law, float(rows), columns=columns, unit=False)


FIRST = LevelsFacts(name="first", levels=("a", "b", "c", "d"))
SECOND = LevelsFacts(name="second", levels=("x", "y", "z"))


def independence_of(evidence: Evidence, rows: float) -> Independence:
    return independence(cross_shares(ReleasedTable(evidence), FIRST, SECOND), rows)


def test_without_noise_it_is_the_table_of_pandas() -> None:
    found = tables(survey_evidence(TABLE), rows="ward", columns="sex")
    assert found.kind == "cross-tables"
    cells = found.tables["cells"].pivot(index="row", columns="column", values="count")
    np.testing.assert_allclose(cells.loc[list(WARDS), EXACT.columns], EXACT, atol=1e-6)
    np.testing.assert_allclose(cells.loc[ALL, list(SEXES)], EXACT[list(SEXES)].sum(), atol=1e-6)
    assert cells.loc[OTHER].sum() == pytest.approx(0.0, abs=1e-6)
    assert found.tuning["mean_weight"] == pytest.approx(1.0)
    both = EXACT[list(SEXES)]
    expected = chi2_contingency(both, correction=False)
    test = found.tables["tests"].iloc[0]
    assert test["p_value"] == pytest.approx(expected.pvalue, rel=1e-6)
    assert test["chi_squared"] == pytest.approx(expected.statistic, rel=1e-6)
    assert test["least_expected"] == pytest.approx(expected.expected_freq.min())


def test_one_column_and_all_pairs() -> None:
    counts = tables(survey_evidence(TABLE), rows="sex").tables
    assert set(counts) == {"cells"}
    found = counts["cells"].set_index("row")["count"]
    np.testing.assert_allclose(found[["f", "m"]], TABLE["sex"].value_counts()[["f", "m"]])
    assert found[OTHER] == pytest.approx((TABLE["sex"] == "x").sum())
    by_default = tables(survey_evidence(TABLE)).tables["tests"]
    assert list(zip(by_default["rows"], by_default["columns"], strict=True)) == [("ward", "sex")]


def test_counts_are_consistent_and_not_negative() -> None:
    for seed in range(5):
        found = tables(survey_evidence(TABLE, 0.02, seed)).tables["cells"]
        cells = found.pivot(index="row", columns="column", values="count")
        inner = cells.drop(index=ALL, columns=ALL)
        assert (inner.to_numpy() >= 0).all()
        np.testing.assert_allclose(inner.sum(axis=1), cells.drop(index=ALL)[ALL])
        np.testing.assert_allclose(inner.sum(axis=0), cells.drop(columns=ALL).loc[ALL])
        assert cells.loc[ALL, ALL] == pytest.approx(len(TABLE))
        for bound in (found["count"] - found["count_lower"], found["count_upper"] - found["count"]):
            assert (bound >= -1e-9).all()


@pytest.mark.slow
def test_intervals_of_counts_cover_the_table() -> None:
    covered, errors, entries = [], [], []
    truth = EXACT[list(SEXES)]
    for seed in range(40):
        evidence = survey_evidence(TABLE, 0.004, seed)
        found = tables(evidence).tables["cells"].set_index(["row", "column"])
        for row, column in itertools.product(WARDS, SEXES):
            line = found.loc[(row, column)]
            exact = truth.loc[row, column]
            covered.append(line["count_lower"] <= exact <= line["count_upper"])
            errors.append(line["count"] - exact)
        block = evidence.raw[4:7, 7:9] / evidence.raw[0, 0] * len(TABLE)
        entries.append(block - truth.to_numpy())
    assert 0.9 <= np.mean(covered) <= 0.99
    assert np.square(errors).mean() <= 1.1 * np.square(entries).mean()


@pytest.mark.slow
def test_intervals_of_shares_cover_the_population() -> None:
    covered = []
    for seed in range(20):
        sample = TABLE.sample(2000, replace=True, random_state=seed)
        for folds in (1, 10):
            found = tables(survey_evidence(sample, 0.001, seed, folds)).tables["cells"]
            found = found.set_index(["row", "column"])
            for row, column in itertools.product(WARDS, SEXES):
                line, exact = found.loc[(row, column)], EXACT.loc[row, column] / len(TABLE)
                covered.append(line["lower"] <= exact <= line["upper"])
    assert np.mean(covered) >= 0.92


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gaussian-isotropic", "laplace"])
@pytest.mark.parametrize("sd", [0.001, 0.01])
def test_test_of_independence_keeps_its_level(family: Family, sd: float) -> None:
    rng = np.random.default_rng(9)
    rejected = []
    for _ in range(200):
        found = independence_of(independent_table(rng, 4000, sd, family=family), 4000.0)
        rejected.append(found.p_value < 0.05)
    assert 0.01 <= np.mean(rejected) <= 0.11


def test_dependence_is_found_and_measured() -> None:
    rng = np.random.default_rng(10)
    found = []
    for _ in range(40):
        found.append(independence_of(independent_table(rng, 20_000, 0.003, extra=0.05), 20_000.0))
    assert np.mean([each.p_value < 0.05 for each in found]) == 1
    exact = independent_table(rng, 1_000_000, 1e-9, extra=0.05)
    largest = independence_of(exact, 1e6).association
    assert np.mean([each.association for each in found]) == pytest.approx(largest, abs=0.05)


def test_levels_within_the_noise_leave_nothing_to_test() -> None:
    evidence = survey_evidence(TABLE, 0.002)
    raw = evidence.raw.copy()
    raw[7:] = raw[:, 7:] = 0.0  # both sexes
    lost = tables(replace(evidence, raw=raw))
    test = lost.tables["tests"].iloc[0]
    assert math.isnan(test["p_value"])
    assert test["column_levels"] == 0
    assert test["left_out"] == "sex: f; sex: m"
    nothing = tables(replace(evidence, raw=raw * 0)).tables["cells"]
    assert nothing["count"].isna().all()


def test_levels_may_have_the_names_of_margins() -> None:
    """Lines of margins then have other names, and the page shades cells as it does otherwise."""
    plain = survey_evidence(TABLE)
    ward = LevelsFacts(name="ward", levels=(ALL, "B", OTHER))
    columns = tuple(
        ward if isinstance(each, LevelsFacts) and each.name == "ward" else each
        for each in plain.columns
    )
    estimates = [
        tables(each, rows="ward", columns="sex")
        for each in (plain, replace(plain, columns=columns))
    ]
    usual, found = (CrossTable(each) for each in estimates)
    assert list(found.counts.index) == [ALL, "B", OTHER]
    assert list(found.table(margins=True).index) == [ALL, "B", OTHER, f"({OTHER})", f"({ALL})"]
    assert (found.table(margins=True).to_numpy() == usual.table(margins=True).to_numpy()).all()
    heats = [
        [
            cell["heat"]
            for _, cells in heat_table("ward", "sex", each.tables["cells"], None)["lines"]
            for cell in cells
        ]
        for each in estimates
    ]
    assert heats[0] == heats[1]
    assert max(heats[0]) > 0


def test_requests_that_cannot_be_answered_are_refused() -> None:
    columns, clip = survey_columns(), Clip(radius=5.0)
    for wrong in (spec(columns, Unit(), True), spec(columns, clip, False)):
        with raises(families.ANALYSIS, estimator="tables"):
            CrossTables().check(wrong)
    with raises(families.ANALYSIS, estimator="tables"):
        tables(replace(survey_evidence(TABLE), unit=True))
    right = spec(columns, clip, True)
    CrossTables(rows="ward", columns="sex").check(right)
    with raises(families.ANALYSIS, column="age"):
        CrossTables(rows="age").check(right)
    for rows in (None, "ward"):
        with raises(families.ANALYSIS):
            CrossTables(rows=rows, columns="ward").check(right)
    with raises(families.ANALYSIS):
        CrossTables().check(spec(columns[:3], clip, True))
    large = tuple(
        LevelsFacts(name=name, levels=tuple(float(k) for k in range(40))) for name in "ab"
    )
    with raises(families.ANALYSIS, rows="a", columns="b", cells=1681):
        CrossTables().check(spec(large, clip, True))
