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
)
from gramercy.estimators.accuracy.row_simulation import (
    Normalisation,
    before_and_after,
)
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from tests.support.histogram_tables import histogram
from tests.support.simulated_release import declared_columns, released

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


def test_rows_that_are_clipped_without_an_intercept_have_a_bias() -> None:
    table = factor_table() * np.linspace(0.5, 2.0, P)
    evidence = released(table, unit_columns(), 4.0, intercept=False)
    actual = actual_bias(evidence, table)
    assert root_mean_square(actual[PAIRS]) > 0.02
    np.testing.assert_allclose(accuracy_of(evidence).bias["gaussian"], actual, atol=0.02)


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
