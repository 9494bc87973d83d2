"""Regression from a noisy second moment: definition, errors, and what noise hides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gramercy.estimators.linear.formula import parse_formula
from gramercy.estimators.noise.denoise import project
from gramercy.estimators.noise.draws import draw, stream
from gramercy.estimators.regression import LinearRegression
from gramercy.estimators.uncertainty.entry_covariance import noise_covariance, noise_of_scores
from gramercy.estimators.uncertainty.moment_errors import tail_factor
from gramercy.schemas import families
from gramercy.schemas.column import INTERCEPT
from gramercy.schemas.errors import RequestError
from gramercy.schemas.evidence import ROW_LENGTHS, Evidence, Fold, Histogram
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.model import parse
from gramercy.schemas.noise import Family, NoiseLaw
from tests.support.noisy_matrices import gaussian_law
from tests.support.problems import raises

Array = NDArray[np.float64]

NAMES = ("y", "a", "b", "c")
CENTRES, SCALES = np.array([3.0, 1.0, -2.0, 0.5]), np.array([4.0, 2.0, 3.0, 1.0])
LEVELS = LevelsFacts(name="kind", levels=("x", "v", "w"))


def columns() -> list[ColumnFacts]:
    facts = zip(NAMES, CENTRES, SCALES, strict=True)
    return [ColumnFacts(name=n, lower=-1e3, upper=1e3, centre=c, scale=s) for n, c, s in facts]


def table(rows: int, seed: int = 0) -> Array:
    """Columns y, a, b, c with y = 2 + a - 0.5 b + 0.2 c + standard normal residuals."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0.3], [0, 0, 1]])
    y = 2 + x @ [1, -0.5, 0.2] + rng.normal(size=rows)
    cells: Array = np.column_stack([y, x])
    return cells


def released(
    cells: Array,
    radius: float = 30.0,
    sd: float = 0.0,
    seed: int = 0,
    kind: NDArray[np.int64] | None = None,
    folds: int = 1,
    **facts: Any,
) -> Evidence:
    """A release with isotropic Gaussian noise of deviation `sd` on T = radius^2 S."""
    rng = np.random.default_rng(seed)
    z = np.nan_to_num((cells - CENTRES) / SCALES)
    parts = [np.ones(len(z)), z] + ([] if kind is None else [np.eye(3)[kind]])
    rows = np.column_stack(parts)
    rows *= (np.minimum(1.0, radius / np.linalg.norm(rows, axis=1)) / radius)[:, None]
    deviation = sd / radius**2

    def moment(part: Array) -> Fold:
        noise = rng.normal(size=(rows.shape[1],) * 2) * deviation * np.sqrt(folds / 2)
        return Fold(part.T @ part / len(part) + noise + noise.T, float(len(part)))

    found = [moment(part) for part in np.array_split(rows, folds)]
    raw = np.average([each.moment for each in found], axis=0, weights=[f.rows for f in found])
    law = gaussian_law(deviation) if sd else NoiseLaw.none()
    levels = [] if kind is None else [LEVELS] * 3
    names = (*NAMES, *[f"kind={level}" for level in LEVELS.levels[: len(levels)]])
    return replace(
        Evidence(
            raw,
            project(raw, np.inf),
            law,
            float(len(cells)),
            (INTERCEPT, *names),
            (None, *columns(), *levels),
            unit=False,
            folds=tuple(found) if folds > 1 else (),
            radius=radius,
        ),
        **facts,
    )


PLAIN = LinearRegression(outcome="y", predictors=("a", "b", "c"))  # no formula to parse


def coefficients(evidence: Evidence, formula: str | None = None) -> Any:
    settings = LinearRegression(formula=formula) if formula else PLAIN
    estimate = settings.fit(evidence)
    return estimate.tables["coefficients"].set_index("term")


def fit_facts(evidence: Evidence) -> Any:
    return PLAIN.fit(evidence).tables["fit"].set_index("quantity")["value"]


