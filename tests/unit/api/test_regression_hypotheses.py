"""Reference levels, tests of hypotheses and predictions with errors, as analysts write them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.stats import f as f_law
from scipy.stats import norm

from gramercy.api.regression import RegressionResult, of_errors
from gramercy.estimators.regression import LinearRegression
from gramercy.estimators.uncertainty.tails import squared_length_quantile
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence
from tests.support.problems import raises
from tests.support.survey import survey_evidence, survey_table
from tests.unit.estimators import test_derived_columns, test_regression

Array = NDArray[np.float64]

TABLE = survey_table(1000)
DEFAULT = "income ~ age + ward + sex"
RECODED = "income ~ age + C(ward, Treatment('B')) + C(sex, Treatment(reference=\"m\"))"
# (Intercept, age, ward=A, ward=C, sex=f) from (Intercept, age, ward=B, ward=C, sex=m)
LINEAR = np.array(
    [[1, 0, 1, 0, 1], [0, 1, 0, 0, 0], [0, 0, -1, 0, 0], [0, 0, -1, 1, 0], [0, 0, 0, 0, -1.0]]
)


def result(
    formula: str, sd: float = 0.005, folds: int = 1, evidence: Evidence | None = None
) -> RegressionResult:
    evidence = survey_evidence(TABLE, sd, folds=folds) if evidence is None else evidence
    return RegressionResult(evidence, LinearRegression(formula=formula))


@pytest.mark.parametrize("folds", [1, 8])
def test_other_references_are_a_linear_map_of_the_first_ones(folds: int) -> None:
    first, other = result(DEFAULT, folds=folds), result(RECODED, folds=folds)
    assert list(other.params.index) == ["Intercept", "age", "ward=A", "ward=C", "sex=f"]
    np.testing.assert_allclose(other.params, LINEAR @ first.params, rtol=1e-9)
    np.testing.assert_allclose(other.prediction_params, LINEAR @ first.prediction_params)
    tests = first.t_test(LINEAR)
    np.testing.assert_allclose(other.bse, tests.sd)
    np.testing.assert_allclose(other.pvalues, tests.pvalue)
    np.testing.assert_allclose(other.conf_int(0.1), tests.conf_int(0.1))
    if folds == 1:
        covariance = LINEAR @ first.cov_params() @ LINEAR.T
        np.testing.assert_allclose(other.cov_params(), covariance, rtol=1e-9, atol=1e-12)
    declared = TABLE[TABLE["sex"] != "x"]
    np.testing.assert_allclose(other.predict(declared), first.predict(declared))
    terms = other._tables["terms"].query("role == 'reference'")
    assert dict(zip(terms["column"], terms["level"], strict=True)) == {"ward": "B", "sex": "m"}
    scale = other._tables["standardised"].set_index("term")["estimate"] / other.params[1:]
    sd = (TABLE["ward"] == "A").std() / TABLE["income"].std()
    assert scale["ward=A"] == pytest.approx(sd, rel=0.1)


def test_references_of_products_with_levels() -> None:
    """Slopes are differences from the slope of the reference."""
    release = test_derived_columns.release("age_sex=F")
    line = '"age_sex=F": {from: [age, "sex=F"], transform: product}'
    with raises(families.ANALYSIS, line=line):
        result("cost ~ age * C(sex, Treatment('M'))", evidence=release)
    release = test_derived_columns.release()
    first = result("log1p(cost) ~ age * sex", evidence=release)
    other = result('log1p(cost) ~ age * C(sex, Treatment("M"))', evidence=release)
    by_name = result('log1p(cost) ~ age + C(sex, Treatment("M")) + age_sex', evidence=release)
    assert list(other.params.index) == ["Intercept", "age", "sex=F", "age_sex=F"]
    b = first.params.to_numpy()
    np.testing.assert_allclose(other.params, [b[0] + b[2], b[1] + b[3], -b[2], -b[3]], rtol=1e-6)
    pd.testing.assert_frame_equal(other.table, by_name.table)
    assert other.params["age:C(sex)[T.F]"] == other.params["sex[T.F]:age"] == -b[3]
    tested = first.t_test("age + age:sex[T.M] = 0")
    np.testing.assert_allclose(tested.effect, other.params["age"])
    np.testing.assert_allclose(tested.sd, other.bse["age"])
    rows = test_derived_columns.TABLE[:9]
    np.testing.assert_allclose(other.predict(rows), first.predict(rows))


IMPOSSIBLE = ("C(ward, Sum)", "age - 1", "0 + age", "bs(age, df=4)", "np.log(age)", "a:b:c")


@pytest.mark.parametrize("formula", [f"income ~ {each}" for each in IMPOSSIBLE])
def test_terms_that_no_release_has(formula: str) -> None:
    with raises(families.FORMULA, formula=formula):
        LinearRegression.model_validate({"formula": formula})


def test_unknown_references_are_refused() -> None:
    with raises(families.ANALYSIS, level="Z", column="ward", known=("A", "B", "C")):
        result("income ~ C(ward, Treatment('Z'))")


@pytest.mark.parametrize(
    ("formula", "terms"),
    [
        ("income ~ Q('hours') + C(ward, Treatment)", ["hours", "ward=B", "ward=C"]),
        ("income ~ C(`ward`, contr.treatment(base='C')) - age", ["ward=A", "ward=B"]),
        ("income ~ . - C(ward)", ["age", "hours", "sex=m"]),
    ],
)
def test_names_in_formulas(formula: str, terms: list[str]) -> None:
    assert set(result(formula).params.index[1:]) == set(terms)


def test_names_of_statsmodels() -> None:
    found = result(RECODED)
    for name in ("ward[T.A]", "C(ward)[T.A]", "C(ward, Treatment('B'))[T.A]", "ward=A"):
        assert found.params[name] == found.params["ward=A"]
        assert found.pvalues[name] == found.pvalues["ward=A"]
        assert found.t_test(f"{name} = 0").effect.iloc[0] == found.params["ward=A"]
    with pytest.raises(KeyError):
        found.params["ward[T.Z]"]


@pytest.mark.parametrize(
    ("text", "row", "value"),
    [
        ("age = 0", [0, 1, 0, 0, 0], 0),
        ("age", [0, 1, 0, 0, 0], 0),
        ("ward=B = ward=C", [0, 0, 1, -1, 0], 0),
        ("`ward=B` - C(ward)[T.C] = 0", [0, 0, 1, -1, 0], 0),
        ("2*age + (sex=m) / 2 = 1", [0, 2, 0, 0, 0.5], 1),
        ("Intercept + ward=B", [1, 0, 1, 0, 0], 0),
    ],
)
def test_hypotheses_as_text(text: str, row: list[float], value: float) -> None:
    found, (test,) = result(DEFAULT), [result(DEFAULT).t_test(text)]
    effect = np.array(row) @ found.params
    error = np.sqrt(np.array(row) @ found.cov_params().to_numpy() @ row)
    np.testing.assert_allclose(test.effect, effect)
    np.testing.assert_allclose(test.sd, error)
    np.testing.assert_allclose(test.statistic, (effect - value) / error)


@pytest.mark.parametrize("text", ["agee = 0", "age = hours", "a = b = c", "age * age", "1 = 0", ""])
def test_hypotheses_that_cannot_be_read(text: str) -> None:
    with raises(families.ANALYSIS, hypothesis=text):
        result(DEFAULT).t_test(text)


def test_matrices_of_hypotheses() -> None:
    found = result(DEFAULT)
    pd.testing.assert_series_equal(
        found.t_test(np.eye(5)).effect.reset_index(drop=True),
        pd.Series(found.params).reset_index(drop=True),
        check_names=False,
        check_series_type=False,
    )
    for matrix in (np.eye(4), np.zeros((1, 5)), [[[1.0]]]):
        with raises(families.ANALYSIS, count=5):
            found.wald_test(matrix)


@pytest.mark.parametrize("wrong", [[[1, 2], [3]], {"age": 1}, [np.nan] * 5, (np.eye(5), [0] * 5)])
def test_wrong_matrices_of_hypotheses_are_refused(wrong: Any) -> None:
    for test in (result(DEFAULT).t_test, result(DEFAULT).wald_test):
        with raises(families.ANALYSIS, count=5):
            test(wrong)


def test_a_list_of_hypotheses() -> None:
    found = result(DEFAULT)
    listed, text = found.wald_test(["age = 0", "sex=m = 0"]), found.wald_test("age=0, sex=m=0")
    assert listed.pvalue == text.pvalue


def test_f_tests_the_known_terms() -> None:
    """One of the three columns varies less than the noise; the outcome depends on another."""
    cells = test_regression.table(600)
    cells[:, 3] *= 0.02
    found = RegressionResult(
        test_regression.released(cells, sd=0.004), LinearRegression(outcome="y")
    )
    assert found.known.tolist() == [True, True, True, False]
    test = found.wald_test("a = 0, b = 0")
    assert (found.fvalue, found.f_pvalue) == (test.fvalue, test.pvalue)
    assert found.f_pvalue < 0.001
    head, notes = found.summary().split("Intercept")
    assert "F(2, " in head
    assert "leaves out c." in notes


def test_f_has_its_own_law_with_folds() -> None:
    """Where sampling is nearly all of the error."""
    found = result(DEFAULT, 1e-9, folds=12).wald_test("ward=B = 0, ward=C = 0")
    assert found.pvalue == pytest.approx(f_law.sf(found.statistic, 2, found.df_denom), rel=0.05)


def test_without_noise_the_joint_test_is_that_of_least_squares() -> None:
    cells = test_regression.table(300)
    found = RegressionResult(test_regression.released(cells), LinearRegression(outcome="y"))
    x = np.column_stack([np.ones(300), cells[:, 1:]])
    inverse = np.linalg.inv(x.T @ x)
    b = inverse @ x.T @ cells[:, 0]
    variance = ((cells[:, 0] - x @ b) ** 2).sum() / 296
    linear, values = np.array([[0, 1, 1, 0], [0, 0, 0, 1.0]]), np.array([0.4, 0.1])
    d = linear @ b - values
    exact = d @ np.linalg.solve(linear @ inverse @ linear.T * variance, d) / 2
    test = found.wald_test("a + b = 0.4, c = 0.1")
    assert test.fvalue == test.statistic == pytest.approx(exact)
    assert test.pvalue == pytest.approx(f_law.sf(exact, 2, 296), rel=1e-6)
    assert (test.df_num, test.df_denom) == (2, 296)
    total = ((cells[:, 0] - cells[:, 0].mean()) ** 2).sum()
    overall = (total / variance - 296) / 3
    assert found.fvalue == pytest.approx(overall)
    assert found.rsquared_adj == pytest.approx(1 - variance / (total / 299))
    assert (found.df_model, found.df_resid, found.cov_type) == (3, 296, "nonrobust")
    np.testing.assert_allclose(found.cov_params(), inverse * variance, rtol=1e-7)


@pytest.mark.parametrize("folds", [1, 8])
def test_single_and_joint_tests_agree(folds: int) -> None:
    found = result(DEFAULT, folds=folds)
    np.testing.assert_allclose(np.sqrt(np.diag(found.cov_params())), found.bse)
    for text in ("age = 0", "ward=B = ward=C", "sex=m = 3"):
        single, joint = found.t_test(text), found.wald_test(text)
        assert joint.pvalue == pytest.approx(single.pvalue.iloc[0], rel=0.1)


def test_joint_tests_of_hidden_coefficients_and_of_few_folds() -> None:
    noisy = result("income ~ age + hours + ward", sd=0.3)
    assert not noisy.known[1:].any()
    assert np.isnan(noisy.f_pvalue)
    assert "unknown" in noisy.summary()
    hidden = np.outer(noisy.known, noisy.known)
    np.testing.assert_array_equal(np.isfinite(noisy.cov_params()), hidden)
    few = result("income ~ age + hours + ward + sex", folds=5, sd=0.0)
    assert np.isnan(few.f_pvalue)  # five hypotheses, and four degrees of freedom
    assert few.wald_test("age = 0, hours = 0").pvalue < 0.05
    assert np.isnan(result(DEFAULT).wald_test("age = 0, 2 * age = 0").pvalue)


@pytest.mark.slow
@pytest.mark.parametrize("folds", [1, 10])
def test_size_of_joint_tests(folds: int) -> None:
    """True hypotheses are rejected at most as often as stated."""
    p_values = []
    for seed in range(50):
        cells = test_regression.table(600, seed)
        cells[:, 0] = np.random.default_rng(900 + seed).normal(size=600)
        release = test_regression.released(cells, sd=0.004, seed=seed, folds=folds)
        p_values.append(RegressionResult(release, LinearRegression(outcome="y")).f_pvalue)
    known = np.array(p_values)[np.isfinite(p_values)]
    assert len(known) > 40
    assert (known < 0.05).mean() <= 0.12  # 0.05 and more than two standard errors
    assert (known < 0.5).mean() > 0.2 or folds > 1


def test_quantiles_of_noise_in_several_entries() -> None:
    rng = np.random.default_rng(0)
    scale = rng.gamma(2.0, 0.5, size=200_000)
    for q in (1, 3):
        squares = scale * (rng.normal(size=(q, 200_000)) ** 2).sum(axis=0)
        quantile = squared_length_quantile(0.05, q, 2.0)
        assert (squares > quantile).mean() == pytest.approx(0.05, abs=0.005)
    assert squared_length_quantile(0.05, 1, np.inf) == pytest.approx(norm.ppf(0.975) ** 2)


def test_predictions_with_errors() -> None:
    found = result(DEFAULT)
    rows = TABLE[TABLE["sex"] != "x"][:300].assign(age=lambda x: x["age"].where(x.index > 2))
    frame = found.get_prediction(rows).summary_frame(alpha=0.1)
    missing = rows["age"].isna()
    assert missing.any()
    assert frame[missing].isna().all(axis=None)
    assert list(frame.index) == list(rows.index)
    np.testing.assert_allclose(frame["mean"][~missing], found.predict(rows)[~missing], rtol=0.01)
    one = rows.iloc[10]
    row = [1.0, one["age"], one["ward"] == "B", one["ward"] == "C", one["sex"] == "m"]
    test = found.t_test(np.array([row], dtype=np.float64))
    np.testing.assert_allclose(frame["mean_se"].iloc[10], test.sd)
    np.testing.assert_allclose(
        frame[["mean_ci_lower", "mean_ci_upper"]].iloc[[10]], test.conf_int(0.1)
    )
    covered = TABLE["income"][rows.index].between(frame["obs_ci_lower"], frame["obs_ci_upper"])
    assert covered[~missing].mean() == pytest.approx(0.9, abs=0.05)
    with raises(families.ANALYSIS):
        found.get_prediction(rows).summary_frame(alpha=0.7)
    assert list(found.get_prediction(rows).conf_int(obs=True).columns) == ["lower", "upper"]


@pytest.mark.parametrize(
    "rows",
    [
        {"age": 40, "ward": "B", "sex": "m"},
        {"age": [40.0], "ward": ["B"], "sex": ["m"]},
        pd.Series({"age": 40, "ward": "B", "sex": "m"}),
        [40, 1, 0, 1],
        np.array([[40.0, 1, 0, 1]]),
    ],
)
def test_one_row_may_be_a_dict_or_an_array(rows: Any) -> None:
    found = result(DEFAULT)
    exact = found.prediction_params @ [1.0, 40, 1, 0, 1]
    np.testing.assert_allclose(found.predict(rows), [exact])


@pytest.mark.parametrize(
    "rows",
    [
        None,
        "text",
        {"age": [1, 2], "ward": ["A"], "sex": ["f"]},
        np.ones((2, 9)),
        np.ones((2, 2, 4)),
        TABLE.head(2).assign(age="private"),
        TABLE.head(2).assign(age=[object()] * 2),
        pd.concat([TABLE.head(2)] * 2, axis=1),
    ],
)
def test_wrong_rows_are_refused_and_not_quoted(rows: Any) -> None:
    found = result(DEFAULT)
    for method in (found.predict, found.get_prediction):
        with raises(families.ANALYSIS) as refused:
            method(rows)
        assert "private" not in str(refused.value)


def test_records_are_rows() -> None:
    found, rows = result(DEFAULT), TABLE.head(3)
    np.testing.assert_allclose(found.predict(rows.to_dict("records")), found.predict(rows))


def test_errors_of_a_named_type() -> None:
    folds, plain = survey_evidence(TABLE, 0.01, folds=8), survey_evidence(TABLE, 0.01)
    settings = LinearRegression(formula=DEFAULT)
    robust = RegressionResult(of_errors(folds, "HC3"), settings)
    assert robust.cov_type == "jackknife"
    assert RegressionResult(of_errors(folds, "nonrobust"), settings).cov_type == "nonrobust"
    with raises(families.ANALYSIS, cov_type="HC1"):
        of_errors(plain, "HC1")
    with raises(families.ANALYSIS, cov_type="HAC"):
        of_errors(folds, "HAC")


@pytest.mark.parametrize("attribute", ["resid", "fittedvalues", "aic", "bic", "llf"])
def test_what_a_release_does_not_have_is_said(attribute: str) -> None:
    found = result(DEFAULT)
    assert not hasattr(found, attribute)
    with raises(families.UNKNOWN_NAME, name=attribute):
        getattr(found, attribute)


def test_tests_can_be_pickled() -> None:
    found = result(RECODED)
    for each in (found.t_test("age"), found.wald_test("age"), found.get_prediction(TABLE[:2])):
        assert repr(pickle.loads(pickle.dumps(each))) == repr(each)
    assert pickle.loads(pickle.dumps(found)).params["ward[T.A]"] == found.params["ward=A"]
