"""Pools of releases that publish what clipping took away: bias, caveats and shares of levels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from gramercy.estimators import registry
from gramercy.estimators.accuracy.clipped_accuracy import ClippedAccuracy
from gramercy.estimators.caveats import caveats
from gramercy.estimators.lost_moments import clipped_moments
from gramercy.estimators.pooling.pool import pooled
from gramercy.estimators.released_table import ReleasedTable
from gramercy.estimators.table_comparison import changes, measure
from gramercy.estimators.uncertainty.entries import correlation
from gramercy.estimators.uncertainty.table_entries import table_deviations, table_means
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import LevelsFacts
from tests.support.private_release import level_column, numeric_columns
from tests.support.private_release import privately_scaled as scaled_table
from tests.support.simulated_release import privately_scaled, units_of

Array = NDArray[np.float64]
ROWS = 20_000
BOUNDS = [(-300.0, 300.0)] * 5


def long_tailed(seed: int) -> Array:
    """Five correlated columns with Student's t distribution of three degrees of freedom."""
    stream = np.random.default_rng(seed)
    shared = stream.normal(size=(ROWS, 1))
    cells = 0.6 * shared + 0.8 * stream.normal(size=(ROWS, 5))
    return np.asarray(cells / np.sqrt(stream.chisquare(3, (ROWS, 1)) / 3))


def releases(table: Array, *seeds: int) -> list[Evidence]:
    return [privately_scaled(table, BOUNDS, 1.0, seed) for seed in seeds]


def missed(pool: Evidence, table: Array) -> list[float]:
    """Shares of means, standard deviations and correlations of the table that intervals miss."""
    units = units_of(pool)
    entries = table_means(pool, units), table_deviations(pool, units), correlation(pool)
    truth = table.mean(axis=0), table.std(axis=0), np.corrcoef(table.T)
    result = []
    for each, value in zip(entries, truth, strict=True):
        lower, upper = each.interval(0.95, "table")
        result.append(float(((value < lower - 1e-9) | (value > upper + 1e-9)).mean()))
    return result


@pytest.mark.slow
def test_pool_covers_what_its_releases_clipped() -> None:
    one, other = long_tailed(1), long_tailed(2)
    twice, _ = pooled(releases(one, 1, 2), same_rows=True)
    assert max(missed(twice, one)) <= 0.2
    apart = releases(one, 3) + releases(other, 4)
    both, _ = pooled(apart, same_rows=False)
    assert max(missed(both, np.vstack([one, other]))) <= 0.2


@pytest.mark.slow
@pytest.mark.parametrize("same_rows", [True, False])
def test_intervals_of_a_pool_are_not_wider_than_the_best_ones(same_rows: bool) -> None:
    """Nearly: bounds on what is not known of the bias are not the same below and above."""
    own = []
    for seed in range(2):
        stream = np.random.default_rng(0 if same_rows else seed)
        cells = stream.normal(size=(4000, 4)) + 0.7 * stream.normal(size=(4000, 1))
        table = np.column_stack([cells, np.exp(2 * stream.normal(size=4000))])
        own += [privately_scaled(table, [(-10.0, 10.0)] * 4 + [(0.0, 1e6)], 0.5, seed)]
    both, _ = pooled(own, same_rows=same_rows)
    first, second, pool = (each.upper - each.lower for each in map(measure, (*own, both)))
    assert (pool <= 1.1 * np.fmin(first, second)).all()


@pytest.mark.slow
def test_bias_of_a_pool_does_not_shrink_with_the_releases() -> None:
    own = releases(long_tailed(1), 1, 2, 3, 4)
    pool, _ = pooled(own, same_rows=True)
    found = [(units_of(each).scale, clipped_moments(each)) for each in (pool, *own)]
    bias = [(scale * each.mean_bias, each.correlation_bias) for scale, each in found if each]
    assert len(bias) == 5
    for of_pool, *of_releases in zip(*bias, strict=True):
        assert (of_pool >= 0.999 * np.min(of_releases, axis=0)).all()
        assert (of_pool <= 1.001 * np.max(of_releases, axis=0)).all()
    noise = [scale * each.mean_noise for scale, each in found if each]
    assert noise[0].mean() < 0.8 * np.mean(noise[1:])


@pytest.mark.slow
def test_units_of_the_pool_do_not_matter() -> None:
    pair = releases(long_tailed(1), 1, 2)
    first, second = (pooled(pair, same_rows=True, units_of=k)[0] for k in (0, 1))
    assert first.columns != second.columns
    for found in (table_means, table_deviations):
        one, other = (
            found(each, units_of(each)).interval(0.95, "table") for each in (first, second)
        )
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(correlation(first).estimate, correlation(second).estimate, atol=1e-9)
    # What was lost, in the columns' own units and relative to the rows.
    lost = [
        moments.lost.second * np.outer(scale, scale)
        for each in (first, second)
        if (moments := clipped_moments(each))
        for scale in [units_of(each).scale]
    ]
    spread = table_deviations(first, units_of(first)).estimate
    assert len(lost) == 2
    assert np.abs((lost[0] - lost[1]) / np.outer(spread, spread)).max() < 0.02


