"""Noise and bias of correlations: predictions from a release against the rows themselves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from gramercy.estimators.accuracy.clipped_means import clamped_columns
from gramercy.estimators.accuracy.correlation_accuracy import (
    CorrelationAccuracy,
    ScaledMoments,
    correlation_accuracy,
    row_weight,
)
from gramercy.estimators.accuracy.row_simulation import (
    Marginal,
    Normalisation,
    before_and_after,
    copula,
    one_factor_rows,
    seen,
    student,
    with_tails,
)
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from tests.support.histogram_tables import histogram
from tests.support.simulated_release import declared_columns, privately_scaled, released

pytestmark = pytest.mark.slow

Array = NDArray[np.float64]
WIDE = 200.0
P = 8
PAIRS = np.triu_indices(P, 1)


def factor_table(rows: int = 20_000, p: int = P, seed: int = 1) -> Array:
    """Gaussian rows with correlations from 0.2 to 0.8."""
    stream = np.random.default_rng(seed)
    loads = np.linspace(0.45, 0.9, p)
    common = stream.normal(size=(rows, 1)) * loads
    return np.asarray(common + stream.normal(size=(rows, p)) * np.sqrt(1 - loads**2))


def unit_columns(p: int = P, reach: float = WIDE, centre: float = 0.0) -> list:  # type: ignore[type-arg]
    """Columns with scale 1, and bounds far from the data."""
    columns = declared_columns([(-reach, reach)] * p)
    return [c.model_copy(update={"scale": 1.0, "centre": centre}) for c in columns]


def accuracy_of(evidence: Evidence) -> CorrelationAccuracy:
    accuracy = correlation_accuracy(evidence)
    assert accuracy is not None
    return accuracy


def actual_bias(evidence: Evidence, table: Array) -> Array:
    """Correlations of a release without noise, minus those of the table."""
    moments = ScaledMoments.of(evidence)
    assert moments is not None
    scale = np.sqrt(np.diag(moments.released))
    return np.asarray(moments.released / np.outer(scale, scale) - np.corrcoef(table.T))


def root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_bias_of_unit_rows_is_predicted_pair_by_pair_for_gaussian_rows(mean: float) -> None:
    table = factor_table() * np.linspace(0.5, 2.0, P) + mean
    evidence = released(table, unit_columns(), None)
    actual = actual_bias(evidence, table)
    assert root_mean_square(actual[PAIRS]) > 0.02  # unit rows do change these correlations
    predicted = accuracy_of(evidence).bias["gaussian"]
    np.testing.assert_allclose(predicted, actual, atol=0.02)


@pytest.mark.parametrize("radius", [2.0, 3.0, 6.0])
def test_bias_of_clipped_heavy_tails_is_covered_and_not_exaggerated(radius: float) -> None:
    table = np.exp(1.2 * factor_table()) / 2
    evidence = released(table, unit_columns(centre=float(table.mean())), radius)
    actual = root_mean_square(actual_bias(evidence, table)[PAIRS])
    predicted = accuracy_of(evidence).typical_bias
    assert 0.8 * actual < predicted < 4 * actual + 0.02


def test_rows_within_the_radius_have_no_bias_but_that_of_missing_cells() -> None:
    evidence = released(factor_table(), unit_columns(), 1e3)
    accuracy = accuracy_of(evidence)
    for name in ("gaussian", "t", "lognormal", "some-lognormal"):
        assert np.abs(accuracy.bias[name]).max() < 0.01
    correlation = np.corrcoef(factor_table().T)
    shrunk = -0.05 * (correlation - np.eye(P))
    np.testing.assert_allclose(accuracy.bias["missing"], shrunk, atol=0.003)
    assert accuracy.lost_share == 0
    assert accuracy.typical_noise < 2e-3


def test_mean_weight_tells_heavy_tails_from_light_ones() -> None:
    light = factor_table()
    heavy = light / np.sqrt(np.random.default_rng(2).chisquare(3, size=(len(light), 1)) / 3)
    biases = [accuracy_of(released(each, unit_columns(), 6.0)).bias for each in (light, heavy)]
    of_light, of_heavy = (root_mean_square(each["t"][PAIRS]) for each in biases)
    assert of_light < 0.01 < of_heavy


def test_noise_of_correlations_agrees_with_redraws() -> None:
    table, sd = factor_table(), 1e-4
    predicted = accuracy_of(released(table, unit_columns(), 6.0, sd)).noise
    drawn = []
    for seed in range(30):
        moments = ScaledMoments.of(released(table, unit_columns(), 6.0, sd, seed=seed))
        assert moments is not None
        scale = np.sqrt(np.diag(moments.released))
        drawn.append(moments.released / np.outer(scale, scale))
    ratio = np.std(drawn, axis=0)[PAIRS] / predicted[PAIRS]
    assert 0.9 < root_mean_square(ratio) < 1.1


def test_pairs_within_the_noise_are_lost() -> None:
    table = factor_table()
    table[:, 0] *= 0.05  # its variance is that of the noise
    accuracy = accuracy_of(released(table, unit_columns(), 6.0, 1e-3))
    assert not accuracy.pairs[0].any()
    assert accuracy.lost_share == pytest.approx(2 / P)
    assert np.isfinite(accuracy.typical_error)


def test_means_that_are_off_the_centres_are_a_possible_error_without_an_intercept() -> None:
    stream = np.random.default_rng(3)
    table = stream.normal(size=(20_000, P)) + 2.0  # uncorrelated, but far from the centre
    evidence = released(table, unit_columns(), None, intercept=False)
    accuracy = accuracy_of(evidence)
    true_error = root_mean_square(actual_bias(evidence, table)[PAIRS])
    assert true_error > 0.7
    assert accuracy.error_if_centres_are_off == pytest.approx(true_error, abs=0.02)
    assert accuracy.leading_share > 0.7
    with_intercept = accuracy_of(released(table, unit_columns(), None))
    assert with_intercept.error_if_centres_are_off == 0


def test_jointly_missing_cells_are_covered() -> None:
    table = factor_table()
    gaps = table + 1.0
    gaps[np.random.default_rng(4).random(len(table)) < 0.4] = np.nan
    present = (1.0, *np.mean(~np.isnan(gaps), axis=0))
    evidence = released(gaps, unit_columns(), 1e3, present=present)
    actual = actual_bias(evidence, table)
    assert np.abs(actual).max() > 0.5  # as if missing independently
    predicted = accuracy_of(evidence).bias["missing"]
    np.testing.assert_allclose(predicted, actual, atol=0.03)


def test_published_histograms_give_the_laws() -> None:
    table = np.exp(factor_table())
    evidence = privately_scaled(table, [(0.0, 1000.0)] * P, 4.0)
    accuracy = accuracy_of(evidence)
    assert accuracy.bias.keys() == {"marginals", "marginals-t", "missing"}
    error = root_mean_square(actual_bias(evidence, table)[PAIRS])
    assert 0.5 * error < accuracy.typical_error < 0.25
    again = accuracy_of(evidence)
    np.testing.assert_array_equal(again.bias["marginals-t"], accuracy.bias["marginals-t"])


def private_tables() -> dict[str, Array]:
    """Rows with short tails, with long ones of their own, and with long ones together."""
    cells = factor_table(40_000)
    together = np.random.default_rng(6).chisquare(5, size=(len(cells), 1)) / 5
    one = cells.copy()
    one[:, ::4] = np.exp(0.9 * one[:, ::4])
    return {
        "gaussian": cells,
        "uniform": 1 / (1 + np.exp(-1.5 * cells)),
        "lognormal": np.exp(0.5 * cells),
        "some-lognormal": one,
        "t": cells / np.sqrt(together),
    }


def weights_of(evidence: Evidence, table: Array) -> tuple[float, Array]:
    """The mean weight of the rows, and what clipping them does to their correlations."""
    columns = [each for each in evidence.columns if each is not None]
    low, high, centre, scale = np.array(
        [(each.lower, each.upper, each.centre, each.scale) for each in columns]  # type: ignore[union-attr]
    ).T
    cells = (np.clip(table, low, high) - centre) / scale
    both = before_and_after(cells, Normalisation(evidence.radius, True, np.array([low, high]) * 9))
    return both.mean_weight, both.normalised - both.correlation


@pytest.mark.parametrize("kind", list(private_tables()))
def test_bias_of_private_scaling_is_that_of_its_rows(kind: str) -> None:
    """With noise of epsilon 1, which hides every tail."""
    table = private_tables()[kind]
    low, high = table.min(axis=0), table.max(axis=0)
    bounds = list(zip(low - (high - low), high + (high - low), strict=True))
    predicted, actual = [], []
    for seed in range(2):
        evidence = privately_scaled(table, bounds, 1.0, seed)
        weight, bias = weights_of(evidence, table)
        estimate = row_weight(evidence, 1)
        assert estimate is not None
        assert abs(estimate - weight) < 0.004
        actual.append(root_mean_square(bias[PAIRS]))
        predicted.append(accuracy_of(evidence).typical_bias)
    assert np.mean(actual) / 3 < np.mean(predicted) < 3 * np.mean(actual) + 0.004


def test_columns_whose_tails_are_cut_are_known() -> None:
    table = factor_table(40_000)
    bounds = [(-20.0, 20.0)] * P
    assert accuracy_of(privately_scaled(table, bounds, 2.0)).spread.max() < 1.05
    table[:, ::2] = np.exp(1.6 * table[:, ::2])
    bounds[::2] = [(0.0, 3000.0)] * (P // 2)
    evidence = privately_scaled(table, bounds, 2.0)
    moments = ScaledMoments.of(evidence)
    assert moments is not None
    scales = [each.scale for each in moments.facts if isinstance(each, ColumnFacts)]
    actual = table.std(axis=0) / scales / np.sqrt(moments.variance)
    assert actual[::2].min() > 1.3
    releases = [privately_scaled(table, bounds, 2.0, seed) for seed in range(3)]
    spreads = np.median([accuracy_of(each).spread for each in releases], axis=0)
    assert spreads[::2].min() > 1.1
    assert spreads[1::2].max() < 1.05


def test_rows_that_are_clipped_without_an_intercept_have_a_bias() -> None:
    table = factor_table() * np.linspace(0.5, 2.0, P)
    evidence = released(table, unit_columns(), 4.0, intercept=False)
    actual = actual_bias(evidence, table)
    assert root_mean_square(actual[PAIRS]) > 0.02
    np.testing.assert_allclose(accuracy_of(evidence).bias["gaussian"], actual, atol=0.02)


def test_histogram_ends_at_a_gap() -> None:
    edges = np.arange(-6.0, 7.0)
    counts = np.array([9.0, 0, 1, 8, 0, 9, 0, 50, 0, 9, 1, 0.0])
    expected = np.array([0.0, 0, 0, 8, 0, 9, 0, 50, 0, 9, 0, 0])
    np.testing.assert_array_equal(seen(edges, counts, 2.0), expected)
    spread = seen(edges, counts, 2.0, body=5.0)
    assert spread[0] == 9  # near zero, values may be few and far apart


def test_histogram_is_continued_by_its_own_power() -> None:
    edges = np.concatenate([np.linspace(-1.0, 1.0, 9), 2.0 ** np.arange(1, 12)])
    reached = np.maximum(edges, 1.0) ** -1.5
    pareto = reached[:-1] - reached[1:]
    weights = pareto.copy()
    weights[:8] = 1.0
    cut = np.where(edges[:-1] < 16, weights, 0.0)
    continued = with_tails(edges, cut, hidden=1.0)
    np.testing.assert_allclose(continued[:12], cut[:12])
    beyond = edges[:-1] >= 16
    np.testing.assert_allclose(continued[beyond], pareto[beyond], rtol=0.1)
    mirrored = with_tails(-edges[::-1], cut[::-1], hidden=1.0)
    np.testing.assert_allclose(mirrored[::-1], continued)
    assert with_tails(edges, cut, hidden=1e-4)[beyond].max() == 1e-4


def test_gaussian_histogram_is_hardly_continued() -> None:
    edges = np.concatenate([np.linspace(-4.0, 4.0, 65), 2.0 ** np.arange(3, 12)])
    cells = np.random.default_rng(0).normal(size=100_000)
    weights = np.histogram(cells, edges)[0].astype(float)
    weights[weights < 100] = 0
    continued = with_tails(edges, weights, hidden=100)
    assert 0 < (continued - weights).sum() < 0.03 * weights.sum()
    middles = (edges[:-1] + edges[1:]) / 2
    assert continued @ middles**2 / continued.sum() == pytest.approx(1.0, abs=0.15)


def test_copula_has_the_marginals() -> None:
    cells = one_factor_rows(3, 0.5)
    marginal = Marginal(np.array([0.0, 1.0, 5.0]), np.array([3.0, 1.0]), np.zeros(2))
    for degrees in (None, 4.0):
        drawn = copula((marginal, None, marginal), degrees)(cells)
        assert (drawn[:, 0] < 1).mean() == pytest.approx(0.75, abs=0.02)
        assert np.corrcoef(drawn.T)[0, 2] > 0.2
    heavy = student(4.5)(cells)
    assert np.std(heavy) == pytest.approx(1, abs=0.1)
    assert np.mean(heavy**4) > 5


def test_rows_of_a_person_are_weighted_together() -> None:
    rows = np.array([[3.0, 0.0], [0.0, 4.0], [0.1, 0.1], [0.0, 0.1]])
    limits = np.array([[-9.0, -9.0], [9.0, 9.0]])
    alone = Normalisation(5.0, False, limits)
    np.testing.assert_allclose(alone.weights(rows), 1.0)
    together = Normalisation(2.5, False, limits, rows_per_person=2)
    np.testing.assert_allclose(together.weights(rows), [0.25, 0.25, 1.0, 1.0])
    unit = Normalisation(None, True, limits, rows_per_person=2)
    np.testing.assert_allclose(unit.weights(rows)[:2], 1 / 27)
    assert before_and_after(rows, alone).mean_weight == 1.0


def test_levels_are_simulated_as_indicators() -> None:
    stream = np.random.default_rng(5)
    table = factor_table()
    table[:, 0] = stream.random(len(table)) < 0.1
    columns = unit_columns()
    evidence = released(table, columns, None)
    levels = LevelsFacts(name="ward", levels=("A",))
    object.__setattr__(evidence, "columns", (None, levels, *columns[1:]))
    actual = actual_bias(evidence, table)
    np.testing.assert_allclose(accuracy_of(evidence).bias["gaussian"], actual, atol=0.03)


def test_one_column_has_no_correlations() -> None:
    table = factor_table()[:, :1]
    assert correlation_accuracy(released(table, unit_columns(1), 3.0)) is None
    lost = released(factor_table(), unit_columns(), 3.0, sd=1.0)
    assert correlation_accuracy(lost) is None


# Columns whose long tails reach beyond the bounds of private constants are named.


N, SD, SCALE, WINSOR = 20_000, 60.0, 1.0, 8.0


def fine_and_octaves(limit: float = 2.0**30) -> NDArray[np.float64]:
    """Edges of the last stage: equal bins near the centre, octaves beyond, up to a limit."""
    octaves = 4.0 * 2.0 ** np.arange(1, 40)
    octaves = np.append(octaves[octaves < limit], limit)
    return np.concatenate([-octaves[::-1], np.linspace(-4, 4, 65), octaves])


def evidence(cells: NDArray[np.float64], edges: NDArray[np.float64], seed: int) -> Evidence:
    column = ColumnFacts(
        name="x",
        lower=max(-WINSOR, float(edges[0])),
        upper=min(WINSOR, float(edges[-1])),
        centre=0.0,
        scale=SCALE,
    )
    made = histogram(cells, edges, SD, np.random.default_rng(seed))
    facts: Any = SimpleNamespace(columns=(None, column), marginals=(made,))
    return cast(Evidence, facts)


def named(cells: NDArray[np.float64], edges: NDArray[np.float64]) -> float:
    """How often the column is named."""
    return float(np.mean([clamped_columns(evidence(cells, edges, k)) == ("x",) for k in range(60)]))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_long_tail_is_named(sign: float) -> None:
    cells = sign * np.exp(1.5 * np.random.default_rng(1).normal(size=N))
    assert named(cells, fine_and_octaves()) == 1


def test_codes_for_missing_values_are_named() -> None:
    stream = np.random.default_rng(2)
    cells = np.where(stream.random(N) < 0.06, -9.0, stream.normal(size=N))
    assert named(cells, fine_and_octaves()) == 1


def test_noise_alone_is_rarely_named() -> None:
    cells = np.random.default_rng(3).normal(size=N)
    assert named(cells, fine_and_octaves()) <= 0.1


def test_bounds_of_the_contract_clamp_the_histogram_as_well() -> None:
    """The steward chose them, and the quantiles are those of the same clamped cells."""
    cells = np.exp(1.5 * np.random.default_rng(4).normal(size=N))
    assert named(cells, fine_and_octaves(limit=7.0)) == 0
