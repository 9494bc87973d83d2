"""What analysts know from other packages: names, p-values, levels and dates in their own types."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import gramercy
from gramercy.api.groups import Groups
from gramercy.api.habits import HABITS, WithHabits, estimator_name
from gramercy.api.release import Release
from gramercy.estimators import registry
from gramercy.estimators.uncertainty.correlation_errors import CorrelationErrors
from gramercy.schemas import families
from tests.support.factories import home_at, run_pipeline, write_request
from tests.support.problems import raises

ROWS = 3000
COLUMNS = {
    "x": {"lower": 0.0, "upper": 100.0},
    "y": {"lower": -40.0, "upper": 80.0},
    "start": {"lower": "2020-01-01", "upper": "2020-12-31", "unit": "days since 1970-01-01"},
    "grade": {"levels": [1, 2]},
    "smoker": {"levels": [True, False]},
    "ward": {"levels": ["a", "b"]},
}


def write_table(path: Path) -> None:
    rng = np.random.default_rng(5)
    grade, smoker = rng.choice([1, 2], ROWS, p=[0.6, 0.4]), rng.random(ROWS) < 0.4
    x = rng.normal(50 + 6 * (grade == 2), 10)
    days = pd.to_timedelta(rng.integers(0, 365, ROWS), "D")
    table = {
        "x": x,
        "y": 0.3 * x + rng.normal(0, 8, ROWS),
        "start": (pd.Timestamp("2020-01-01") + days).strftime("%Y-%m-%d"),
        "grade": pd.Series(grade, dtype="Int64").mask(rng.random(ROWS) < 0.05),
        "smoker": np.where(smoker, "yes", "no"),
        "ward": rng.choice(["a", "b"], ROWS),
    }
    pd.DataFrame(table).to_csv(path, index=False)


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> list[Release]:
    """Of one table, by a column of numbers and by one of truth values."""
    folder = tmp_path_factory.mktemp("habits")
    write_table(folder / "table.csv")
    mechanism = {"name": "gaussian", "epsilon": 8.0, "delta": 1e-6}
    budget = {"epsilon": 40.0, "delta": 1e-5, "per": "lifetime"}
    facts = {"rows": ROWS, "columns": COLUMNS, "intercept": True, "budget": budget}
    request = {"mechanism": mechanism, "scaling": "private"}
    request |= {"estimates": [{"name": "graphical-lasso"}]}
    with home_at(folder / "home") as home:
        for version, by in (("v1", "grade"), ("v2", "smoker")):
            run_pipeline(
                write_request(folder, request={**request, "version": version, "by": by}, **facts)
            )
        catalogue = gramercy.open(home / "archive")
        return [catalogue[each] for each in catalogue.history("toy").index]


@pytest.fixture
def graded(releases: list[Release]) -> Release:
    return releases[0]


@pytest.fixture
def smoking(releases: list[Release]) -> Release:
    return releases[1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["correlation", "partial_correlation"])
def test_p_values_agree_with_intervals(graded: Release, kind: str) -> None:
    matrix = getattr(graded, kind)
    for level in (0.6, 0.95, 0.999):
        listed = matrix.listed(level)
        pairs = listed[(listed["row"] != listed["column"]) & listed["estimate"].notna()]
        excludes = (pairs["lower"] > 0) | (pairs["upper"] < 0)
        close = np.isclose(pairs["p_value"], 1 - level, rtol=1e-6)
        assert (excludes == (pairs["p_value"] < 1 - level))[~close].all()
    assert listed.loc[listed["row"] == listed["column"], "p_value"].isna().all()
    found = matrix.discoveries().set_index(["row", "column"])
    assert found.loc[("x", "y"), "p_value"] == matrix.pvalues.loc["x", "y"] < 1e-6
    assert (matrix.discoveries(0.2)["adjusted"] <= 0.2).all()


def test_p_values_of_correlations_are_those_of_the_estimator(graded: Release) -> None:
    edges = graded.estimate("discoveries", of="correlation")
    found = graded.correlation.discoveries(edges.rate)
    expected = {frozenset(each) for each in edges.to_networkx().edges}
    assert {frozenset(each) for each in found[["row", "column"]].to_numpy()} == expected
    matrices = edges.estimate_.matrices
    listed = graded.correlation.listed().dropna().set_index(["row", "column"])
    names = graded.names
    for (row, column), line in listed.iterrows():
        at = names.index(row), names.index(column)
        assert line["p_value"] == pytest.approx(matrices["p_values"][at])
        assert line["adjusted"] == pytest.approx(matrices["adjusted"][at])


def test_a_p_value_counts_the_far_end_of_an_interval() -> None:
    """Where noise grows with the correlation, an interval may jump over 0 to its end."""
    of_noise = (np.full((2, 2), 0.04), np.full((2, 2), -0.5), np.full((2, 2), 0.5))
    known = ~np.eye(2, dtype=bool)
    errors = CorrelationErrors(
        np.ones((2, 2)), np.zeros((2, 2)), of_noise, np.full((2, 2), np.inf), known, known, known
    )
    (p_value,) = {*errors.tail[known]}
    for level in (0.6, 0.9, 0.95, 0.99):
        lower, upper = errors.interval(level)
        assert ((lower <= 0) & (upper >= 0))[known].all() == (p_value >= 1 - level)
    assert p_value > 0.04 > 2 * norm.sf(1 / 0.2)


def test_covariances_have_no_p_values(graded: Release) -> None:
    assert "p_value" not in graded.covariance.listed()
    with raises(families.ANALYSIS):
        _ = graded.covariance.pvalues
    with raises(families.ANALYSIS):
        graded.covariance.discoveries()


@pytest.mark.slow
def test_quantiles_of_chosen_columns_show_dates(graded: Release) -> None:
    found = graded.quantiles(0.5, columns="start")
    assert found["value"].iloc[0] == pytest.approx(18444, abs=10)
    assert "2020-0" in repr(found)
    assert list(graded.quantiles([0.1, 0.9], columns=["y", "x"])["column"]) == ["x", "x", "y", "y"]
    assert len(graded.quantiles()) == 15
    assert len(graded.describe().quantiles) == 15
    for columns in (["ward"], 5):
        with raises(families.UNKNOWN_NAME):
            graded.quantiles(columns=columns)
    for q in (0, "x", [[0.1, 0.2]], [np.nan]):
        with raises(families.ANALYSIS):
            graded.quantiles(q)


@pytest.mark.parametrize("number", ["x", None, np.nan, 0, 1])
def test_levels_and_rates_must_be_numbers(graded: Release, number: object) -> None:
    for call in (
        lambda: graded.correlation.discoveries(number),
        lambda: graded.means.interval(number),
        lambda: graded.groups.compare(1, 2, number),
        lambda: graded.regression("y ~ x").conf_int(number),
    ):
        with raises(families.ANALYSIS):
            call()


@pytest.mark.slow
def test_groups_are_found_by_their_own_type(graded: Release, smoking: Release) -> None:
    by_grade, by_smoking = graded.groups, smoking.groups
    for level in (1, 1.0, np.int64(1)):
        assert by_grade[level] is by_grade["1"]
    assert by_smoking[True] is by_smoking[np.True_] is by_smoking["true"]
    assert by_grade["other"].group == "(other)"
    pd.testing.assert_frame_equal(
        by_grade.compare(1, 2).table(), by_grade.compare("1", "2").table()
    )
    for groups, name in ((by_grade, 3), (by_grade, True), (by_smoking, 1)):
        with raises(families.UNKNOWN_NAME):
            groups[name]


@pytest.mark.slow
def test_groups_change_where_their_means_do(graded: Release) -> None:
    changes = graded.groups.changes()
    first = changes.iloc[0]
    assert (first["kind"], first["column"], first["groups"]) == ("mean", "x", 2)
    assert first["p_value"] < 1e-6
    with raises(families.ESTIMATE):
        Groups("toy", {}).changes()


def test_the_column_of_groups_is_explained(graded: Release) -> None:
    for call in (
        lambda: graded.crosstab("grade", "ward"),
        lambda: graded.describe(by="grade"),
        lambda: graded.regression("y ~ x + C(grade)"),
    ):
        with raises(families.ANALYSIS, column="grade", groups=("1", "2")):
            call()
    with raises(families.ANALYSIS, column="grad"):
        graded.regression("y ~ grad")


def test_differences_of_means_have_effect_sizes(graded: Release) -> None:
    table = graded.groups.compare(2, 1).table().set_index(["kind", "column"])
    assert table.loc[("mean", "x"), "cohens_d"].item() == pytest.approx(0.6, abs=0.15)
    assert table.loc[[("mean", "ward=a")], "cohens_d"].isna().all()
    assert table.loc["correlation", "cohens_d"].isna().all()


@pytest.mark.slow
def test_synthetic_cells_have_their_own_types(smoking: Release, graded: Release) -> None:
    rows = smoking.synthesize(500)
    kinds = {name: str(kind) for name, kind in rows.dtypes.items()}
    assert kinds == {
        "x": "float64",
        "y": "float64",
        "start": "datetime64[us]",
        "grade": "Int64",
        "ward": "str",
    }
    assert set(rows["grade"].dropna()) == {1, 2}
    assert rows["start"].between("2020-01-01", "2020-12-31").all()
    assert smoking.synthesize(50, integers=["x"])["x"].dtype == "int64"
    assert set(graded.synthesize(50)["smoker"].dropna().unique()) == {True, False}
    fitted = smoking.groups.classifier()
    assert fitted.scores(rows.dropna()).notna().all(axis=None)
    assert graded.regression("y ~ x + smoker").predict(graded.synthesize(20)).notna().any()


def test_estimates_are_found_by_any_sensible_name(graded: Release) -> None:
    expected = graded.estimates["graphical-lasso"]
    for name in ("glasso", "graphical_lasso", "Graphical Lasso", "GLASSO"):
        assert graded.estimates[name] is expected
        assert graded.graph(name).number_of_nodes() == len(graded.names)
    assert graded.estimate("Graphical Lasso", penalty=0.1).penalty == 0.1
    for name, call in (("ols", "regression"), ("principal components", "pca")):
        with raises(families.ESTIMATE, estimator=call):
            graded.estimate(name)
    for name, habit in (("cov", "cov"), ("partial corr", "partial_corr")):
        with raises(families.ESTIMATE, instead=HABITS[habit]):
            graded.estimate(name)
    with raises(families.ESTIMATE, name="3"):
        graded.estimate(3)
    assert all(estimator_name(name) == name for name in registry)


@pytest.mark.slow
def test_names_from_other_packages_are_explained(graded: Release) -> None:
    found = graded.regression("y ~ x")
    groups = graded.groups
    tables = (graded.describe(), graded.crosstab("ward"), groups.compare(1, 2), graded.pca())
    owners: tuple[WithHabits, ...] = (graded, groups, groups[1], found, found.summary(), *tables)
    for owner in owners:
        for name in sorted(owner.habits.keys() - {*dir(type(owner))}):
            assert not hasattr(owner, name)
            with raises(families.UNKNOWN_NAME, name=name):
                getattr(owner, name)
    assert {*dir(graded)} & HABITS.keys() == {"marginals", "quantiles"}
    with pytest.raises(AttributeError):
        _ = graded.unheard_of
    assert pickle.loads(pickle.dumps(graded)).id == graded.id


def test_columns_are_not_taken_for_axes(graded: Release) -> None:
    with raises(families.ANALYSIS, value="x"):
        graded.means.plot("x")


def test_titles_of_analysts_replace_those_of_plots(graded: Release) -> None:
    drawn = graded.marginals.plot("x")
    drawn.set_title("Mine")
    titles = [drawn.get_title(loc=place) for place in ("left", "center", "right")]
    assert [each for each in titles if each] == ["Mine"]


def test_discoveries_of_p_value_zero_are_sorted_by_strength(graded: Release) -> None:
    found = graded.correlation.discoveries()
    strength = (found["estimate"] / found["standard_error"]).abs()
    surest = strength[found["p_value"] == found["p_value"].min()]
    assert len(surest) > 1
    assert (surest.diff().dropna() <= 0).all()


def test_standardised_coefficients_are_a_table(graded: Release) -> None:
    found = graded.regression("y ~ x")
    ratio = graded.standard_deviations["x"] / graded.standard_deviations["y"]
    expected = found.params["x"] * ratio
    assert found.standardised.loc["x", "estimate"] == pytest.approx(expected, rel=0.02)


@pytest.mark.slow
def test_errors_are_those_of_the_target(graded: Release) -> None:
    """Without sampling for the table itself, and without p-values, which are of a population."""
    for numbers in (graded.means, graded.correlation):
        own, of_population = numbers.listed(target="table"), numbers.listed()
        assert (own["standard_error"] <= of_population["standard_error"]).all()
    assert "p_value" not in own
    noise = graded.means.noise_error
    np.testing.assert_array_equal(graded.means.listed(target="table")["standard_error"], noise)
    described = graded.describe(target="table")
    numeric, levels = described.columns["mean_error"], described.levels
    pd.testing.assert_series_equal(numeric, noise[numeric.index], check_names=False)
    usual = graded.describe().levels.loc["ward", "standard_error"]
    assert (levels.loc["ward", "standard_error"][:2] < usual[:2]).all()
    intervals = registry["intervals"]
    of_table, of_population = (
        intervals(name="intervals", target=target).fit(graded.evidence).matrices["standard_error"]
        for target in ("table", "population")
    )
    assert (of_table <= of_population).all()
    assert (of_table < of_population).any()


def test_groups_are_looked_for_by_their_own_type(graded: Release, smoking: Release) -> None:
    groups = graded.groups
    assert 1 in groups
    assert 3 not in groups
    assert True not in groups
    assert "(other)" in groups
    assert "other" in groups
    assert groups.get(1) is groups.get("1") is groups[1]
    assert groups.get(3) is None
    assert groups.get("x", 5) == 5
    assert True in smoking.groups
    assert smoking.groups.get(True) is smoking.groups[True]


@pytest.mark.slow
def test_comparisons_draw_what_is_compared(graded: Release) -> None:
    compared = graded.groups.compare(2, 1)
    drawn, table = compared.plot(most=99), compared.table()
    assert len(drawn.get_yticks()) == len(table)
    assert drawn.get_yticklabels()[0].get_text() == "mean of x"
    effect = table[table["kind"] == "mean"].set_index("column").loc["x", "cohens_d"]
    assert drawn.lines[0].get_xdata()[0] == pytest.approx(effect)
    labels = {each.get_text() for each in drawn.get_yticklabels()}
    assert {"share of ward=a", "standard deviation of x", "x, y"} <= labels


def test_two_codings_of_one_column_are_refused(graded: Release) -> None:
    twice = "y ~ C(ward, Treatment('a')) + x:C(ward, Treatment('b'))"
    with raises(families.FORMULA, name="ward"):
        graded.regression(twice)


def test_arguments_of_other_packages_are_explained(graded: Release) -> None:
    for argument in ("family", "data", "unheard_of"):
        with raises(families.ANALYSIS, argument=argument, method="regression"):
            graded.regression("y ~ x", **{argument: None})
    with raises(families.ANALYSIS, argument="margins", method="crosstab"):
        graded.crosstab("ward", "smoker", margins=True)


def test_loadings_are_those_of_components(graded: Release) -> None:
    found = graded.pca(2)
    pd.testing.assert_frame_equal(found.loadings, found.components.T)