@pytest.mark.parametrize("radius", [30.0, 1.2])
def test_without_noise_it_is_weighted_least_squares(radius: float) -> None:
    cells = table(800)
    release = released(cells, radius)
    found = coefficients(release)
    x = np.column_stack([np.ones(800), cells[:, 1:]])
    length = np.linalg.norm(np.column_stack([np.ones(800), (cells - CENTRES) / SCALES]), axis=1)
    weights = np.minimum(1.0, radius / length) ** 2
    inverse = np.linalg.inv((x.T * weights) @ x)
    exact = inverse @ (x.T * weights) @ cells[:, 0]
    squares = weights * (cells[:, 0] - x @ exact) ** 2
    errors = np.sqrt(np.diag(inverse) * squares.sum() / (800 - 4))
    np.testing.assert_allclose(found["coefficient"], exact, rtol=1e-8)
    np.testing.assert_allclose(found["fitted"], exact, rtol=1e-8)
    np.testing.assert_allclose(found["standard_error"], errors, rtol=1e-8)
    np.testing.assert_allclose(found["t"], exact / errors, rtol=1e-8)
    assert (found["known"] == "yes").all()
    assert not found["bias"].to_numpy().round(12).any()
    facts = fit_facts(release)
    about_mean = weights * (cells[:, 0] - np.average(cells[:, 0], weights=weights)) ** 2
    np.testing.assert_allclose(facts.iloc[0], 1 - squares.sum() / about_mean.sum(), rtol=1e-8)
    np.testing.assert_allclose(facts.iloc[1], np.sqrt(squares.sum() / weights.sum()), rtol=1e-8)
    np.testing.assert_allclose(facts["mean weight of a row"], weights.mean())


def test_levels_are_coded_with_the_first_one_as_reference() -> None:
    cells = table(600)
    kind = np.random.default_rng(1).integers(0, 3, size=600)
    cells[:, 0] += np.array([0.0, 2.0, -1.0])[kind]
    release = released(cells, kind=kind)
    found = coefficients(release, "y ~ a + C(kind)")
    x = np.column_stack([np.ones(600), cells[:, 1], kind == 1, kind == 2])
    exact = np.linalg.lstsq(x, cells[:, 0], rcond=None)[0]
    assert list(found.index) == ["Intercept", "a", "kind=v", "kind=w"]
    np.testing.assert_allclose(found["coefficient"], exact, rtol=1e-7)
    terms = LinearRegression(formula="y ~ kind").fit(release).tables["terms"]
    assert terms.to_numpy().tolist() == [["outcome", "y", ""], ["reference", "kind", "x"]]
    share = coefficients(release, "`kind=v` ~ a + b")
    x = np.column_stack([np.ones(600), cells[:, 1:3]])
    exact = np.linalg.lstsq(x, (kind == 1).astype(float), rcond=None)[0]
    np.testing.assert_allclose(share["coefficient"], exact, atol=1e-9)


def test_an_intercept_alone_is_the_mean() -> None:
    cells = table(500)
    found = coefficients(released(cells), "y ~ 1")
    assert list(found.index) == ["Intercept"]
    np.testing.assert_allclose(found["coefficient"], cells[:, 0].mean())
    np.testing.assert_allclose(found["standard_error"], cells[:, 0].std(ddof=1) / np.sqrt(500))


def test_names_in_place_of_a_formula() -> None:
    release = released(table(300))
    by_formula = coefficients(release, "y ~ . - c")
    by_names = LinearRegression(outcome="y", predictors=("a", "b")).fit(release)
    pd.testing.assert_frame_equal(by_names.tables["coefficients"].set_index("term"), by_formula)
    everything = LinearRegression(outcome="y").fit(release).tables["coefficients"]
    assert list(everything["term"]) == ["Intercept", "a", "b", "c"]


@pytest.mark.slow
def test_missing_cells_are_corrected() -> None:
    """Intervals hold the coefficients, and their errors are those of simulated tables."""
    shares, truth = np.array([0.9, 0.8, 0.7, 1.0]), np.array([2, 1, -0.5, 0.2])
    found = []
    for seed in range(80):
        cells = table(2000, seed)
        hidden = np.random.default_rng(5000 + seed).uniform(size=cells.shape) > shares
        cells[hidden] = np.nan
        found.append(coefficients(released(cells, present=(1.0, *shares))))
    estimates = np.array([each["coefficient"] for each in found])
    stated = np.mean([each["standard_error"] for each in found], axis=0)
    errors = estimates.std(axis=0)
    np.testing.assert_allclose(estimates.mean(axis=0), truth, atol=5 * errors.max() / 80**0.5)
    np.testing.assert_allclose(stated / errors, 1, atol=0.25)


