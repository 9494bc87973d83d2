"""A regression as analysts read it."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import gramercy
from gramercy.api.regression import RegressionResult
from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.archive.store.opening import archive_of
from gramercy.common.home import Home
from gramercy.estimators.regression import LinearRegression
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import make_estimate, report_page
from gramercy.schemas import families
from gramercy.schemas.errors import UnknownLevels
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from tests.support.problems import raises
from tests.support.survey import survey_evidence, survey_release, survey_table

TABLE = survey_table(1000)


def result(formula: str = "income ~ age + hours + ward", sd: float = 0.0) -> RegressionResult:
    return RegressionResult(survey_evidence(TABLE, sd), LinearRegression(formula=formula))


def design(table: pd.DataFrame) -> np.ndarray:
    numbers = [np.ones(len(table)), table["age"], table["hours"]]
    return np.column_stack([*numbers, table["ward"] == "B", table["ward"] == "C"])


def test_results_have_the_names_of_statsmodels() -> None:
    found = result()
    exact = np.linalg.lstsq(design(TABLE), TABLE["income"], rcond=None)[0]
    assert list(found.params.index) == ["Intercept", "age", "hours", "ward=B", "ward=C"]
    np.testing.assert_allclose(found.params, exact, rtol=1e-6)
    np.testing.assert_allclose(found.tvalues, found.params / found.bse)
    assert (found.pvalues[["hours", "ward=B", "ward=C"]] < 1e-10).all()
    assert found.nobs == 1000
    assert found.known.all()
    residual = TABLE["income"] - design(TABLE) @ exact
    assert found.rsquared == pytest.approx(1 - residual.var() / TABLE["income"].var())
    assert found.residual_sd == pytest.approx(residual.std(ddof=0))


def test_intervals_of_any_level() -> None:
    found = result()
    usual, wide = found.conf_int(), found.conf_int(alpha=0.01)
    np.testing.assert_allclose(usual, found.table[["lower", "upper"]])
    np.testing.assert_allclose((usual["upper"] - found.params) / found.bse, 1.96, atol=0.01)
    np.testing.assert_allclose((wide["upper"] - found.params) / found.bse, 2.58, atol=0.01)
    for alpha in (0.0, 0.5, 1.0):
        with raises(families.ANALYSIS):
            found.conf_int(alpha)


def test_predictions() -> None:
    found, rows = result(), TABLE.iloc[:5].set_index(pd.Index(list("vwxyz")))
    predicted = found.predict(rows)
    exact = design(rows) @ found.prediction_params.to_numpy()
    np.testing.assert_allclose(predicted, exact)
    assert list(predicted.index) == list("vwxyz")
    assert predicted.name == "income"
    missing = rows.assign(age=np.nan)
    assert found.predict(missing).isna().all()
    with pytest.warns(UnknownLevels) as warned:
        assert found.predict(rows.assign(ward="not declared")).isna().all()
    assert ["'ward'" in str(each.message) for each in warned] == [True]
    age = survey_evidence(TABLE).columns[2]  # clamped as the rows of the release
    assert isinstance(age, ColumnFacts)
    beyond = found.predict(rows.assign(age=age.upper + 1000))
    np.testing.assert_allclose(beyond, found.predict(rows.assign(age=age.upper)))
    needed = ("age", "hours", "ward")
    with raises(families.ANALYSIS, missing=("hours", "ward"), known=needed):
        found.predict(rows[["age"]])


@pytest.mark.parametrize(
    "codes", [[1, 2, 3], [1.0, 2.0, 3.0, None], pd.Categorical(["1", "2", "3"]), ["1", "2", "3"]]
)
@pytest.mark.parametrize("declared", [("1", "2", "3"), (1.0, 2.0, 3.0)])
def test_levels_of_rows_may_be_numbers(codes: Any, declared: tuple[str | float, ...]) -> None:
    """Pandas reads levels that are numbers as numbers, and a contract may declare them so."""
    evidence, levels = survey_evidence(TABLE), LevelsFacts(name="ward", levels=declared)
    facts = tuple(
        levels if each is not None and each.name == "ward" else each for each in evidence.columns
    )
    evidence = replace(evidence, columns=facts)
    found = RegressionResult(evidence, LinearRegression(formula="income ~ ward"))
    intercept, *slopes = found.prediction_params
    change = found.predict(pd.DataFrame({"ward": codes})) - intercept
    np.testing.assert_allclose(change, [0, *slopes, np.nan][: len(codes)], atol=1e-9)


def test_one_level_as_a_predictor() -> None:
    found = result("income ~ `ward=B`")
    change = found.predict(pd.DataFrame({"ward": ["A", "B", "C"]})).diff()
    np.testing.assert_allclose(change[1:], [found.params["ward=B"], -found.params["ward=B"]])


def test_unknown_coefficients_are_shown_as_unknown() -> None:
    found = result(sd=0.3)
    assert not found.known.all()
    unknown = found.params.index[~found.known]
    assert found.params[unknown].isna().all()
    lines = {line.split()[0]: line for line in found.summary().splitlines() if line[:1].strip()}
    assert all("unknown" in lines[name] for name in unknown)
    assert "unknown" in found._repr_html_()


def test_summary_is_printed_as_it_is() -> None:
    found = result()
    text = found.summary()
    assert repr(text) == str(text) == repr(found)
    for name in (*found.params.index, "income", "ward=A", "Gaussian rows"):
        assert name in text
    assert max(map(len, text.splitlines())) <= 100


def test_html_escapes_names() -> None:
    evidence = survey_evidence(TABLE)
    columns = tuple(
        each.model_copy(update={"name": "<b>"}) if each and each.name == "income" else each
        for each in evidence.columns
    )
    names = ("(intercept)", "<b>", *evidence.names[2:])
    renamed = gramercy.estimators.Evidence(
        evidence.raw, evidence.repaired, evidence.law, 1000.0, names, columns, False, radius=12.0
    )
    found = RegressionResult(renamed, LinearRegression(outcome="age", predictors=("<b>",)))
    html = found._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html


def test_plot_has_one_line_for_each_term() -> None:
    found = result(sd=0.3)
    axes = Figure().add_subplot()
    assert found.plot(axes) is axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == [
        name if found.known[name] else f"{name} (unknown)" for name in found.params.index[1:]
    ]


def test_results_can_be_pickled() -> None:
    found = result()
    again = pickle.loads(pickle.dumps(found))
    pd.testing.assert_frame_equal(again.table, found.table)
    assert again.summary() == found.summary()


@pytest.mark.slow
def test_regression_of_a_release(tmp_path: Path) -> None:
    survey_release(tmp_path, epsilon=4.0, rows=2000)
    release = gramercy.open(str(archive_of(Home.default()).root)).latest("toy")
    found = release.regression("income ~ hours + ward")
    by_names = release.regression(outcome="income", predictors=["hours", "ward"], level=0.9)
    pd.testing.assert_series_equal(found.params, by_names.params)
    assert by_names.level == 0.9
    other = release.regression("income ~ hours + C(ward, Treatment('B'))", cov_type="nonrobust")
    tested = found.t_test("ward[T.C] = ward[T.B]")
    np.testing.assert_allclose(other.params["ward[T.C]"], tested.effect)
    np.testing.assert_allclose(other.bse["ward[T.C]"], tested.sd)
    with raises(families.ANALYSIS, cov_type="HC3"):
        release.regression("income ~ hours + ward", cov_type="HC3")
    with raises(families.ANALYSIS, term="hours:ward"):
        release.regression("income ~ hours:ward")


@pytest.mark.slow
def test_selection_in_estimates_and_reports(tmp_path: Path) -> None:
    name = survey_release(tmp_path, epsilon=4.0, rows=2000)
    release = gramercy.open(str(archive_of(Home.default()).root)).latest("toy")
    sparse = release.regression("income ~ .", selection="lasso")
    assert sparse.selected["hours"]
    context, settings = Context.default(), LinearRegression(formula="income ~ .", selection="lasso")
    bundle = make_estimate(context, "toy", name, settings)
    assert list(bundle.tables["coefficients"]["selected"] == "yes") == list(sparse.selected)
    page = report_page(read_release(release.path), [bundle])
    assert f"A lasso selects {sparse.selected[1:].sum()} of 5 predictors" in page
    assert '<th scope="col">selected</th>' in page
