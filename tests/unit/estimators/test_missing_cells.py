"""Correlations, covariances and the verdict of tables whose cells are missing together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gramercy.estimators.accuracy.clipped_accuracy import ClippedAccuracy
from gramercy.estimators.lost_moments import clipped_moments
from gramercy.estimators.missing_cells import independent, measured
from gramercy.estimators.regression import LinearRegression
from gramercy.estimators.table_units import table_units
from gramercy.estimators.uncertainty.entries import correlation
from gramercy.estimators.uncertainty.table_entries import table_covariance, table_deviations
from gramercy.schemas.evidence import Evidence, MissingMatrix
from tests.support.simulated_release import privately_scaled, series

pytestmark = pytest.mark.slow

Array = NDArray[np.float64]
P, PAIRS = 6, np.triu_indices(6, 1)
SURE, ROWS = 8.0, 40_000


def cells(seed: int = 0, rows: int = ROWS) -> Array:
    """Columns with correlations from .2 to .7."""
    rng = np.random.default_rng(seed)
    loading = np.linspace(0.5, 0.85, P)
    common = loading * rng.normal(size=(rows, 1))
    return np.asarray(5 + 2 * (common + np.sqrt(1 - loading**2) * rng.normal(size=(rows, P))))


def missing_at(kind: str, table: Array, seed: int = 1) -> Array:
    """The table with missing cells."""
    rng, table = np.random.default_rng(seed), table.copy()
    rows = len(table)
    if kind == "block":
        table[rng.random(rows) < 0.5, 3:] = np.nan
    elif kind == "exclusive":
        first = rng.random(rows) < 0.5
        table[first, 4], table[~first & (rng.random(rows) < 0.9), 5] = np.nan, np.nan
    elif kind == "at random":
        table[rng.random(table.shape) < 0.3] = np.nan
    elif kind == "where another is high":
        table[rng.random(rows) < 1 / (1 + np.exp(6 - table[:, 0])), 3:] = np.nan
    return table


def released(table: Array, epsilon: float = SURE, seed: int = 2) -> Evidence:
    return privately_scaled(table, [(-10.0, 20.0)] * P, epsilon, seed)


def own(table: Array) -> Array:
    """Correlations of the cells that are present in both columns."""
    return pd.DataFrame(table).corr().to_numpy()


def worst_error(evidence: Evidence, table: Array) -> float:
    moments = clipped_moments(evidence)
    assert moments is not None
    return float(np.abs(moments.correlation - own(table))[PAIRS].max())


@pytest.mark.parametrize("kind", ["block", "exclusive", "where another is high"])
def test_correlations_are_those_of_rows_with_both_cells(kind: str) -> None:
    table = missing_at(kind, cells())
    evidence = released(table)
    without = replace(evidence, missing=None)
    assert worst_error(without, table) > 0.1
    assert worst_error(evidence, table) < (0.02 if kind == "block" else 0.08)
    assert worst_error(evidence, table) < worst_error(without, table) / 3
    found = correlation(evidence, "correlation")
    lower, upper = found.interval(0.95, "table")
    assert ((lower <= own(table)) & (own(table) <= upper))[PAIRS].mean() > 0.9


def test_independent_cells_stay_as_accurate() -> None:
    errors = []
    for seed in range(3):
        table = missing_at("at random", cells(seed), seed)
        evidence = released(table, 1.0, seed)
        errors.append(
            [worst_error(each, table) for each in (evidence, replace(evidence, missing=None))]
        )
    with_matrix, without = np.mean(errors, axis=0)
    assert with_matrix < 1.2 * without


def test_covariances_agree_with_correlations() -> None:
    """From the matrix, and from a fold of it: both divide by the measured shares."""
    table = missing_at("block", cells())
    evidence = released(table)
    units = table_units(evidence)
    assert units is not None
    truth = pd.DataFrame(table).cov().to_numpy()
    np.testing.assert_allclose(units.moments(evidence.raw).covariance, truth, atol=0.15)
    np.testing.assert_allclose(table_covariance(evidence, units).estimate, truth, atol=0.15)


@pytest.mark.parametrize("kind", ["block", "exclusive", "where another is high"])
def test_regression_and_partial_correlations_use_rows_with_both_cells(kind: str) -> None:
    full = cells(rows=100_000)
    evidence = released(missing_at(kind, full), 4.0)
    x = np.column_stack([np.ones(len(full)), full[:, : P - 1]])
    slopes = np.linalg.lstsq(x, full[:, -1], rcond=None)[0][1:]
    inverse = np.linalg.inv(np.corrcoef(full.T))
    root = np.sqrt(np.diag(inverse))
    partial = -inverse / np.outer(root, root)
    model = LinearRegression(formula="c5 ~ c0 + c1 + c2 + c3 + c4")

    def errors(release: Evidence) -> tuple[float, float]:
        table = model.fit(release).tables["coefficients"].set_index("term")
        found = table["coefficient"][[f"c{k}" for k in range(P - 1)]].to_numpy()
        off = correlation(release, "partial correlation").estimate - partial
        return float(np.abs(found - slopes).max()), float(np.abs(off[PAIRS]).max())

    for with_matrix, without in zip(
        errors(evidence), errors(replace(evidence, missing=None)), strict=True
    ):
        assert with_matrix < (0.1 if kind == "where another is high" else 0.05)
        assert not without < 2 * with_matrix  # also if it is unknown


def test_means_and_deviations_have_no_other_shape() -> None:
    moments = clipped_moments(released(missing_at("block", cells())))
    assert moments is not None
    for each in (moments.mean_bias, moments.variance_bias, *moments.variance_shift):
        assert each.shape == (P,)
    assert moments.correlation_missing.shape == (P, P)


@pytest.mark.parametrize("epsilon", [1.0, SURE])
def test_block_of_missing_cells_is_green(epsilon: float) -> None:
    accuracy = ClippedAccuracy.of(released(missing_at("block", cells()), epsilon))
    assert accuracy is not None
    assert accuracy.level == "good"


@pytest.mark.parametrize("epsilon", [1.0, SURE])
def test_rows_that_are_unlike_others_are_not_green(epsilon: float) -> None:
    """What is known of the rows that are there is not what holds for all rows."""
    full = cells()
    table = missing_at("where another is high", full)
    accuracy = ClippedAccuracy.of(released(table, epsilon))
    assert accuracy is not None
    assert accuracy.level != "good" or accuracy.excepted == ("c0",)
    assert (accuracy.bounds[0, 3:] > 0.12).all()
    change = np.abs(own(table) - own(full))
    assert change[PAIRS].max() > 0.05
    assert (accuracy.missing >= change - 0.02)[PAIRS].all()


def test_few_rows_with_both_cells_are_not_green() -> None:
    evidence = released(missing_at("exclusive", cells(rows=20_000)), 0.5)
    accuracy = ClippedAccuracy.of(evidence)
    assert accuracy is not None
    assert accuracy.bounds[4, 5] > 0.12 or not accuracy.pairs[4, 5]
    alone = ClippedAccuracy.of(replace(evidence, missing=None))
    assert alone is not None


def test_shares_stay_within_their_bounds() -> None:
    present = np.array([0.9, 0.3, 1.0, 0.4])
    holes = np.array([0, 1, 3])
    for noise in (10.0, -10.0):
        together = np.full((3, 3), noise)
        np.fill_diagonal(together, 1 - present[holes])
        missing = MissingMatrix(together, np.zeros((5, 3)), (1, 2, 4), 1e-6, 1e-6)
        found = measured(present, holes, missing, np.zeros(4))
        share = found.share
        assert (share <= np.minimum.outer(present, present) + 1e-12).all()
        assert (share >= np.add.outer(present, present) - 1 - 1e-12).all()
        assert (share > 0).all()
        assert np.array_equal(np.diag(share), present)
        np.testing.assert_allclose(share[2], present[2] * present * [1, 1, 1, 1])


def test_loud_noise_leaves_independent_shares() -> None:
    rng, present = np.random.default_rng(0), np.array([0.7] * 8)
    holes = np.arange(8)
    noise = rng.normal(size=(8, 8))
    noise = np.tril(noise) + np.tril(noise, -1).T
    missing = MissingMatrix(noise, rng.normal(size=(9, 8)), tuple(range(1, 9)), 1.0, 1.0)
    found = measured(present, holes, missing, np.zeros(8))
    spread = np.abs(found.share - independent(present).share).max()
    assert spread < 0.4 * np.abs(noise).max()


@pytest.mark.parametrize("kind", ["exclusive", "at random"])
def test_regression_knows_what_missing_cells_add_to_its_errors(kind: str) -> None:
    """Few rows with both of two columns, or cells that are missing where another is high."""
    covered = []
    for seed in range(3):
        stream = np.random.default_rng(seed)
        shared, loadings = stream.normal(size=(20_000, 1)), np.linspace(0.2, 0.8, 6)
        whole = loadings * shared + np.sqrt(1 - loadings**2) * stream.normal(size=(20_000, 6))
        table = whole.copy()
        if kind == "exclusive":
            first = stream.random(len(table)) < 0.475
            both = stream.random(len(table)) < 0.05
            table[~first & ~both, 4] = np.nan
            table[first & ~both, 5] = np.nan
        else:
            odds = np.exp(2 * whole[:, 5] - 1)[:, None]
            missing = stream.random((len(table), 3)) < odds / (1 + odds)
            table[:, :3][missing] = np.nan
        release = privately_scaled(table, [(-10.0, 10.0)] * 6, 1.0, seed)
        found = LinearRegression(formula="c5 ~ c0 + c1 + c2 + c3 + c4").fit(release)
        lines = found.tables["coefficients"].set_index("term").iloc[1:]
        design = np.column_stack([np.ones(len(whole)), whole[:, :5]])
        truth = np.linalg.lstsq(design, whole[:, 5], rcond=None)[0][1:]
        covered.append(((lines["lower"] <= truth) & (truth <= lines["upper"])).mean())
    assert np.mean(covered) > 0.9


def test_matrix_without_noise_and_without_dependence() -> None:
    """As far as numbers show: its noise is lost in a matrix of a forged, unverified bundle."""
    absent = np.array([0.25, 0.25])
    together = np.outer(absent, absent) + np.diag(absent - absent**2)
    missing = MissingMatrix(together, np.zeros((3, 2)), (1, 2), 1e-200, 1e-200)
    found = measured(1 - absent, np.array([0, 1]), missing, np.zeros(2))
    np.testing.assert_array_equal(found.share, independent(1 - absent).share)


def test_later_release_with_the_same_constants_has_its_own_shares() -> None:
    """More cells are missing than in the table that gave the constants."""
    stream = np.random.default_rng(12)
    tables = [stream.normal(size=(20_000, 5)) for _ in range(2)]
    for table, share in zip(tables, (0.1, 0.3), strict=True):
        table[:, :2][stream.random((20_000, 2)) < share] = np.nan
    first, later = series(tables, [(-50.0, 50.0)] * 5, 4.0)
    assert first.present[1:3] == pytest.approx((0.9, 0.9), abs=0.02)
    assert later.present[1:3] == pytest.approx((0.7, 0.7), abs=0.02)
    assert later.present[3:] == (1.0, 1.0, 1.0)
    units = table_units(later)
    assert units is not None
    found = table_deviations(later, units).estimate
    assert found == pytest.approx(np.nanstd(tables[1], axis=0), rel=0.03)