def test_column_without_any_cell_is_unknown() -> None:
    cells = table(500)
    cells[:, 2] = np.nan
    found = coefficients(released(cells, sd=1e-4, present=(1.0, 1.0, 1.0, 0.0, 1.0)))
    assert list(found.index[found["known"] == "no"]) == ["Intercept", "b"]  # its mean is unknown


@pytest.mark.slow
@pytest.mark.parametrize("folds", [1, 10])
@pytest.mark.parametrize(
    "sd",
    [pytest.param(0.002, marks=pytest.mark.slow), 0.01, pytest.param(0.05, marks=pytest.mark.slow)],
)
def test_intervals_cover_with_noise(sd: float, folds: int) -> None:
    truth = np.array([2, 1, -0.5, 0.2])
    covered, known = [], []
    for seed in range(60):
        each = coefficients(released(table(600, seed), sd=sd, seed=seed, folds=folds))
        known.append((each["known"] == "yes").to_numpy())
        covered.append(((each["lower"] <= truth) & (truth <= each["upper"])).to_numpy())
    rate = np.sum(covered) / np.sum(known)
    assert rate > 0.91  # of 240 intervals; 2.8 standard deviations below 0.95
    assert np.mean(known) > (0.9 if sd < 0.02 else 0.1)


def test_folds_cover_residuals_that_depend_on_the_regressors() -> None:
    """Errors for constant residual variance are too small here; those of the jackknife are not."""
    cells = table(6000)
    cells[:, 0] += cells[:, 1] * np.random.default_rng(1).normal(size=6000) * 3
    x = np.column_stack([np.ones(6000), cells[:, 1:]])
    inverse = np.linalg.inv(x.T @ x)
    residual = cells[:, 0] - x @ (inverse @ x.T @ cells[:, 0])
    exact = np.sqrt(np.diag(inverse @ (x.T * residual**2) @ x @ inverse))
    plain, by_folds = (coefficients(released(cells, folds=k))["standard_error"] for k in (1, 20))
    assert plain["a"] < 0.75 * exact[1]
    assert by_folds["a"] == pytest.approx(exact[1], rel=0.4)
    law = LinearRegression(formula="y ~ a").fit(released(cells, folds=20)).tables["fit"]["errors"]
    assert law.iloc[0] == "jackknife over 20 folds"


def test_collinear_columns_are_unknown_and_predict_nevertheless() -> None:
    cells = table(5000)
    cells[:, 3] = cells[:, 1] + 0.001 * np.random.default_rng(1).normal(size=5000)
    release = released(cells, sd=0.001)
    found = coefficients(release)
    assert list(found.index[found["known"] == "no"]) == ["a", "c"]
    assert found.loc["a", ["coefficient", "standard_error", "lower", "p_value"]].isna().all()
    assert found.loc["a", "fitted"] + found.loc["c", "fitted"] == pytest.approx(1.0, abs=0.2)
    x = np.column_stack([np.ones(5000), cells[:, 1:]])
    predicted = x @ found["fitted"].to_numpy()
    exact = 1 - np.var(cells[:, 0] - predicted) / np.var(cells[:, 0])
    least_squares = np.linalg.lstsq(x, cells[:, 0], rcond=None)[0]
    best = 1 - np.var(cells[:, 0] - x @ least_squares) / np.var(cells[:, 0])
    assert exact == pytest.approx(best, abs=0.01)
    assert fit_facts(release).iloc[0] == pytest.approx(best, abs=0.02)


def test_equal_columns_without_noise_are_unknown() -> None:
    cells = table(400)
    cells[:, 3] = cells[:, 1]
    found = coefficients(released(cells))
    assert list(found.index[found["known"] == "no"]) == ["a", "c"]
    assert found.loc["b", "known"] == "yes"


def test_noise_alone_says_nothing() -> None:
    noise = released(table(100), sd=50.0, seed=3)
    noise = replace(noise, raw=noise.raw - np.diag(np.abs(np.diag(noise.raw))))
    estimate = LinearRegression(formula="y ~ .").fit(noise)
    found = estimate.tables["coefficients"]
    assert (found["known"] == "no").all()
    assert found.select_dtypes("number").isna().all(axis=None)
    assert estimate.tables["fit"].set_index("quantity")["value"]["rows"] == 100


