"""Numbers of several periods, and the test whether they changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import kstest

from gramercy.estimators.table_comparison import (
    CORRELATION,
    DEVIATION,
    MEAN,
    Measurements,
    change,
    changes,
    differences,
    is_in_own_units,
    measure,
    numbers,
    over_time,
)
from gramercy.estimators.uncertainty.entry_estimates import Bias
from gramercy.schemas.evidence import Evidence, NoiseTerm
from gramercy.schemas.noise import NoiseLaw
from tests.support.simulated_release import declared_columns, privately_scaled, released, series

BOUNDS = [(-10.0, 30.0), (0.0, 8.0), (-5.0, 5.0)]
MEANS, DEVIATIONS = np.array([10.0, 4.0, 0.0]), np.array([3.0, 1.0, 0.5])
ROOT = np.linalg.cholesky([[1.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 1.0]])


def period(seed: int, shift: float = 0.0, sd: float = 5e-5, rows: int = 3000) -> Evidence:
    """A release of Gaussian rows; the mean of the first column is shifted."""
    stream = np.random.default_rng(seed)
    table = stream.normal(size=(rows, 3)) @ ROOT.T * DEVIATIONS + MEANS
    table[:, 0] += shift
    return released(table, declared_columns(BOUNDS), radius=4.0, sd=sd, seed=seed + 1000)


def test_numbers_of_a_release_are_near_those_of_its_table() -> None:
    release = period(1)
    measured, lines = measure(release), numbers(release)
    assert lines["kind"].tolist() == [MEAN] * 3 + [DEVIATION] * 3 + [CORRELATION] * 3
    assert lines["other"].tolist()[6:] == ["2", "3", "3"]
    truth = np.concatenate([MEANS, DEVIATIONS, [0.6, 0.0, -0.3]])
    assert (np.abs(measured.estimate - truth) < 4 * measured.standard_error).all()
    assert (measured.lower < measured.estimate).all()
    assert (measured.estimate < measured.upper).all()
    wider = measure(release, 0.999)
    assert (wider.lower < measured.lower).all()


def test_what_noise_hides_is_unknown_and_not_tested() -> None:
    lost = measure(period(1, sd=1.0))
    assert np.isnan(lost.estimate).all()
    found = changes([lost, measure(period(2))])
    assert found["periods"].eq(1).all()
    assert found["p_value"].isna().all()
    unit = released(np.ones((5, 3)), declared_columns(BOUNDS), radius=None)
    assert not is_in_own_units(unit)


def test_changed_mean_is_found_and_nothing_else() -> None:
    periods = [measure(period(seed, shift=0.5 if seed == 3 else 0.0)) for seed in range(4)]
    found = changes(periods)
    assert found["adjusted"].idxmin() == 0
    assert found["adjusted"][0] < 1e-4
    assert (found["adjusted"][1:] > 0.05).all()


@pytest.mark.slow
def test_p_values_are_uniform_without_a_change() -> None:
    values = [changes([measure(period(7 * k + t)) for t in range(3)])["p_value"] for k in range(25)]
    mean, deviation, pair = np.array(values)[:, [0, 3, 6]].T
    for each in (mean, deviation, pair):
        assert kstest(each, "uniform").pvalue > 1e-3


def measurements(values: NDArray[np.float64]) -> Measurements:
    """The mean of a sample, with its standard error."""
    mean = np.array([values.mean()])
    error = np.array([values.std(ddof=1) / np.sqrt(values.size)])
    freedom = values.size - 1.0
    none = np.zeros_like(mean)
    return Measurements(mean, error, mean - error, mean + error, freedom, Bias.none(mean), none)


def test_test_is_the_analysis_of_variance_of_welch() -> None:
    """The value of SciPy 1.17: ``f_oneway(*samples, equal_var=False)``."""
    samples = [np.arange(1.0, 5.0), np.array([2.0, 5.0, 9.0]), 4 * np.arange(1.0, 6.0)]
    found = changes([measurements(each) for each in samples])
    assert found["p_value"][0] == pytest.approx(0.07616387685645586)


# The test whether a table changed between two releases.


ROWS, SD, COUNT_SD = 1000.0, 5.0, 20.0
SECOND = np.array([[1.0, 0.4, -0.2], [0.4, 0.8, 0.1], [-0.2, 0.1, 0.5]])


def noisy_release(seed: int, second: np.ndarray = SECOND) -> Evidence:
    """A noisy sum over a noisy number of rows."""
    stream = np.random.default_rng(seed)
    half = stream.normal(size=second.shape) * SD / np.sqrt(2)
    rows = ROWS + stream.normal() * COUNT_SD
    raw = (ROWS * second + half + half.T) / rows
    sds = {"sd_diagonal": SD * np.sqrt(2) / rows, "sd_off_diagonal": SD / rows}
    law = NoiseLaw(family="gaussian-isotropic", **sds)
    return Evidence(raw, raw, law, rows, unit=False, divisor="noisy", rows_sd=COUNT_SD)


def test_p_values_allow_for_noise_on_the_number_of_rows() -> None:
    """Entries are correlated through the number: a plain sum of squares would be too large."""
    found = [change(noisy_release(2 * k), noisy_release(2 * k + 1)) for k in range(400)]
    p_values = [each.p_value for each in found]
    assert kstest(p_values, "uniform").pvalue > 1e-3
    plain = [float((each.deviations[np.triu_indices(3)] ** 2).sum()) for each in found]
    assert np.std(plain) > 1.3 * np.sqrt(12)


def test_changed_moment_is_found() -> None:
    moved = SECOND.copy()
    moved[0, 1] = moved[1, 0] = 0.45
    found = change(noisy_release(1, moved), noisy_release(2))
    assert found.p_value == pytest.approx(0.0, abs=1e-8)
    assert np.unravel_index(np.abs(found.deviations).argmax(), (3, 3)) == (0, 1)


def test_few_rows_and_other_divisors_have_no_test() -> None:
    first, second = noisy_release(1), noisy_release(2)
    assert change(first, replace(second, rows=9 * COUNT_SD)).p_value is None
    assert change(first, replace(second, divisor="itself")).p_value is None


# Releases that clamp and clip at constants of their own.


def tailed(seed: int, rows: int) -> NDArray[np.float64]:
    """Columns with tails, a mostly zero one, and plain ones."""
    stream = np.random.default_rng(seed)
    base = stream.normal(size=(rows, 6)) + 0.7 * stream.normal(size=(rows, 1))
    heavy = base[:, :2] / np.sqrt(stream.chisquare(2.5, (rows, 1)) / 2.5)
    skewed = np.exp(1.5 * base[:, 2:3])
    zeros = np.where(base[:, 3:4] > 1.2, np.exp(base[:, 3:4]), 0.0)
    return np.column_stack([heavy, skewed, zeros, base[:, 4:]])


LIMITS = [(-300.0, 300.0)] * 2 + [(0.0, 5000.0), (0.0, 500.0)] + [(-20.0, 20.0)] * 2


def skewed(seed: int, rows: int) -> NDArray[np.float64]:
    """Incomes with zeros, gamma and Pareto columns, counts, and a plain one."""
    stream = np.random.default_rng(seed)
    base = 0.6 * stream.normal(size=rows)
    income = np.where(stream.random(rows) < 0.3, 0.0, np.exp(base + stream.normal(size=rows) + 9))
    few = stream.gamma(0.3, 50.0, rows) * np.exp(base)
    pareto = 10 * stream.random(rows) ** (-1 / 2.2)
    counts = stream.poisson(2.0 * np.exp(base))
    return np.column_stack([income, few, pareto, counts, 10 * base + stream.normal(50, 8, rows)])


OF_SKEWED = [(0.0, 2e6), (0.0, 5000.0), (0.0, 1e4), (0.0, 100.0), (0.0, 100.0)]


def years(
    table: NDArray[np.float64], seed: int, limits: Sequence[tuple[float, float]] = LIMITS
) -> dict[str, Evidence]:
    """A release with private constants of each quarter of the rows."""
    quarters = np.split(table, 4)
    releases = [
        privately_scaled(each, limits, 1.0, 10 * seed + k) for k, each in enumerate(quarters)
    ]
    return {str(2020 + k): each for k, each in enumerate(releases)}


@pytest.mark.slow
def test_a_table_that_is_split_at_random_has_not_changed() -> None:
    p_values = [
        over_time(years(tailed(seed, 40_000), seed)).changes["p_value"].dropna()
        for seed in range(3)
    ]
    tested = np.concatenate(p_values)
    assert tested.size > 60
    assert (tested < 0.001).sum() <= 1
    assert (tested < 0.05).mean() <= 0.06


@pytest.mark.slow
def test_years_of_skewed_columns_have_not_changed() -> None:
    """Every release clamps at bounds of its own, which `over_time` and `differences` know."""
    for seed in range(3):
        releases = years(skewed(seed + 40, 32_000), seed, OF_SKEWED)
        assert {each.columns for each in releases.values()} > {releases["2020"].columns}
        first, second, *_ = releases.values()
        found = differences(first, second).dropna(subset=["p_value"])
        assert len(found) > 10
        assert found["p_value"].min() > 0.01
        assert ((found["lower"] <= 0) & (found["upper"] >= 0)).all()
        assert over_time(releases).changes["p_value"].min() > 0.01


@pytest.mark.slow
def test_changes_of_several_errors_are_found_next_to_tails() -> None:
    table = tailed(1, 80_000)
    table[60_000:, 4] += 0.15
    table[60_000:, 5] *= 1.2
    found = over_time(years(table, 1)).changes
    changed = found[found["adjusted"] < 0.05]
    assert set(changed["column"]) == {"c4", "c5"}
    assert set(changed["kind"]) >= {MEAN, DEVIATION}


def quarters(table: NDArray[np.float64], seed: int) -> dict[str, Evidence]:
    """Releases of each quarter of the rows, with the constants of the first."""
    releases = series(np.split(table, 4), LIMITS, 1.0, seed)
    return {str(2020 + k): each for k, each in enumerate(releases)}


@pytest.mark.slow
def test_a_series_of_one_population_has_not_changed() -> None:
    """Releases with the constants of the first one: false alarms at their level."""
    p_values = [
        over_time(quarters(tailed(seed, 40_000), seed)).changes["p_value"].dropna()
        for seed in range(3)
    ]
    tested = np.concatenate(p_values)
    assert tested.size > 60
    assert (tested < 0.001).sum() <= 1
    assert (tested < 0.05).mean() <= 0.1


@pytest.mark.slow
def test_small_changes_of_the_population_are_found_in_a_series_with_common_constants() -> None:
    """Smaller ones than where each release has constants, and so a bias, of its own."""
    table = tailed(1, 80_000)
    table[60_000:, 4] += 0.06
    found, private = (each(table, 1) for each in (quarters, years))
    of_one, own = (
        over_time(each).changes.query("kind == 'mean' and column == 'c4'")
        for each in (found, private)
    )
    assert of_one["one_population"].item() < 0.01 < own["one_population"].item()


def unlike_tails(seed: int) -> tuple[Evidence, Evidence]:
    """Releases, most of which clip alike; the first column has the same mean and other tails."""
    stream, rows = np.random.default_rng(seed), 40_000
    base = stream.normal(size=(2, rows, 4))
    base[:, :, 0] = stream.gamma(1.0, 10.0, (2, rows))
    base[1, :, 0] = stream.gamma(4.0, 2.5, rows)
    base[:, :, 1] = np.exp(base[:, :, 1] + 0.05 * base[:, :, 0])
    base[1, :, 2] += 0.2
    first, second = series([*base], [(0.0, 400.0), (0.0, 3000.0), *[(-20.0, 20.0)] * 2], 1.0, seed)
    return first, second


@pytest.mark.slow
def test_p_values_are_small_where_intervals_are_without_zero() -> None:
    """Also where both releases clip alike; the test of one population is of clipped rows."""
    for seed in (2, 5, 6):
        for level in (0.6, 0.95):
            found = differences(*unlike_tails(seed), level)
            without_zero = (found["lower"] > 0) | (found["upper"] < 0)
            np.testing.assert_array_equal(without_zero, found["p_value"] < 1 - level)
        p_values = found[found["kind"] == MEAN].set_index("column")
        assert p_values.loc["c0", "one_population"] < 0.05 < p_values.loc["c0", "p_value"]
        assert p_values.loc["c2", "p_value"] < 0.01


@pytest.mark.slow
def test_releases_that_were_clipped_in_different_metrics_have_no_common_bias() -> None:
    table = tailed(1, 80_000)
    table[60_000:, 4] += 0.06
    first, *_, last = quarters(table, 1).values()
    turned = replace(first, terms=(NoiseTerm(first.law, np.eye(len(first.raw)) + 1e-9),))
    alike, unlike = (
        differences(each, last).query("kind == 'mean' and column == 'c4'")["one_population"].item()
        for each in (first, turned)
    )
    assert alike < 0.1
    assert unlike > 0.3


@pytest.mark.slow
def test_series_states_the_numbers_of_its_releases() -> None:
    """Only the test is of clipped rows."""
    releases = quarters(tailed(2, 40_000), 2)
    stated = over_time(releases).series.query("period == '2022'")
    assert np.allclose(stated["estimate"], measure(releases["2022"]).estimate, equal_nan=True)
    found = differences(releases["2020"], releases["2022"])
    assert np.allclose(found["second"], measure(releases["2022"]).estimate, equal_nan=True)


@pytest.mark.slow
def test_difference_of_two_halves_allows_for_their_bias() -> None:
    table = tailed(3, 40_000)
    halves = [
        privately_scaled(each, LIMITS, 1.0, seed) for seed, each in enumerate(np.split(table, 2))
    ]
    found = differences(*halves).dropna(subset=["p_value"])
    assert len(found) > 20
    assert (found["lower"] <= 0).mean() > 0.95
    assert (found["upper"] >= 0).mean() > 0.95
    heavy = found[(found["kind"] == DEVIATION) & (found["column"] == "c0")].iloc[0]
    assert heavy["upper"] - heavy["lower"] > 4 * 1.96 * heavy["standard_error"]


@pytest.mark.slow
def test_signs_are_not_compared_with_values() -> None:
    release = privately_scaled(tailed(5, 10_000), LIMITS, 1.0)
    found = differences(release, replace(release, signs=("c3",)))
    of_sign = found[(found["column"] == "c3") | (found["other"] == "c3")]
    assert of_sign["p_value"].isna().all()
    assert found.drop(of_sign.index)["p_value"].notna().all()


@pytest.mark.slow
def test_unknown_bias_explains_differences_between_other_constants() -> None:
    table = tailed(6, 20_000)
    table[10_000:, 0] *= 3
    one, two, three = (
        privately_scaled(each, LIMITS, 1.0) for each in (*np.split(table, 2), tailed(7, 10_000))
    )
    plain = replace(two, lost=None)
    assert one.columns != plain.columns
    unknown = differences(one, plain)
    heavy = unknown["column"].eq("c0") & unknown["kind"].ne(MEAN)
    assert unknown[heavy]["p_value"].dropna().gt(0.999).all()
    same = differences(plain, replace(two, lost=None))
    assert np.allclose(same["difference"].dropna(), 0.0)
    together = {"a": replace(three, lost=None), "b": plain, "c": plain}
    # The two with equal constants are compared as they are; the third, within its bound.
    assert over_time(together).changes["periods"].eq(3).any()
    unit = replace(plain, unit=True, radius=None)
    assert differences(unit, replace(three, unit=True, radius=None))["p_value"].isna().all()