@pytest.mark.slow
def test_pools_of_one_population_seldom_differ() -> None:
    pools = []
    for seed in range(3):
        table = long_tailed(10 + seed)
        pools.append(pooled(releases(table, 2 * seed, 2 * seed + 1), same_rows=True)[0])
    found = changes([measure(each) for each in pools])
    assert found["p_value"].min() > 1e-3


@pytest.mark.slow
def test_pool_has_the_caveats_and_the_verdict_of_its_releases() -> None:
    pair = releases(long_tailed(1), 1, 2)
    pool, _ = pooled(pair, same_rows=True)
    own = [{(each.kind, each.column) for each in caveats(one)} for one in pair]
    of_pool = caveats(pool)
    assert {(each.kind, each.column) for each in of_pool} <= own[0] | own[1]
    assert [each.kind for each in of_pool if each.column is None] == ["hidden rows"]
    named = replace(pool, pooled=tuple(replace(each, name="a/v1-r1") for each in pool.pooled))
    hidden = [each for each in caveats(named) if each.kind == "hidden rows"]
    assert [each.release for each in hidden] == ["a/v1-r1"]
    assert hidden[0].described()["release"] == "a/v1-r1"
    verdicts = [ClippedAccuracy.of(each) for each in (*pair, pool)]
    assert all(each is not None for each in verdicts)
    apart, _ = pooled(releases(long_tailed(1), 3) + releases(long_tailed(2), 4), same_rows=False)
    assert ClippedAccuracy.of(apart) is not None


def test_column_of_which_one_release_publishes_only_signs_is_unknown() -> None:
    table = np.random.default_rng(5).normal(size=(ROWS, 4))
    table[:, 0] = np.where(np.arange(ROWS) % 500 == 0, 9e4, 0.0)
    bounds = [(0.0, 1e5), *[(-5.0, 5.0)] * 3]
    sign, seen = (privately_scaled(table, bounds, epsilon, 1) for epsilon in (0.5, 20.0))
    assert sign.signs == ("c0",)
    assert not seen.signs
    pool, _ = pooled([sign, seen], same_rows=True)
    assert not table_deviations(pool, units_of(pool)).estimable[0]
    known = correlation(pool).estimable
    assert not known[0, 1:].any()
    assert known[1:, 1:].all()


def test_levels_of_a_pool_are_the_average_of_all_histograms() -> None:
    stream = np.random.default_rng(6)
    table = np.column_stack([stream.normal(size=(ROWS, 3)), stream.integers(0, 3, ROWS)])
    facts = (*numeric_columns([(-5.0, 5.0)] * 3), level_column("ward", 3))
    pair = []
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        scaled = scaled_table(table, facts, 1.0, rng)
        assert scaled is not None
        pair.append(scaled.release(rng))
    for same_rows in (True, False):
        pool, weights = pooled(pair, same_rows=same_rows)
        (ward,) = {each for each in pool.columns if isinstance(each, LevelsFacts)}
        own = [ReleasedTable(each).levels(ward) for each in pair]
        found = ReleasedTable(pool).levels(ward)
        expected = np.tensordot(weights, [each.value for each in own], 1)
        np.testing.assert_allclose(found.value, expected, rtol=1e-9)
        assert (found.noise_error < 0.8 * own[0].noise_error).all()
        np.testing.assert_allclose(table_means(pool, units_of(pool)).estimate[3:], found.value[:-1])


@pytest.mark.parametrize("same_rows", [True, False])
def test_pool_with_a_release_without_lost_moments_does_not_have_them(same_rows: bool) -> None:
    one, other = releases(long_tailed(1), 1, 2)
    pool, _ = pooled([one, replace(other, lost=None)], same_rows=same_rows)
    assert clipped_moments(pool) is None


@pytest.mark.slow
def test_cells_that_are_missing_together_do_not_bias_analyses_of_a_pool() -> None:
    stream = np.random.default_rng(7)
    shared = stream.normal(size=(ROWS, 1))
    table = 0.7 * shared + np.sqrt(0.51) * stream.normal(size=(ROWS, 5))
    truth = np.linalg.lstsq(table[:, :4], table[:, 4], rcond=None)[0]
    holes = table.copy()
    holes[np.ix_(stream.random(ROWS) < 0.5, [2, 3, 4])] = np.nan
    pair = [privately_scaled(holes, [(-5.0, 5.0)] * 5, 2.0, seed) for seed in (1, 2)]
    assert all(each.missing is not None for each in pair)
    pool, _ = pooled(pair, same_rows=True)
    fitted = registry["regression"](formula="c4 ~ c0 + c1 + c2 + c3").fit(pool)
    lines = fitted.tables["coefficients"].set_index("term").iloc[1:]
    np.testing.assert_allclose(lines["coefficient"], truth, atol=0.06)
    found = correlation(pool).estimate
    np.testing.assert_allclose(found, np.corrcoef(table.T), atol=0.05)
    known = {"hidden rows", "hidden cells", "clamped", "missing"}
    assert {each.kind for each in caveats(pool)} <= known
