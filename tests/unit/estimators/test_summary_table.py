"""The summary table: pandas' numbers without noise, coverage with it, refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gramercy.estimators import Estimate, registry
from gramercy.estimators.summary_table import SummaryTable
from gramercy.estimators.table_units import mean_weight
from gramercy.schemas import families
from gramercy.schemas.evidence import ROW_LENGTHS, Evidence, Histogram
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.normalisation import Clip, Unit
from tests.support.problems import raises
from tests.support.simulated_release import released
from tests.support.survey import NUMERIC, survey_columns, survey_evidence, survey_table
from tests.unit.estimators.test_cross_tables import spec

TABLE = survey_table(4000)


def moments(evidence: Evidence, **settings: Any) -> Estimate:
    return registry["moments"](name="moments", **settings).fit(evidence)


def test_without_noise_it_is_that_of_pandas() -> None:
    found = moments(survey_evidence(TABLE), by="ward")
    assert found.kind == "summary"
    columns = found.tables["columns"].set_index("column")
    numbers = TABLE[list(NUMERIC)]
    np.testing.assert_allclose(columns["mean"], numbers.mean())
    np.testing.assert_allclose(columns["deviation"], numbers.std(ddof=0))
    np.testing.assert_allclose(columns["mean_error"], numbers.sem(), rtol=1e-3)
    assert columns["missing"].isna().all()
    levels = found.tables["levels"].set_index(["column", "level"])
    assert levels.loc[("ward", "A"), "count"] == pytest.approx((TABLE["ward"] == "A").sum())
    groups = found.tables["groups"].set_index(["level", "column"])["mean"].unstack()
    expected = TABLE.groupby("ward")[list(NUMERIC)].mean()
    np.testing.assert_allclose(groups.loc[expected.index, expected.columns], expected)
    assert found.tuning["number_of_rows"] == len(TABLE)


@pytest.mark.slow
def test_intervals_cover_noise_and_sampling() -> None:
    covered = {"columns": [], "groups": []}  # type: dict[str, list[bool]]
    means, groups = TABLE[list(NUMERIC)].mean(), TABLE.groupby("ward")[list(NUMERIC)].mean()
    for seed in range(40):
        folds = 10 if seed % 2 else 1
        sample = TABLE.sample(2000, replace=True, random_state=seed)
        found = moments(survey_evidence(sample, 0.003, seed, folds), by="ward").tables
        for line in found["columns"].itertuples():
            covered["columns"].append(line.mean_lower <= means[line.column] <= line.mean_upper)
        for line in found["groups"].itertuples():
            exact = groups.loc[line.level, line.column]
            covered["groups"].append(line.lower <= exact <= line.upper)
    for each in covered.values():
        assert np.mean(each) >= 0.91


def test_levels_within_the_noise_have_no_means() -> None:
    evidence = survey_evidence(TABLE, 0.003)
    raw = evidence.raw.copy()
    raw[4] = raw[:, 4] = 0.0  # ward A
    groups = moments(replace(evidence, raw=raw), by="ward").tables["groups"]
    unknown = groups["level"] == "A"
    assert groups["mean"][unknown].isna().all()
    assert groups["mean"][~unknown].notna().all()
    nothing = moments(replace(evidence, raw=raw * 0)).tables["columns"]
    assert nothing["mean"].isna().all()
    assert nothing["deviation"].isna().all()


def test_histograms_give_quantiles_and_missing_shares() -> None:
    edges, marginals = np.linspace(0.0, 120.0, 65), []
    for column in survey_columns():
        counts = (
            np.append(np.histogram(TABLE.get(column.name, 0.0), edges)[0], 200)
            if (column.name in NUMERIC)
            else np.full(len(getattr(column, "levels", ())) + 1, 1000)
        )
        lower = np.append(edges[:-1], np.nan) if len(counts) > 9 else np.full(len(counts), np.nan)
        upper = np.append(edges[1:], np.nan) if len(counts) > 9 else np.full(len(counts), np.nan)
        levels: tuple[str | None, ...] = (None,) * len(counts)
        marginals.append(Histogram(1, column.name, lower, upper, levels, counts, 2.0))
    last = Histogram(2, ROW_LENGTHS, np.ones(1), np.full(1, np.nan), (None,), np.ones(1, int), 2.0)
    present = (1.0, *[4000 / 4200] * 3, *[1.0] * 5)
    evidence = replace(survey_evidence(TABLE), histograms=(*marginals, last), rows=4200.0)
    found = moments(replace(evidence, present=present)).tables
    quantiles = found["quantiles"].set_index(["column", "probability"])["value"]
    assert quantiles[("income", 0.5)] == pytest.approx(TABLE["income"].median(), abs=0.5)
    assert list(found["columns"]["missing"]) == pytest.approx([200 / 4200] * 3)


def test_requests_that_cannot_be_answered_are_refused() -> None:
    columns, clip = survey_columns(), Clip(radius=5.0)
    for wrong in (spec(columns, Unit(), True), spec(columns, clip, False)):
        with raises(families.ANALYSIS, estimator="moments"):
            SummaryTable().check(wrong)
    with raises(families.ANALYSIS, estimator="moments"):
        moments(replace(survey_evidence(TABLE), unit=True))
    SummaryTable(by="sex").check(spec(columns, clip, True))
    with raises(families.ANALYSIS, column="age", known=("ward", "sex")):
        SummaryTable(by="age").check(spec(columns, clip, True))


@pytest.mark.parametrize("present", [1.0, 0.7])
def test_clipping_moves_means_by_less_than_its_bound(present: float) -> None:
    rng = np.random.default_rng(4)
    table = np.column_stack([rng.lognormal(size=20_000), rng.standard_t(3, size=20_000)])
    table[rng.random(table.shape) > present] = np.nan
    facts = [
        ColumnFacts(name=name, lower=-30.0, upper=60.0, centre=1.0, scale=2.0) for name in "ab"
    ]
    shares = (1.0, present, present)
    clipped = released(table, facts, radius=3.0, present=shares)
    found = moments(clipped).tables["columns"]
    cells = np.where(np.isnan(table), np.nan, np.clip(table, -30.0, 60.0))
    moved = np.abs(found["mean"] - np.nanmean(cells, axis=0))
    assert (moved < found["clipping"]).all()
    assert moved[0] > 0.03
    assert (found["clipping"] < 5.0).all()
    weight = mean_weight(clipped)
    assert weight is not None
    further = 60.0 - (1 + present * (found["mean"] - 1))
    assert found["clipping"].to_numpy() == pytest.approx((1 - weight) * further / present, rel=1e-5)
    noisy = released(table, facts, radius=3.0, sd=0.001, present=shares)
    assert (moments(noisy).tables["columns"]["clipping"] > found["clipping"]).all()
    wide = released(table, facts, radius=50.0, present=shares)
    assert (moments(wide).tables["columns"]["clipping"] == 0).all()
    lost = replace(clipped, raw=clipped.raw * 0)
    assert moments(lost).tables["columns"]["clipping"].isna().all()
