"""Components, tables and summaries of a release: as analysts read them, sealed, and in a report."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import gramercy
from gramercy.api.components import ComponentsResult
from gramercy.api.tables import CrossTable, Description
from gramercy.archive.store.opening import open_archive
from gramercy.common.home import Home
from gramercy.estimators import Evidence, registry
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import make_estimate, make_report
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from gramercy.schemas.facts import ColumnFacts
from tests.support.problems import raises
from tests.support.simulated_release import declared_columns, released
from tests.support.survey import (
    NUMERIC,
    SEXES,
    WARDS,
    survey_evidence,
    survey_release,
    survey_table,
)

TABLE = survey_table(4000)
EVIDENCE = survey_evidence(TABLE, 0.0005)


@pytest.fixture(autouse=True)
def draw_without_a_screen() -> None:
    mpl.use("agg")


def components(evidence: Evidence, **settings: Any) -> ComponentsResult:
    return ComponentsResult(registry["pca"](name="pca", **settings).fit(evidence), evidence)


def test_means_within_levels_are_those_of_the_table() -> None:
    described = Description(registry["moments"](name="moments", by="ward").fit(EVIDENCE))
    found = described.groups
    exact = TABLE.groupby("ward")[list(NUMERIC)].mean().stack().loc[found.index]
    assert list(found.index) == [(ward, name) for ward in WARDS for name in NUMERIC]
    error = found["standard_error"]
    assert ((found["mean"] - exact).abs() < error).all()  # rows are those of the table
    rows = TABLE["ward"].value_counts()
    expected = TABLE["age"].std() / np.sqrt(rows["B"])
    assert error["B", "age"] == pytest.approx(expected, rel=0.2)
    reach = (found["upper"] - found["lower"]) / 2
    assert reach.to_numpy() == pytest.approx(norm.ppf(0.975) * error.to_numpy())
    assert found.loc[("A", "income"), "lower"] > found.loc[("B", "income"), "upper"]


def test_scores_of_rows_are_uncorrelated_and_standardised() -> None:
    found = components(EVIDENCE)
    assert list(found.components.columns) == list(NUMERIC)
    assert found.n_components == 3
    scores = found.transform(TABLE)
    assert list(scores.columns) == list(found.components.dropna().index)
    correlation = scores.corr().to_numpy()
    assert np.abs(correlation - np.eye(len(correlation))).max() < 0.05
    first = found.explained_variance_ratio["PC1"] * 3
    assert scores["PC1"].var() == pytest.approx(first, rel=0.02)
    assert (found.conf_int()["lower"] < found.explained_variance_ratio).all()
    assert found.standard_errors.loc["PC1"].between(0, 0.1).all()
    with raises(families.ANALYSIS, missing=("age",)):
        found.transform(TABLE.drop(columns="age"))


def test_components_of_directions_do_not_transform_rows() -> None:
    rows = np.random.default_rng(1).normal(size=(500, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    evidence = released(rows, declared_columns([(-5.0, 5.0)] * 2), None, intercept=False)
    found = components(evidence)
    with raises(families.ANALYSIS):
        found.transform(pd.DataFrame(rows, columns=["x0", "x1"]))


@pytest.mark.slow
def test_results_are_shown_as_text_html_and_plots() -> None:
    found = components(EVIDENCE)
    assert "PC1" in found.summary()
    assert "PC1" in found._repr_html_()
    assert found.plot().get_xlabel() == "component"
    crossed = CrossTable(registry["tables"](name="tables").fit(EVIDENCE))
    assert "Independence" in crossed.summary()
    assert crossed.mean_weight == pytest.approx(1, abs=0.01)
    assert "Mean weight of a row: " in crossed.summary()
    assert "(no declared level)" in crossed._repr_html_()
    drawn = crossed.plot().texts
    assert len(drawn) == (len(WARDS) + 1) * (len(SEXES) + 1)  # with cells of no declared level
    assert all(re.search(r"^\d+\n\[\d+, \d+\]$", each.get_text()) for each in drawn)
    one = CrossTable(registry["tables"](name="tables", rows="sex").fit(EVIDENCE))
    assert len(one.plot().patches) == len(SEXES) + 1  # with cells of no declared level
    assert one.test is None
    described = Description(registry["moments"](name="moments", by="ward").fit(EVIDENCE))
    assert "income" in described.summary()
    assert described.mean_weight == pytest.approx(1, abs=0.01)
    assert described.summary().startswith(
        f"4,000 rows, mean weight of a row {described.mean_weight:.4g}\n"
    )
    assert "Levels" in described._repr_html_()
    assert described.plot("income").get_xlabel() == "mean of income"
    with raises(families.ANALYSIS, column="ward"):
        described.plot("ward")


def test_cross_table_is_labelled() -> None:
    found = CrossTable(registry["tables"](name="tables").fit(EVIDENCE))
    exact = pd.crosstab(TABLE["ward"], TABLE["sex"])[list(SEXES)]
    assert list(found.counts.index) == list(WARDS)
    assert (found.counts - exact).abs().to_numpy().max() < 20
    lower, upper = found.conf_int()
    assert (lower <= found.counts).all(axis=None)
    assert (found.counts <= upper).all(axis=None)
    with_margins = found.table("count", margins=True)
    assert with_margins.loc["(all)", "(all)"] == pytest.approx(len(TABLE))
    assert found.shares.sum().sum() == pytest.approx(0.97, abs=0.02)
    one = CrossTable(registry["tables"](name="tables", rows="sex").fit(EVIDENCE))
    assert list(one.counts.columns) == ["count"]


@pytest.mark.slow
def test_analyses_of_a_release_are_sealed_reported_and_verified(tmp_path: Path) -> None:
    release = survey_release(tmp_path)
    archive = open_archive(Home.default().archive)
    settings: list[dict[str, Any]] = [
        {"name": "pca"},
        {"name": "pca", "scale": "covariance"},
        {"name": "factors", "n_factors": 1, "rotation": "promax"},
        {"name": "tables"},
        {"name": "tables", "rows": "sex"},
        {"name": "moments", "by": "ward"},
    ]
    made = [
        make_estimate(Context.default(), "toy", release, registry[each["name"]](**each))
        for each in settings
    ]
    ids = [each.manifest.estimate for each in made]
    page = make_report(Context.default(), "toy", release, ids).page
    for expected in ("components of correlations", "components of covariances", "ward by sex"):
        assert expected in page
    assert "Means by level of ward" in page
    assert "factor analysis by maximum likelihood" in page
    result = verify_release(archive, "toy", release, None)
    assert not result.unchecked
    assert len([each for each in result.checks if each.startswith("estimate")]) == len(settings)
    opened = gramercy.open(archive.root).latest("toy")
    table = survey_table()
    exact = table[list(NUMERIC)].mean()
    described = opened.describe(by="sex")
    assert (described.columns["mean"] - exact).abs().max() < 3
    counts = opened.crosstab("ward", "sex").counts
    assert (counts - pd.crosstab(table["ward"], table["sex"])[["f", "m"]]).abs().max().max() < 400
    assert opened.crosstab("ward").counts.shape == (3, 1)
    assert opened.pca(columns=["income", "hours"]).n_components >= 1
    assert opened.factor_analysis(rotation=None, columns=list(NUMERIC)).n_factors == 1
    assert opened.reliability(list(NUMERIC)).alpha < 1
    with raises(families.ANALYSIS, column="age"):
        opened.crosstab("age")


def test_summaries_have_plain_numbers_with_the_digits_of_their_errors() -> None:
    """Large and small columns side by side, which pandas would show with powers of ten."""
    factors = {"income": 1e4, "age": 1e-2, "hours": 1.0}
    columns = tuple(
        each.model_copy(
            update={
                key: getattr(each, key) * factors[each.name]
                for key in ("lower", "upper", "centre", "scale")
            }
        )
        if isinstance(each, ColumnFacts)
        else each
        for each in EVIDENCE.columns
    )
    estimate = registry["moments"](name="moments", by="ward").fit(
        replace(EVIDENCE, columns=columns)
    )
    found = Description(estimate)
    shown, table = found.table().texts, found.table()
    assert not re.search(r"\de[+-]\d", found.summary() + repr(table) + found._repr_html_())
    for name in NUMERIC:
        error, mean = shown.loc["error of the mean", name], shown.loc["mean", name]
        assert float(error) == pytest.approx(found.columns["mean_error"][name], rel=0.05)
        assert float(mean) == pytest.approx(found.columns["mean"][name], abs=float(error) / 2)
        assert len(mean.partition(".")[2]) == len(error.partition(".")[2])
        assert table.loc["mean", name] == found.columns["mean"][name]
    assert set(shown.loc["missing"]) == {"not published"}
    assert list(table.loc[["mean"]].round(1).columns) == list(NUMERIC)
    assert list(pickle.loads(pickle.dumps(table)).index) == list(table.index)
    unknown = registry["moments"](name="moments").fit(replace(EVIDENCE, raw=EVIDENCE.raw * 0))
    assert set(Description(unknown).table().texts.loc["mean"]) == {"unknown"}


def test_printed_quartiles_do_not_fall() -> None:
    """The median has a wide interval, and is rounded as the quartiles with narrow ones are."""
    estimate = registry["moments"](name="moments").fit(EVIDENCE)
    column = estimate.tables["columns"].iloc[:1]
    name = column["column"].iloc[0]
    known = [(0.25, 0.4, 0.38, 0.41), (0.5, 0.9986, 0.4, 0.9999), (0.75, 0.999, 0.998, 0.9999)]
    quantiles = pd.DataFrame(
        [(name, *each) for each in known],
        columns=["column", "probability", "value", "lower", "upper"],
    )
    tables = {"columns": column, "quantiles": quantiles}
    shown = Description(replace(estimate, tables=tables)).table().texts[name]
    assert shown[["25%", "50%", "75%"]].tolist() == ["0.40000", "0.99860", "0.99900"]


def test_shares_within_rows_and_columns_have_intervals() -> None:
    found = CrossTable(registry["tables"](name="tables").fit(survey_evidence(TABLE, sd=0.004)))
    for normalize, by in (("index", "index"), ("columns", "columns"), ("all", "all")):
        exact = pd.crosstab(TABLE["ward"], TABLE["sex"], normalize=by)[list(SEXES)]
        share, lower, upper = (
            found.table(value, normalize=normalize) for value in ("share", "lower", "upper")
        )
        assert share.shape == exact.shape
        assert (share - exact).abs().to_numpy().max() < 0.05
        assert (lower < exact).all(axis=None)
        assert (exact < upper).all(axis=None)
    shares = found.table("share", margins=True, normalize="index")
    assert shares["(all)"].dropna().tolist() == [1.0] * int(shares["(all)"].notna().sum())
    with raises(families.ANALYSIS, value="count", normalize="index"):
        found.table("count", normalize="index")
    with raises(families.ANALYSIS, normalize="rows"):
        found.table("share", normalize="rows")


@pytest.mark.slow
def test_counts_are_shown_with_margins_and_intervals() -> None:
    found = CrossTable(registry["tables"](name="tables").fit(EVIDENCE))
    lower, upper = (found.table(f"count_{end}", margins=True) for end in ("lower", "upper"))
    for level in (*WARDS, "(no declared level)", "(all)"):
        text = f"[{lower.loc[level, 'f']:.0f}, {upper.loc[level, 'f']:.0f}]"
        assert text in found.summary()
        assert text in found._repr_html_()


def test_all_means_are_drawn_on_one_scale() -> None:
    described = Description(registry["moments"](name="moments").fit(EVIDENCE))
    drawn = described.plot()
    assert len(drawn.get_yticklabels()) == len(described.columns) + len(described.levels)
    assert all(described.columns["mean"].between(0, 120))
    left, right = drawn.get_xlim()
    assert -20 < left < right < 120
