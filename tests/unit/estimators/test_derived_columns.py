"""Derived columns of a release: in formulas, in predictions, and in the units of their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gramercy.api.regression import RegressionResult
from gramercy.api.tables import Description
from gramercy.estimators import registry
from gramercy.estimators.proposals import Shape, proposals
from gramercy.estimators.regression import LinearRegression
from gramercy.schemas import families
from gramercy.schemas.derived import DerivedFacts
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.noise import NoiseLaw
from tests.support.problems import raises

Array = NDArray[np.float64]
ROWS, RADIUS = 3000, 100.0
SEX = LevelsFacts(name="sex", levels=("F", "M"))
BOUNDS = {"income": (0.0, 1e4), "age": (18.0, 98.0), "cost": (0.0, 1e5)}


def table() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    income = np.where(rng.random(ROWS) < 0.3, 0.0, rng.lognormal(4, 1.5, ROWS).clip(0, 9e3))
    age, sex = rng.uniform(18, 98, ROWS), rng.choice(["F", "M"], ROWS)
    of_age = (0.01 + 0.01 * (sex == "M")) * age
    cost = np.expm1(1 + 0.3 * np.log1p(income) + of_age + rng.normal(0, 0.5, ROWS))
    return pd.DataFrame({"income": income, "age": age, "sex": sex, "cost": cost})


TABLE = table()
DERIVED: dict[str, tuple[tuple[str, ...], str, Callable[[pd.DataFrame], Any]]] = {
    "income_log": (("income",), "log1p", lambda x: np.log1p(x["income"])),
    "income_any": (("income",), "is not zero", lambda x: x["income"] != 0),
    "rich": (("income",), "> 500", lambda x: x["income"] > 500),
    "age_2": (("age",), "square", lambda x: x["age"] ** 2),
    "age_income": (("age", "income"), "product", lambda x: x["age"] * x["income"]),
    "age_sex=F": (("age", "sex=F"), "product", lambda x: x["age"] * (x["sex"] == "F")),
    "age_sex=M": (("age", "sex=M"), "product", lambda x: x["age"] * (x["sex"] == "M")),
    "visits_root": (("visits",), "sqrt", lambda x: np.sqrt(x["age"] // 20)),
    "cost_log": (("cost",), "log1p", lambda x: np.log1p(x["cost"])),
}


def release(*leave_out: str) -> Evidence:
    """All columns without noise; no row is as long as the radius."""
    z, names, columns = [np.ones(ROWS)], ["(intercept)"], [None]
    for name, (lower, upper) in BOUNDS.items():
        facts = ColumnFacts(name=name, lower=lower, upper=upper, centre=0.0, scale=upper)
        z.append(TABLE[name] / upper)
        names.append(name)
        columns.append(facts)
    for level in SEX.levels:
        z.append((TABLE["sex"] == level).astype(np.float64))
        names.append(f"sex={level}")
        columns.append(SEX)
    for name, (inputs, transform, function) in DERIVED.items():
        cells = np.asarray(function(TABLE), dtype=np.float64)
        scale = float(cells.max())
        derived = DerivedFacts(inputs=inputs, transform=transform)
        z.append(cells / scale)
        names.append(name)
        columns.append(
            ColumnFacts(name=name, lower=0.0, upper=scale, centre=0.0, scale=scale, derived=derived)
        )
    kept = [k for k, name in enumerate(names) if name not in leave_out]
    rows = np.column_stack(z)[:, kept] / RADIUS
    raw = rows.T @ rows / ROWS
    return Evidence(
        raw,
        raw,
        NoiseLaw.none(),
        float(ROWS),
        tuple(names[k] for k in kept),
        tuple(columns[k] for k in kept),
        unit=False,
        radius=RADIUS,
    )


ALL = release()


def fitted(formula: str, evidence: Evidence = ALL) -> RegressionResult:
    return RegressionResult(evidence, LinearRegression(formula=formula))


@pytest.mark.parametrize(
    ("formula", "terms"),
    [
        ("cost ~ income_log + age", ["income_log", "age"]),
        ("cost ~ log1p(income) + age", ["income_log", "age"]),
        ("cost ~ np.log1p(income)", ["income_log"]),
        ("log1p(cost) ~ I(income != 0) + I(age**2)", ["income_any", "age_2"]),
        ("cost ~ I(income > 500) + square(age)", ["rich", "age_2"]),
        ("cost ~ I(500 < income)", []),
        ("cost ~ income:age", ["age_income"]),
        ("cost ~ age*C(sex)", ["age", "sex=M", "age_sex=M"]),
        ("cost ~ sex + sex:age", ["sex=M", "age_sex=F", "age_sex=M"]),
        ("cost ~ age + age_sex", ["age", "age_sex=M"]),
        ("cost ~ age:`sex=M`", ["age_sex=M"]),
        ("cost ~ sqrt(visits)", ["visits_root"]),
        ("cost ~ .", ["income", "age", "sex=M", "visits_root"]),
        ("cost ~ . - sqrt(visits) + log1p(income)", ["income", "age", "sex=M", "income_log"]),
        ("cost ~ . - C(sex)", ["income", "age", "visits_root"]),
        ("cost ~ age*C(sex) - C(sex)", ["age", "age_sex=M"]),
        ("log1p(cost) ~ .", ["income", "age", "sex=M", "visits_root"]),
        ("income ~ . - age", ["cost", "sex=M", "visits_root"]),
    ],
)
def test_formulas_name_derived_columns(formula: str, terms: list[str]) -> None:
    if not terms:  # a number on the left
        with raises(families.FORMULA):
            LinearRegression(formula=formula)
        return
    found = fitted(formula)
    assert list(found.params.index) == ["Intercept", *terms]
    cells = {name: np.asarray(own[2](TABLE), dtype=np.float64) for name, own in DERIVED.items()}
    cells |= {name: TABLE[name].to_numpy() for name in BOUNDS}
    cells |= {f"sex={level}": (TABLE["sex"] == level).to_numpy(np.float64) for level in SEX.levels}
    x = np.column_stack([np.ones(ROWS), *(cells[name] for name in terms)])
    exact = np.linalg.lstsq(x, cells[found.outcome], rcond=None)[0]
    predicted = found.predict(TABLE.assign(visits=TABLE["age"] // 20))
    np.testing.assert_allclose(predicted, x @ exact, rtol=1e-4, atol=1e-4 * np.abs(exact[0]))


@pytest.mark.parametrize(
    ("term", "line"),
    [
        ("asinh(income)", "income_asinh: {from: income, transform: asinh}"),
        ("log1p(age)", "age_log: {from: age, transform: log1p}"),
        ("income:sex", "income_sex: {from: [income, sex], transform: product}"),
        ("I(age > 65.5)", 'age_above_65_5: {from: age, transform: "> 65.5"}'),
        ("I(cost != 0)", "cost_any: {from: cost, transform: is not zero}"),
        ("I(cost / income)", "cost_per_income: {from: [cost, income], transform: ratio}"),
        ("np.isnan(income)", "income_missing: {from: income, transform: is missing}"),
    ],
)
def test_a_term_that_is_not_released_says_how_it_would_be(term: str, line: str) -> None:
    outcome = "age" if "cost" in term else "cost"
    with raises(families.ANALYSIS, line=line):
        fitted(f"{outcome} ~ {term}")


def test_unknown_columns_of_functions_are_refused() -> None:
    with raises(families.ANALYSIS, column="incom"):
        fitted("cost ~ log1p(incom)")
    for term in ("log1p(income):sex", "income:age:sex", "log(income)", "income ** age"):
        with raises(families.FORMULA):
            LinearRegression(formula=f"cost ~ I({term})")


def test_what_the_dot_leaves_out_is_said() -> None:
    found = fitted("cost ~ .")
    left_out = found._tables["terms"].query("role == 'left out'")["column"]
    derived = ["income_log", "income_any", "rich", "age_2", "age_income", "cost_log"]
    assert set(left_out) == {*derived, "age_sex=F", "age_sex=M"}
    assert "income_log" in found.summary()
    assert "visits_root is sqrt(visits)" in found.summary()
    named = fitted("cost ~ . + income_log")
    assert "income_log" not in set(named._tables["terms"].query("role == 'left out'")["column"])
    assert "leaves out" not in fitted("cost ~ age").summary()
    other = fitted("cost ~ . ", release("income"))  # then the logarithm is all that there is of it
    assert "income_log" in other.params.index


def test_predictions_compute_derived_columns_as_the_release_does() -> None:
    found = fitted("cost ~ log1p(income) + age*sex")
    rows = TABLE.iloc[:50]
    own = rows.assign(income_log=np.log1p(rows["income"]))
    expected = found.predict(rows)
    np.testing.assert_allclose(found.predict(own.drop(columns="income")), expected)
    # Inputs are clamped first: to 98 years, and no income is negative.
    beyond = found.predict(rows.assign(age=200.0))
    np.testing.assert_allclose(beyond, found.predict(rows.assign(age=98.0)))
    negative = found.predict(rows.assign(income=-5.0))
    np.testing.assert_allclose(negative, found.predict(rows.assign(income=0.0)))
    assert found.predict(rows.assign(income=np.nan)).isna().all()
    with raises(families.ANALYSIS, missing=("income",)):
        found.predict(rows.drop(columns="income"))


def test_components_transform_rows_of_the_table() -> None:
    from gramercy.api.components import ComponentsResult

    estimate = registry["pca"](name="pca", columns=("income_log", "age", "age_sex=M")).fit(ALL)
    found = ComponentsResult(estimate, ALL)
    own = TABLE.assign(
        income_log=np.log1p(TABLE["income"]), **{"age_sex=M": TABLE["age"] * (TABLE["sex"] == "M")}
    )
    by_name = found.transform(own[["income_log", "age", "age_sex=M"]])
    np.testing.assert_allclose(found.transform(TABLE), by_name, atol=1e-9)


def test_coefficients_of_a_logarithm_are_ratios_of_geometric_means() -> None:
    found = fitted("log1p(cost) ~ income_log + age")
    ratios = found.ratios
    assert ratios is not None
    np.testing.assert_allclose(ratios["ratio"], np.exp(found.params.iloc[1:]))
    np.testing.assert_allclose(ratios["upper"], np.exp(found.table["upper"].iloc[1:]))
    assert "exp(coef)" in found.summary()
    assert "1 + cost" in found.summary()
    other = fitted("cost ~ income_log")
    assert other.ratios is None
    assert "exp(coef)" not in other.summary()


def test_means_are_transformed_back_and_named_for_what_they_are() -> None:
    found = Description(registry["moments"](name="moments").fit(ALL)).derived
    assert found is not None
    of_log = "geometric mean of 1 + income, minus 1"
    value = found.loc["income_log", of_log]
    exact = np.expm1(np.log1p(TABLE["income"]).mean())
    assert value["value"] == pytest.approx(exact, rel=1e-6)
    assert 0 <= value["lower"] < exact < value["upper"]
    root = found.loc["visits_root", "square of the mean root of visits"]
    assert root["value"] == pytest.approx(np.sqrt(TABLE["age"] // 20).mean() ** 2, rel=1e-6)
    (share,) = found.loc["rich"].itertuples()
    assert share.unit == "share"
    assert share.value == pytest.approx((TABLE["income"] > 500).mean(), rel=1e-6)
    assert not any(quantity.startswith("mean ") for quantity in found.index.get_level_values(1))
    shown = Description(registry["moments"](name="moments").fit(ALL)).summary()
    assert of_log in shown


CELLS: dict[str, Array] = {
    "zeros": np.where(np.arange(4000) % 10 == 0, np.geomspace(1, 1e5, 4000), 0.0),
    "lognormal": np.exp(np.linspace(-3, 3, 4001) * 1.5 + 6),
    "signed": np.sinh(np.linspace(-9, 9, 4001)),
    "normal": np.random.default_rng(1).normal(50, 10, 4000),
    "flag": (np.arange(4000) % 10 == 0).astype(np.float64),
    "visits": np.random.default_rng(1).poisson(0.3, 4000).astype(np.float64),
    "hours": np.where(np.arange(4000) % 5 < 3, 0.0, np.linspace(1, 60, 4000)),
    "small": np.exp(np.linspace(-3, 3, 4001) - 9),
    "empty": np.full(4000, np.nan),
}


@pytest.mark.parametrize(
    ("name", "lower", "lines"),
    [
        (
            "zeros",
            0.0,
            [
                "zeros_log: {from: zeros, transform: log1p}",
                "zeros_any: {from: zeros, transform: is not zero}",
            ],
        ),
        ("lognormal", 0.0, ["lognormal_log: {from: lognormal, transform: log1p}"]),
        ("lognormal", -1e9, ["lognormal_asinh: {from: lognormal, transform: asinh}"]),
        ("signed", -1e9, ["signed_asinh: {from: signed, transform: asinh}"]),
        ("normal", 0.0, []),
        ("flag", 0.0, []),
        ("visits", 0.0, []),
        ("hours", 0.0, ["hours_any: {from: hours, transform: is not zero}"]),
        ("small", 0.0, []),
        ("empty", 0.0, []),
    ],
)
def test_functions_of_columns_with_zeros_and_long_tails_are_proposed(
    name: str, lower: float, lines: list[str]
) -> None:
    shape = Shape.of_cells(name, CELLS[name], lower)
    assert [each.line for each in proposals([shape], [])] == lines
    known = [DerivedFacts(inputs=(name,), transform=each) for each in ("sqrt", "> 0")]
    assert not list(proposals([shape], known))
