"""Means, covariances and correlations of a table in its own units, from its clipped rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from gramercy.estimators.table_units import (
    TableMoments,
    TableUnits,
    effect_of_missing_cells,
    mean_weight,
    table_units,
)
from gramercy.schemas.column import INTERCEPT
from gramercy.schemas.evidence import Evidence, NoiseTerm
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from tests.support.noisy_matrices import gaussian_law
from tests.support.simulated_release import units_of

Array = NDArray[np.float64]

CENTRES, SCALES = np.array([100.0, -2.0, 0.5]), np.array([20.0, 0.1, 3.0])
RADIUS = 30.0  # longer than any row of these tables


def table(rows: int, seed: int = 0) -> Array:
    """Three correlated columns in units of their own, away from the public centres."""
    z = np.random.default_rng(seed).multivariate_normal(
        [0.5, -0.3, 0.0], [[1.0, 0.6, -0.3], [0.6, 1.5, 0.1], [-0.3, 0.1, 0.8]], size=rows
    )
    moved: Array = CENTRES + SCALES * z
    return moved


def released(cells: Array, radius: float = RADIUS, levels: Array | None = None) -> Array:
    """The second moment of clipped rows without noise; missing cells are NaN."""
    z = np.nan_to_num((cells - CENTRES) / SCALES)
    indicators = np.empty((len(z), 0)) if levels is None else levels
    rows = np.column_stack([np.ones(len(z)), z, indicators])
    weights = np.minimum(1.0, radius / np.linalg.norm(rows, axis=1)) / radius
    clipped = rows * weights[:, None]
    moment: Array = clipped.T @ clipped / len(rows)
    return moment


def evidence(matrix: Array, present: tuple[float, ...] = (), **changes: object) -> Evidence:
    numbers = [
        ColumnFacts(name=name, lower=-1e3, upper=1e3, centre=centre, scale=scale)
        for name, centre, scale in zip("abc", CENTRES, SCALES, strict=True)
    ]
    levels = LevelsFacts(name="kind", levels=("x", "y"))
    columns = (None, *numbers, *[levels] * (len(matrix) - 4))
    names = (INTERCEPT, "a", "b", "c", "kind=x", "kind=y")[: len(matrix)]
    law = gaussian_law(1e-6)
    facts = Evidence(matrix, matrix, law, 1e4, names, columns, False, radius=RADIUS)
    return replace(facts, present=present, **changes)


def test_moments_without_clipping_are_those_of_the_table() -> None:
    cells = table(500)
    kind = np.random.default_rng(1).choice(3, size=500, p=[0.5, 0.3, 0.2])
    matrix = released(cells, levels=np.eye(3)[kind][:, :2])
    release = evidence(matrix)
    units = units_of(release)
    moments = units.moments(matrix)
    full = np.column_stack([cells, kind == 0, kind == 1]).astype(float)
    np.testing.assert_allclose(moments.mean, full.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(moments.covariance, np.cov(full.T, ddof=0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(moments.standard_deviation, full.std(axis=0), rtol=1e-10)
    np.testing.assert_allclose(moments.correlation, np.corrcoef(full.T), rtol=1e-9, atol=1e-12)
    assert units.names == ("a", "b", "c", "kind=x", "kind=y")
    assert mean_weight(release) == pytest.approx(1.0, rel=1e-12)


def test_moments_of_clipped_rows_are_weighted() -> None:
    cells = table(500)
    rows = np.column_stack([np.ones(500), (cells - CENTRES) / SCALES])
    weights = np.minimum(1.0, 1.5 / np.linalg.norm(rows, axis=1)) ** 2
    matrix = released(cells, radius=1.5)
    release = evidence(matrix, radius=1.5)
    units = units_of(release)
    moments = units.moments(matrix)
    np.testing.assert_allclose(moments.mean, np.average(cells, axis=0, weights=weights))
    np.testing.assert_allclose(
        moments.covariance, np.cov(cells.T, aweights=weights, ddof=0), rtol=1e-9
    )
    assert mean_weight(release) == pytest.approx(weights.mean())


@pytest.mark.parametrize("shares", [(0.9, 0.6, 1.0), (0.05, 0.8, 0.5)])
def test_moments_of_cells_missing_at_random_are_unbiased(shares: tuple[float, ...]) -> None:
    """The average over many tables is the moment of the complete population."""
    stream = np.random.default_rng(2)
    cells = table(400_000, seed=3)
    cells[stream.uniform(size=cells.shape) > shares] = np.nan
    exact = table(400_000, seed=4)
    matrix = released(cells)
    present = tuple(1 - np.isnan(cells).mean(axis=0))
    units = units_of(evidence(matrix, (1.0, *present)))
    moments = units.moments(matrix)
    spread = exact.std(axis=0)
    # Standard errors with one cell in twenty are about 0.01 standard deviations.
    np.testing.assert_allclose((moments.mean - exact.mean(axis=0)) / spread, 0, atol=0.03)
    np.testing.assert_allclose(moments.standard_deviation / spread, 1, atol=0.03)
    np.testing.assert_allclose(moments.correlation, np.corrcoef(exact.T), atol=0.04)


def test_missing_cells_without_a_published_share_shrink_moments() -> None:
    cells = table(100_000)
    cells[np.random.default_rng(5).uniform(size=len(cells)) > 0.5, 1] = np.nan
    matrix = released(cells)
    known, unknown = (units_of(evidence(matrix, of)) for of in ((1.0, 1.0, 0.5, 1.0), ()))
    exact = np.corrcoef(table(100_000).T)[0, 1]
    assert known.moments(matrix).correlation[0, 1] == pytest.approx(exact, abs=0.02)
    assert abs(unknown.moments(matrix).correlation[0, 1]) < 0.8 * exact


@pytest.mark.slow
@pytest.mark.parametrize("metric", [False, True])
def test_stated_noise_of_moments_matches_simulation(metric: bool) -> None:
    """Of spherical noise, and of noise that is spherical in a metric that mixes all columns."""
    stream = np.random.default_rng(6)
    cells = table(2000)
    cells[stream.uniform(size=len(cells)) > 0.7, 2] = np.nan
    matrix = released(cells)
    sd = 1e-3 / RADIUS**2
    deviations = np.full((4, 4), sd)
    np.fill_diagonal(deviations, 2**0.5 * sd)
    root = np.eye(4) + metric * stream.normal(scale=0.3, size=(4, 4))
    terms = (NoiseTerm(gaussian_law(sd), root),) if metric else ()
    units = units_of(evidence(matrix, (1.0, 1.0, 1.0, 0.7)))
    draws = []
    for _ in range(6000):
        half = stream.normal(scale=sd / 2**0.5, size=(4, 4))
        moments = units.moments(matrix + root @ (half + half.T) @ root.T)
        draws.append(np.column_stack([moments.mean, moments.covariance]))
    stated = units.noise(matrix, deviations, terms)
    np.testing.assert_allclose(
        np.std(draws, axis=0), np.column_stack([stated.mean, stated.covariance]), rtol=0.05
    )


def test_lost_columns_and_pairs_are_unknown() -> None:
    matrix = np.diag([1.0, 1.0, 1e-3, 1.0]) / RADIUS**2
    matrix[1, 3] = matrix[3, 1] = 0.5 / RADIUS**2
    units = units_of(evidence(matrix))
    deviations = np.full((4, 4), 1e-3) / RADIUS**2
    assert units.unknown(matrix, deviations).tolist() == [
        [False, True, False],
        [True, True, True],
        [False, True, False],
    ]
    # Much of the pairs' variation is noise, though every variance is known.
    strong = np.full((4, 4), 0.35) / RADIUS**2
    strong[0, 0] /= 10
    assert units.unknown(np.eye(4) / RADIUS**2, strong).sum() == 6
    matrix[2, 2] = -1e-3
    assert np.isnan(units.moments(matrix).standard_deviation[1])
    assert units.unknown(matrix, deviations)[1].all()


def test_little_present_makes_columns_unknown() -> None:
    """The noise of a column counts for as many rows as have a value."""
    matrix = np.diag([1.0, 1.0, 0.05, 1.0]) / RADIUS**2
    deviations = np.full((4, 4), 0.02) / RADIUS**2
    for share, lost in ((0.05, 3), (1.0, 0)):
        cells = matrix.copy()
        cells[2, 2] = share / RADIUS**2
        units = units_of(evidence(cells, (1.0, 1.0, share, 1.0)))
        assert np.triu(units.unknown(cells, deviations), 1).sum() == (2 if lost else 0)


def test_column_without_any_value_is_unknown() -> None:
    units = units_of(evidence(np.eye(4), (1.0, 1.0, 0.0, 1.0)))
    assert np.isnan(units.moments(np.eye(4)).mean[1])
    assert units.unknown(np.eye(4), np.full((4, 4), 1e-3)).tolist()[1] == [True, True, True]


def test_weight_within_the_noise_gives_no_moments() -> None:
    matrix = np.eye(4)
    matrix[0, 0] = -0.1
    units = units_of(evidence(matrix))
    assert np.isnan(units.moments(matrix).mean).all()
    assert units.unknown(matrix, np.full((4, 4), 1e-3)).all()


def test_unit_rows_and_rows_without_intercept_have_no_own_units() -> None:
    release = evidence(np.eye(4))
    assert table_units(replace(release, unit=True)) is None
    assert table_units(replace(release, columns=release.columns[1:])) is None
    assert table_units(replace(release, columns=())) is None
    assert mean_weight(replace(release, radius=None)) is None
    assert mean_weight(replace(release, columns=())) is None


# How far unknown missing cells can move a correlation.


@pytest.mark.parametrize("how", ["one", "independently", "same rows"])
@pytest.mark.parametrize("mean", [0.0, 1.5])
def test_effect_is_at_least_that_of_simulated_missing_cells(how: str, mean: float) -> None:
    stream, rows = np.random.default_rng(0), 200_000
    units = TableUnits(("a", "b"), np.array([3.0, 0.0]), np.array([2.0, 1.0]), np.ones(2))
    z = stream.multivariate_normal([mean, -mean], [[1.0, 0.5], [0.5, 1.0]], size=rows)
    missing = stream.uniform(size=(rows, 2)) < 0.2
    if how == "one":
        missing[:, 1] = False
    if how == "same rows":
        missing[:, 1] = missing[:, 0]
    cells = np.where(missing, 0.0, z) * units.scale + units.centre
    moments = TableMoments(cells.mean(axis=0), np.cov(cells.T))
    change = abs(moments.correlation[0, 1] - 0.5)
    effect = effect_of_missing_cells(moments, units, 0.2)
    assert effect[0, 1] > change - 0.01
    assert effect[0, 1] == effect[1, 0]
    if how == "same rows" and mean > 0:  # the worst of the cases
        assert effect[0, 1] < change + 0.01


def test_no_missing_cells_have_no_effect() -> None:
    units = TableUnits(("a", "b"), np.zeros(2), np.ones(2), np.ones(2))
    moments = TableMoments(np.ones(2), np.array([[1.0, 0.3], [0.3, 2.0]]))
    np.testing.assert_allclose(effect_of_missing_cells(moments, units, 0.0), 0.0, atol=1e-12)


def test_variance_that_missing_cells_explain_leaves_nothing_known() -> None:
    units = TableUnits(("a", "b"), np.zeros(2), np.ones(2), np.ones(2))
    moments = TableMoments(np.array([10.0, 0.0]), np.array([[1.0, 0.3], [0.3, 2.0]]))
    assert effect_of_missing_cells(moments, units, 0.05)[0, 1] == 1.0
