"""Synthetic rows have the distributions and the correlations of their release."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from gramercy.estimators.copula.released import (
    FreeChoice,
    LevelChoice,
    MomentLimit,
    OrderedChoice,
    clamped_normal,
    hermite_coefficients,
    histogram_marginal,
    latent_correlations,
)
from gramercy.estimators.copula.rows import Copula, nearest_correlation
from gramercy.estimators.marginals import Distribution
from gramercy.estimators.noise.denoise import denoise
from gramercy.estimators.synthetic import Synthetic
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence, Histogram
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from tests.support.histogram_tables import public
from tests.support.noisy_matrices import gaussian_law, goe
from tests.support.problems import raises
from tests.support.simulated_release import privately_scaled

Array = NDArray[np.float64]
Facts = ColumnFacts | LevelsFacts

ROWS = 40_000
ERROR = 4.5 / np.sqrt(ROWS)  # of a correlation of synthetic rows


def number(name: str, lower: float, upper: float, centre: float, scale: float) -> ColumnFacts:
    return ColumnFacts(name=name, lower=lower, upper=upper, centre=centre, scale=scale)


def release_of(
    table: pd.DataFrame, facts: list[Facts], sd: float = 1e-9, radius: float = 60.0, **more: Any
) -> Evidence:
    """A release with Gaussian noise; rows are clipped at a radius that none exceeds."""
    parts: list[Array] = [np.ones((len(table), 1))]
    columns: list[Facts | None] = [None]
    for each in facts:
        cells = table[each.name]
        if isinstance(each, LevelsFacts):
            parts.append(np.column_stack([(cells == x).astype(float) for x in each.levels]))
            columns += [each] * len(each.levels)
        else:
            scaled = (cells.clip(each.lower, each.upper) - each.centre) / each.scale
            parts.append(scaled.fillna(0.0).to_numpy()[:, None])
            columns.append(each)
    rows = np.hstack(parts) / radius
    raw = rows.T @ rows / len(rows) + goe(np.random.default_rng(5), rows.shape[1], sd)
    law = gaussian_law(sd)
    return Evidence(
        raw,
        denoise(raw, law, unit=False),
        law,
        float(len(rows)),
        columns=tuple(columns),
        unit=False,
        radius=radius,
        **more,
    )


def latent_table(p: int, correlation: float, rows: int = 20_000) -> Array:
    cov = np.full((p, p), correlation)
    np.fill_diagonal(cov, 1.0)
    return np.random.default_rng(3).multivariate_normal(np.zeros(p), cov, rows)


def mixed_table() -> tuple[pd.DataFrame, list[Facts]]:
    """A normal, a binary, an ordered and an unordered column."""
    z = latent_table(4, 0.5)
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"age": 50 + 10 * z[:, 0], "ill": (z[:, 1] > 0.7).astype(float)})
    table["stage"] = np.array(["i", "ii", "iii", "iv"])[np.digitize(z[:, 2], [-1, 0.2, 1])]
    utilities = np.column_stack([z[:, 3], z[:, 0], np.full(len(z), -0.3)])
    winner = (utilities + rng.normal(size=utilities.shape)).argmax(axis=1)
    table["ward"] = np.array(["north", "south", "west"])[winner]
    facts: list[Facts] = [
        number("age", 0, 100, 50, 10),
        number("ill", 0, 1, 0.5, 0.5),
        LevelsFacts(name="stage", levels=("i", "ii", "iii", "iv")),
        LevelsFacts(name="ward", levels=("north", "south", "west")),
    ]
    return table, facts


@cache
def mixed_copula() -> Copula:
    return Copula.of(release_of(*mixed_table()))


def shares(table: pd.DataFrame, columns: list[str]) -> pd.Series:
    return table[columns].value_counts(normalize=True).sort_index()


@pytest.mark.slow
def test_rows_reproduce_a_release_without_noise() -> None:
    table, facts = mixed_table()
    estimate = Synthetic(rows=ROWS).fit(release_of(table, facts))
    rows = estimate.tables["rows"]
    assert list(rows) == ["age", "ill", "stage", "ward"]
    assert rows["age"].mean() == pytest.approx(table["age"].mean(), abs=0.25)
    assert rows["age"].std() == pytest.approx(table["age"].std(), rel=0.02)
    assert rows["ill"].isin([0.0, 1.0]).mean() > 0.9999
    for each in ("stage", "ward"):
        assert (shares(rows, [each]) - shares(table, [each])).abs().max() < 0.01
    pair = ["stage", "ward"]
    assert (shares(rows, pair) - shares(table, pair)).abs().sum() / 2 < 0.02
    correlations = estimate.tables["correlations"]
    assert (correlations["synthetic"] - correlations["release"]).abs().max() < ERROR
    assert estimate.tuning["correlation_error"] < ERROR / 3
    assert len(correlations) == 1 + 2 * 7 + 4 * 3


@pytest.mark.slow
def test_strong_association_of_ordered_levels() -> None:
    """One latent variable serves them better than one for each level."""
    z = latent_table(2, 0.8)
    cut = [-1.5, -0.5, 0.5, 1.5]
    names = np.array(list("abcde"))
    table = pd.DataFrame({k: names[np.digitize(z[:, j], cut)] for j, k in enumerate("xy")})
    facts: list[Facts] = [LevelsFacts(name=k, levels=tuple("abcde")) for k in "xy"]
    rows = Synthetic(rows=ROWS).fit(release_of(table, facts)).tables["rows"]
    found, expected = shares(rows, ["x", "y"]), shares(table, ["x", "y"])
    assert found.sub(expected, fill_value=0).abs().sum() / 2 < 0.04


def test_skewed_columns_keep_histograms_and_correlations() -> None:
    """A lognormal, a zero-inflated and a normal column, from published histograms."""
    z = latent_table(3, 0.6)
    cells = np.column_stack([np.exp(z[:, 0]), np.maximum(z[:, 1], 0) * 5, 70 + z[:, 2]])
    evidence = privately_scaled(cells, [(0, 500), (0, 100), (0, 200)], 4.0)
    names = ("(intercept)", "c0", "c1", "c2")
    evidence = replace(evidence, names=names)
    estimate = Synthetic(rows=ROWS).fit(evidence)
    rows = estimate.tables["rows"].to_numpy()
    assert (rows[:, 1] == 0).mean() == pytest.approx((cells[:, 1] == 0).mean(), abs=0.02)
    for j in range(3):
        at = np.quantile(cells[:, j], np.linspace(0.02, 0.98, 25))
        below = [np.mean(each[:, j] <= at[:, None], axis=1) for each in (cells, rows)]
        assert np.abs(below[0] - below[1]).max() < 0.06
    assert estimate.tuning["largest_correlation_error"] < 2 * ERROR


@pytest.mark.slow
def test_rows_are_deterministic_and_extend_shorter_ones() -> None:
    copula = mixed_copula()
    rows = copula.draw(40_000)
    pd.testing.assert_frame_equal(copula.draw(40_000), rows)
    pd.testing.assert_frame_equal(copula.draw(500), rows[:500])


def test_missing_cells_and_cells_of_no_level() -> None:
    rng = np.random.default_rng(8)
    table = pd.DataFrame({"x": rng.normal(size=20_000)})
    table["kind"] = np.array([1.0, 2.0, np.nan])[rng.choice(3, p=[0.5, 0.3, 0.2], size=20_000)]
    table.loc[rng.random(20_000) < 0.25, "x"] = np.nan
    facts: list[Facts] = [number("x", -8, 8, 0, 1), LevelsFacts(name="kind", levels=(1.0, 2.0))]
    evidence = release_of(table, facts, present=(1.0, 0.75, 1.0, 1.0))
    copula = Copula.of(evidence)
    rows = copula.draw(ROWS)
    assert rows["x"].isna().mean() == pytest.approx(0.25, abs=0.01)
    assert rows["kind"].isna().mean() == pytest.approx(0.2, abs=0.01)
    assert rows["kind"].dtype == np.float64
    assert rows["x"].std() == pytest.approx(1.0, abs=0.02)
    complete = copula.draw(ROWS, missing=False)
    assert complete["x"].notna().all()
    assert (complete["x"] == rows["x"]).sum() == rows["x"].notna().sum()


def test_integers_are_rounded() -> None:
    copula = mixed_copula()
    rows = copula.draw(100, integers=("age",))
    assert (rows["age"] == rows["age"].round()).all()
    assert (rows["age"] != copula.draw(100)["age"]).any()
    with raises(families.ANALYSIS, unknown=("ward",)):
        copula.draw(100, integers=("ward",))
    with raises(families.ANALYSIS):
        copula.draw(0)


def test_whole_numbers_have_their_own_type() -> None:
    rng = np.random.default_rng(8)
    table = pd.DataFrame({"flag": rng.random(20_000) < 0.3, "age": rng.normal(size=20_000)}) * 1.0
    facts: list[Facts] = [number("flag", 0, 1, 0, 1), number("age", -8, 8, 0, 1)]
    copula = Copula.of(release_of(table, facts, present=(1.0, 1.0, 0.75)))
    assert list(copula.in_own_types(copula.draw(9)).dtypes) == ["int64", "float64"]
    integers = ("age",)
    rows = copula.in_own_types(copula.draw(100, integers=integers), integers)
    assert list(rows.dtypes) == ["int64", "Int64"]
    complete = copula.in_own_types(copula.draw(100, False, integers), integers)
    assert complete["age"].dtype == np.int64


def test_release_without_means_is_refused() -> None:
    table, facts = mixed_table()
    evidence = release_of(table, facts)
    with raises(families.ANALYSIS, estimator="synthetic"):
        Synthetic().fit(replace(evidence, unit=True))
    with raises(families.ANALYSIS):
        Synthetic().fit(replace(evidence, columns=()))


def test_release_of_noise_alone_is_refused_without_histograms() -> None:
    table, facts = mixed_table()
    with raises(families.ANALYSIS):
        Synthetic().fit(release_of(table, facts, sd=1.0))


@pytest.mark.slow
def test_hidden_columns_are_independent() -> None:
    """A column whose variance is within the noise has no correlations."""
    table, facts = mixed_table()
    facts[0] = number("age", 0, 100, 50, 1e4)
    estimate = Synthetic(rows=100).fit(release_of(table, facts, sd=2e-6))
    correlations = estimate.tables["correlations"]
    assert (correlations.loc[correlations["row"] == "age", "release"] == 0).all()
    assert (correlations.loc[correlations["row"] == "ill", "release"] != 0).any()


@pytest.mark.parametrize(("mean", "deviation"), [(5.0, 1.0), (0.4, 0.9), (2.0, 4.0), (9.9, 0.05)])
def test_clamped_normal_has_its_moments(mean: float, deviation: float) -> None:
    found = hermite_coefficients(clamped_normal(mean, deviation, 0.0, 10.0))
    assert found[0] == pytest.approx(mean, abs=0.01)
    assert np.sqrt(found[-1]) == pytest.approx(deviation, rel=0.01)


def test_latent_correlation_of_lognormal_columns() -> None:
    """Their correlation is (exp(s^2 rho) - 1) / (exp(s^2) - 1)."""

    class Lognormal:
        def values(self, latent: Array) -> Array:
            return np.exp(0.5 * latent)

    coefficients = np.stack([hermite_coefficients(Lognormal())] * 2)
    for rho in (-0.7, 0.3, 0.9):
        covariance = coefficients[0, -1] * np.expm1(0.25 * rho) / np.expm1(0.25)
        found = latent_correlations(coefficients, np.full((2, 2), covariance))
        assert found[0, 1] == pytest.approx(rho, abs=1e-6)


@pytest.mark.parametrize(
    "choice",
    [
        FreeChoice(np.array([0.5, 0.0, 0.3, 0.15, 0.05])),
        OrderedChoice(np.array([0.5, 0.0, 0.3, 0.15, 0.05]), np.array([1.0, 5.0, 0.0, 3.0, 2.0])),
    ],
)
def test_levels_have_their_shares_and_covariances(choice: LevelChoice) -> None:
    latent = np.random.default_rng(2).normal(size=(200_000, choice.size))
    indicators = choice.chosen(latent)[:, None] == np.arange(5)
    assert np.abs(indicators.mean(axis=0) - choice.shares).max() < 0.006
    covariances = indicators.T.astype(float) @ latent / len(latent)
    assert np.abs(covariances - choice.slopes).max() < 0.006


def test_nearest_correlation_keeps_its_blocks() -> None:
    matrix = np.full((4, 4), 0.9)
    matrix[0, 3] = matrix[3, 0] = -0.9
    fixed = np.eye(4, dtype=bool)
    fixed[1, 2] = fixed[2, 1] = True
    found = nearest_correlation(matrix, fixed)
    assert np.linalg.eigvalsh(found)[0] > 0
    assert (found[fixed] == np.eye(4)[fixed]).all()
    # Up to the rounding of its smallest eigenvalue, which differs between processors.
    assert np.allclose(nearest_correlation(found, fixed), found, rtol=0, atol=1e-12)


def histogram(counts: list[float], edges: Array, sd: float) -> Histogram:
    bins = len(counts)
    ends = np.append(edges[:-1], np.nan), np.append(edges[1:], np.nan)
    noisy = np.append(np.rint(counts), 0).astype(np.int64)
    return Histogram(1, "x", *ends, (None,) * (bins + 1), noisy, sd)


def test_histogram_of_noise_alone_gives_no_distribution() -> None:
    noise = np.random.default_rng(1).normal(size=40) * 50
    empty = histogram(list(noise - noise.mean()), np.linspace(0, 1, 41), 50.0)
    assert histogram_marginal(Distribution.of([empty], public(1)), 0.0, 1.0) is None


def test_tails_of_a_noisy_histogram_are_not_spread() -> None:
    """Noise in empty bins far out must not widen a column."""
    rng = np.random.default_rng(6)
    edges = np.linspace(-20, 20, 81)
    counts = np.histogram(rng.normal(size=20_000), edges)[0] + rng.normal(size=80) * 30
    each = histogram(list(counts), edges, 30.0)
    found = histogram_marginal(Distribution.of([each], public(20_000)), -20, 20)
    assert found is not None
    assert np.sqrt(hermite_coefficients(found)[-1]) == pytest.approx(1.0, abs=0.2)
    assert (np.diff(found.values(np.linspace(-5, 5, 501))) >= 0).all()


@pytest.mark.parametrize(("in_matrix", "deviation"), [(0.0, 1.0), (0.03, 17.6)])
def test_counts_far_out_stay_if_the_matrix_agrees(in_matrix: float, deviation: float) -> None:
    """Noise may give each of four bins; with clipped rows at 5, each cell adds 25 to the matrix."""
    centre = np.linspace(-4, 4, 17)
    counts = [*np.diff(20_000 * ndtr(centre)), 0, 150, 150, 150, 150]
    each = histogram(counts, np.append(centre, 60 + 30 * np.arange(5)), 60.0)
    limit = MomentLimit(0.0, 1.0, 5.0, most=1 + 25 * in_matrix, error=0.02)
    found = histogram_marginal(Distribution.of([each], public(20_600)), -300, 300, limit)
    assert found is not None
    assert np.sqrt(hermite_coefficients(found)[-1]) == pytest.approx(deviation, rel=0.05)