def test_weight_lost_in_noise_without_a_radius() -> None:
    """Without a radius, the weight of the rows is known from the matrix alone."""
    release = released(table(400), sd=0.02)
    unclipped = replace(release, radius=None)
    exact, found = coefficients(release), coefficients(unclipped)
    np.testing.assert_allclose(found["coefficient"], exact["coefficient"], atol=0.15)
    lost = replace(unclipped, raw=unclipped.raw - unclipped.raw[0, 0] * np.eye(5))
    assert (coefficients(lost)["known"] == "no").all()


@pytest.mark.parametrize("sd", [1e-6, 0.01, 3.0])
@pytest.mark.parametrize(
    "family", ["gaussian-iid", "laplace", "k-norm", "matrix-laplace", "wishart", "noisy-rows"]
)
def test_every_noise_family_and_level_of_noise(family: Family, sd: float) -> None:
    exact = released(table(2000))
    dof = {"wishart": 25.0, "matrix-laplace": 6.0}.get(family)
    rows = {"cell_variance": sd} if family == "noisy-rows" else {}
    diagonal = sd if family in {"gaussian-iid", "laplace"} else sd * np.sqrt(2)
    law = NoiseLaw(family=family, sd_diagonal=float(diagonal), sd_off_diagonal=sd, dof=dof, **rows)
    law = law if rows else law.divided_by(30.0**2)
    raw = exact.raw + draw(stream(), 5, law)
    found = coefficients(replace(exact, raw=raw, repaired=project(raw, np.inf), law=law))
    pd.testing.assert_frame_equal(
        found, coefficients(replace(exact, raw=raw, repaired=project(raw, np.inf), law=law))
    )
    known = found["known"] == "yes"
    numbers = found.select_dtypes("number")
    assert np.isfinite(numbers[known].to_numpy()).all()
    if sd == 1e-6 and not rows:
        truth = coefficients(exact)
        np.testing.assert_allclose(found["coefficient"], truth["coefficient"], rtol=1e-3)


@pytest.mark.parametrize("family", ["gaussian-isotropic", "laplace"])
def test_noise_of_scores_follows_the_law(family: Family) -> None:
    """Against the covariance of independent entries, summed entry by entry."""
    residual = np.array([0.3, 1.0, -0.7, 0.2])
    diagonal = 2.0 if family == "gaussian-isotropic" else 1.0
    law = NoiseLaw(family=family, sd_diagonal=diagonal**0.5, sd_off_diagonal=1.0)
    found = noise_of_scores(noise_covariance(law, np.eye(4), 1.0), residual)
    expected = np.outer(residual, residual)
    np.fill_diagonal(expected, residual @ residual + (diagonal - 1) * residual**2)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_heavy_tails_of_row_lengths_widen_intervals() -> None:
    rng = np.random.default_rng(2)
    cells = table(4000)
    cells *= rng.standard_t(5, size=4000)[:, None]  # long rows in all columns at once
    z = np.column_stack([np.ones(4000), (cells - CENTRES) / SCALES])
    edges = np.append(0.0, np.geomspace(0.5, 60.0, 30))
    counts = np.histogram(np.linalg.norm(z, axis=1), np.append(edges, np.inf))[0]
    upper = np.append(edges[1:], np.nan)
    lengths = Histogram(1, ROW_LENGTHS, edges, upper, (None,) * edges.size, counts, 1.0)
    with_lengths = released(cells, histograms=(lengths,))
    squares = np.linalg.norm(z, axis=1) ** 2
    second = z.T @ z / 4000
    gaussian = 2 * ((second**2).sum() - (second[0] @ second[0]) ** 2)
    assert tail_factor(with_lengths) == pytest.approx(squares.var() / gaussian, rel=0.3)
    assert tail_factor(released(cells)) == 1.0
    wide, plain = coefficients(with_lengths), coefficients(released(cells))
    ratio = wide["standard_error"] / plain["standard_error"]
    np.testing.assert_allclose(ratio, tail_factor(with_lengths) ** 0.5)


