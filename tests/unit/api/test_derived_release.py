"""A release with derived columns, from its contract to formulas, predictions and pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gramercy
from gramercy.api.release import Release
from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.archive.store.opening import archive_of
from gramercy.common.home import Home
from gramercy.estimators.regression import LinearRegression
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import make_estimate, report_page
from gramercy.pipeline.publish.internal_record import page_path
from gramercy.schemas import families
from tests.support.factories import home_at, run_json, run_release, write_request
from tests.support.problems import raises

ROWS = 6000
COLUMNS: dict[str, Any] = {
    "age": {"lower": 18.0, "upper": 98.0},
    "sex": {"levels": ["F", "M"]},
    "spend": {"lower": 0.0, "upper": 1e5},
    "income_log": {"from": "income", "transform": "log1p", "lower": 0.0, "upper": 14.0},
    "income_any": {"from": "income", "transform": "is not zero"},
    "age_sex": {"from": ["age", "sex"], "transform": "product"},
    "years": {
        "from": "birth",
        "transform": "age",
        "at": "2026-01-01",
        "lower": 0.0,
        "upper": 120.0,
    },
    "cost_log": {"from": "cost", "transform": "log1p", "lower": 0.0, "upper": 12.0},
}


def survey() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    income = np.where(rng.random(ROWS) < 0.3, 0.0, np.round(rng.lognormal(8, 1.2, ROWS)))
    sex, age = rng.choice(["F", "M"], ROWS), rng.uniform(18, 98, ROWS).round(2)
    slope = 0.01 + 0.02 * (sex == "M")
    cost = np.expm1(1 + 0.3 * np.log1p(income) + slope * age + rng.normal(0, 0.5, ROWS))
    days = pd.to_timedelta(np.round(age * 365.25), unit="D")
    birth = (pd.Timestamp("2026-01-01") - days).strftime("%Y-%m-%d")
    spend = np.where(rng.random(ROWS) < 0.8, 0.0, np.round(rng.lognormal(6, 1.5, ROWS)))
    frame = {"income": income, "age": age, "sex": sex, "cost": cost, "birth": birth}
    return pd.DataFrame({**frame, "spend": spend})


TABLE = survey()


@pytest.fixture(scope="module")
def request_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("derived")
    with home_at(folder / "home"):
        TABLE.to_csv(folder / "table.csv", index=False)
        request = {
            "mechanism": {"name": "gaussian", "epsilon": 4.0, "delta": 1e-6},
            "scaling": "private",
        }
        budget = {"epsilon": 8.0, "delta": 1e-5, "per": "lifetime"}
        facts = {"rows": ROWS, "columns": COLUMNS, "intercept": True, "budget": budget}
        path = write_request(folder, request=request, **facts)
        run_release(path)
    return path


@pytest.fixture
def release(request_path: Path) -> Iterator[Release]:
    with home_at(request_path.parent / "home"):
        yield gramercy.open(str(archive_of(Home.default()).root)).latest("toy")


@pytest.mark.slow
def test_formulas_and_predictions(release: Release) -> None:
    found = release.regression("log1p(cost) ~ np.log1p(income) + age*sex")
    assert list(found.params.index[1:]) == ["income_log", "age", "sex=M", "age_sex=M"]
    assert found.params["income_log"] == pytest.approx(0.3, abs=0.05)
    assert found.ratios is not None
    predicted = found.predict(TABLE)
    exact = np.log1p(TABLE["cost"])
    assert 1 - ((predicted - exact) ** 2).mean() / exact.var() > 0.7
    of_birth = release.regression("cost_log ~ years").predict(TABLE)  # from dates as text
    assert np.corrcoef(of_birth, TABLE["age"])[0, 1] == pytest.approx(1, abs=1e-3)
    assert set(release.regression("cost_log ~ .").params.index) == {
        *("Intercept", "age", "sex=M", "spend", "income_log", "income_any", "years"),
    }
    line = "spend_asinh: {from: spend, transform: asinh}"
    with raises(families.ANALYSIS, line=line):
        release.regression("cost_log ~ asinh(spend)")


@pytest.mark.slow
def test_units_of_inputs_that_are_not_released(release: Release) -> None:
    derived = release.describe().derived
    assert derived is not None
    mean = derived.loc["income_log", "geometric mean of 1 + income, minus 1"]
    assert mean["lower"] < np.expm1(np.log1p(TABLE["income"]).mean()) < mean["upper"]
    median = derived.loc["income_log", "median of income"]
    assert median["lower"] < TABLE["income"].median() < median["upper"]
    quantiles = release.quantiles([0.5]).set_index("column")
    assert quantiles.loc["income_log", "back_value"] == pytest.approx(median["value"])
    assert quantiles.loc["income_log", "in_units_of"] == "income"
    edges = release.marginals.query("column == 'income_log'")
    np.testing.assert_allclose(edges["back_upper"].dropna(), np.expm1(edges["upper"].dropna()))


def test_functions_are_proposed_to_analysts_and_to_the_steward(
    release: Release, request_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        "spend_log: {from: spend, transform: log1p}",
        "spend_any: {from: spend, transform: is not zero}",
    ]
    assert list(release.proposals["line"]) == lines
    internal = page_path(Home.default(), "toy", release.manifest.release).read_text()
    assert "spend_log" in internal
    found = run_json("check", request_path, capsys=capsys)["problems"]
    assert any(all(line in each["message"] for line in lines) for each in found)


@pytest.mark.slow
def test_a_plan_says_what_is_computed(
    request_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with home_at(request_path.parent / "home"):
        found = run_json("plan", request_path, capsys=capsys)["computed"]
    assert found["income_log"] == "log1p(income), 0 to 14"
    assert found["age_sex=F"] == "age:sex=F, 0 to 98"


@pytest.mark.slow
def test_pages_show_what_derived_columns_say(release: Release) -> None:
    context, name = Context.default(), release.manifest.release
    formula = {"name": "regression", "formula": "log1p(cost) ~ age"}
    bundle = make_estimate(context, "toy", name, LinearRegression.model_validate(formula))
    page = report_page(read_release(release.path), [bundle])
    assert "geometric mean of 1 + income, minus 1" in page
    assert "income_log in units of income" in page
    assert "spend is not zero" in page
    assert '<span class="small">log1p(income)</span>' in page
    assert "exp(coefficient)" in page