def test_intervals_with_folds_are_those_of_the_jackknife() -> None:
    """Neither the lengths of rows nor the law without folds makes them wider."""
    release = released(table(3000), sd=0.002, folds=10)
    edges = np.array([0.0, 2.0, 20.0])
    upper, counts = np.array([2.0, 20.0, np.nan]), np.array([1500, 1000, 500])
    lengths = Histogram(1, ROW_LENGTHS, edges, upper, (None,) * 3, counts, 1.0)
    heavy = replace(release, histograms=(lengths,))
    assert tail_factor(heavy) > 5
    found = coefficients(heavy)
    pd.testing.assert_frame_equal(found, coefficients(release))
    p_value, reach = found["p_value"], found["upper"] - found["coefficient"]
    ends = (found["coefficient"].abs() - found["bias"]) / (reach - found["bias"])
    assert ((p_value < 0.05) == (ends > 1)).all()
    error = found["standard_error"]
    # Between the normal quantile and that of Student's t distribution with nine degrees of freedom.
    assert (1.96 * error <= reach).all()
    assert (reach <= 2.263 * error + found["bias"]).all()


@pytest.mark.parametrize(
    ("formula", "outcome", "predictors"),
    [
        ("y ~ a + b", "y", ["a", "b"]),
        ("y ~ .", "y", ["a", "b", "kind", "odd name"]),
        ("y ~ . - kind - C(a)", "y", ["b", "kind", "odd name", "a"]),
        ("y ~ . - kind", "y", ["a", "b", "odd name"]),
        ("b ~ `odd name` + C(kind) + C(`odd name`)", "b", ["odd name", "kind"]),
        ("`kind=v` ~ .", "kind=v", ["y", "a", "b", "odd name"]),
        ("y ~", "y", []),
    ],
)
def test_formulas(formula: str, outcome: str, predictors: Sequence[str]) -> None:
    known = ["y", "a", "b", "kind", "odd name"]
    terms = parse_formula(formula, [c for c in known if not outcome.startswith(c)])
    if formula == "y ~ . - kind - C(a)":  # C(a) is another term than a
        assert set(terms.predictors) <= set(predictors)
        return
    assert (terms.outcome, list(terms.predictors)) == (outcome, predictors)
    assert terms.all_others == ("." in formula)


MALFORMED = ["a + b", "y ~ a ~ b", "y + z ~ a", "y ~ a +", "", "1 ~ a", "y ~ a | b", "y ~ `a"]
UNKNOWN = ["log(a)", "I(a + b)", "C(a, contr.sum)", "poly(a, 2)", "__import__('os')"]
REFUSED: list[tuple[str, dict[str, str]]] = [
    *((formula, {"formula": formula}) for formula in MALFORMED),
    *((f"y ~ {term}", {"term": term}) for term in UNKNOWN),
    *((formula, {}) for formula in ("y ~ 0 + a", "y ~ a - 1")),  # without an intercept
]


@pytest.mark.parametrize(("formula", "facts"), REFUSED)
def test_formulas_that_are_refused(formula: str, facts: dict[str, str]) -> None:
    with raises(families.FORMULA, **facts):
        parse(LinearRegression, {"formula": formula}, "regression", RequestError)


def test_outcome_cannot_predict_itself() -> None:
    release = released(table(100), kind=np.arange(100) % 3)
    with raises(families.FORMULA, outcome="y"):
        LinearRegression(formula="y ~ a + y")
    for formula in ("`kind=v` ~ kind", "`kind=v` ~ `kind=v`"):
        with raises(families.FORMULA):
            coefficients(release, formula)


@pytest.mark.parametrize("formula", ["Ka ~ a", "y ~ Ka", "y ~ . - Ka"])
def test_unknown_columns_are_refused_with_similar_ones_first(formula: str) -> None:
    release = released(table(100), kind=np.arange(100) % 3)
    known = ("a", "y", "b", "c", "kind", "kind=x", "kind=v", "kind=w")
    with raises(families.ANALYSIS, column="Ka", known=known):
        coefficients(release, formula)


def test_outcome_with_levels_names_one_level() -> None:
    release = released(table(100), kind=np.arange(100) % 3)
    levels = ("kind=x", "kind=v", "kind=w")
    with raises(families.ANALYSIS, column="kind", levels=levels):
        coefficients(release, "kind ~ a")


def test_outcome_is_required_and_given_once() -> None:
    with raises(families.ANALYSIS):
        LinearRegression().fit(released(table(100)))
    with raises(families.FORMULA):
        LinearRegression(formula="y ~ a", outcome="y")


def test_releases_without_means_are_refused() -> None:
    release = released(table(100))
    for other in (replace(release, unit=True), replace(release, columns=release.columns[1:])):
        with raises(families.ANALYSIS, estimator="regression"):
            coefficients(other)
