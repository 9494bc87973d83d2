"""Means and standard deviations of columns whose tails are beyond the clamps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from gramercy.estimators.column_tails import ColumnTails
from gramercy.estimators.table_units import table_units
from gramercy.estimators.uncertainty.table_entries import table_deviations, table_means
from gramercy.schemas.facts import ColumnFacts
from tests.support.private_release import numeric_columns
from tests.support.private_release import privately_scaled as in_memory
from tests.support.simulated_release import privately_scaled, series

Array = NDArray[np.float64]


def lognormal_table(rows: int = 20_000) -> tuple[Array, list[tuple[float, float]]]:
    """Three columns with longer and longer tails, two Gaussian ones, one that is mostly zero."""
    cells = np.random.default_rng(4).normal(size=(rows, 6))
    cells[:, :3] = np.exp(cells[:, :3] * np.array([1.0, 1.5, 2.0]))
    cells[:, 5] = np.where(cells[:, 5] > 0.8, np.exp(2 * cells[:, 4] + cells[:, 0] / 9), 0)
    largest = [10.0 ** np.ceil(np.log10(each)) for each in np.abs(cells).max(axis=0)]
    return cells, [(-each if each < 100 else 0.0, each) for each in largest]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_intervals_contain_the_moments_of_cells_that_are_clamped(epsilon: float) -> None:
    table, bounds = lognormal_table()
    means, deviations = table.mean(axis=0), table.std(axis=0)
    covered, clamped = [], []
    for seed in range(4):
        evidence = privately_scaled(table, bounds, epsilon, seed)
        units = table_units(evidence)
        assert units is not None
        of_means, of_deviations = table_means(evidence, units), table_deviations(evidence, units)
        for entries, actual in ((of_means, means), (of_deviations, deviations)):
            low, high = entries.interval(0.95, "table")
            covered += ((low <= actual) & (actual <= high)).tolist()
        facts = [each for each in evidence.columns if isinstance(each, ColumnFacts)]
        uppers = [each.upper for each in facts]
        clamped += (np.minimum(table, uppers).std(axis=0) < 0.9 * deviations).tolist()
    assert sum(clamped) >= 8  # much is beyond the clamps
    assert np.mean(covered) >= 0.85


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_later_release_with_the_same_constants_has_the_tails_of_the_first(epsilon: float) -> None:
    table, bounds = lognormal_table(40_000)
    later = table[20_000:]
    covered = []
    for seed in range(4):
        _, evidence = series([table[:20_000], later], bounds, epsilon, seed)
        assert not evidence.marginals
        units = table_units(evidence)
        assert units is not None
        entries = (table_means(evidence, units), table_deviations(evidence, units))
        for each, actual in zip(entries, (later.mean(axis=0), later.std(axis=0)), strict=True):
            low, high = each.interval(0.95, "table")
            covered += ((low <= actual) & (actual <= high)).tolist()
        tails = ColumnTails.of(evidence)
        assert tails.square_most.max() > 0.2
        assert not ColumnTails.of(replace(evidence, tails={})).square_most.any()
    assert np.mean(covered) >= 0.85


def test_intervals_of_short_tails_stay_short() -> None:
    table = np.random.default_rng(3).normal(size=(20_000, 6))
    evidence = privately_scaled(table, [(-50.0, 50.0)] * 6, 1.0)
    units = table_units(evidence)
    assert units is not None
    for entries in (table_means(evidence, units), table_deviations(evidence, units)):
        low, high = entries.interval(0.95, "table")
        assert (high - low).max() / 2 < 0.06


def test_only_tails_that_may_reach_beyond_the_clamps_count() -> None:
    table, bounds = lognormal_table()
    tails = ColumnTails.of(privately_scaled(table, bounds, 4.0))
    assert tails.square_most[2] > 0.2
    assert (tails.square[:3] <= tails.square_most[:3]).all()
    assert tails.square_most[3:5].max() < 0.05
    assert np.abs(tails.mean[3:5]).max() < 0.01
    table, bounds = np.random.default_rng(5).uniform(-1, 1, size=(20_000, 4)), [(-1.0, 1.0)] * 4
    assert not ColumnTails.of(privately_scaled(table, bounds, 1.0)).square_most.any()


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_a_bin_may_have_no_width_in_scaled_units(epsilon: float) -> None:
    rng = np.random.default_rng(8)
    cells = rng.normal(size=(20_000, 4))
    number = rng.poisson(0.5, size=20_000)  # zero is a narrow bin, even about the centre
    cells[:, :2] = np.column_stack([number, number * np.round(np.exp(6 + cells[:, 0]))])
    scaled = in_memory(cells, numeric_columns([None] * 4), epsilon, rng)
    assert scaled is not None
    evidence = scaled.release(rng)
    units = table_units(evidence)
    assert units is not None
    errors = np.abs(table_means(evidence, units).estimate - cells.mean(axis=0)) / cells.std(axis=0)
    assert errors.max() < 1


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_tails_without_bounds_end_where_no_cell_is_expected(epsilon: float) -> None:
    """Seventy empty octaves show nothing, and a mean of what they may contain is anything."""
    stream = np.random.default_rng(7)
    covered, worst = [], []
    for _ in range(4):
        cells = stream.normal(size=(20_000, 8))
        cells[:, :2] = np.exp(cells[:, :2]) / 100
        cells[:, 2:4] = np.where(stream.random((20_000, 2)) < 0.1, np.exp(7 + cells[:, 2:4]), 0.0)
        scaled = in_memory(cells, numeric_columns([None] * 6 + [(-1e9, 1e9)] * 2), epsilon, stream)
        assert scaled is not None
        release = scaled.release(stream)
        units = table_units(release)
        assert units is not None
        means, truth = table_means(release, units), cells.mean(axis=0)
        low, high = means.interval(0.95, "table")
        known = means.estimable
        covered += ((low <= truth) & (truth <= high))[known].tolist()
        errors = np.abs(means.estimate - truth) / cells.std(axis=0)
        worst.append(float(errors[known].max()))
    assert np.median(worst) < 1
    assert np.mean(covered) >= 0.9


@pytest.mark.slow
def test_bins_of_all_stages_bound_a_tail() -> None:
    """The bins of the last stage are where nearly all cells are, and few are farther out."""
    stream = np.random.default_rng(8)
    covered = []
    for _ in range(6):
        cells = stream.normal(size=(20_000, 6))
        cells[:, :4] = np.floor((1 - stream.random((20_000, 4))) ** (-1 / 1.6))
        bounds = [(0.0, 1e6)] * 4 + [(-50.0, 50.0)] * 2
        scaled = in_memory(cells, numeric_columns(bounds), 1.0, stream)
        assert scaled is not None
        release = scaled.release(stream)
        units = table_units(release)
        assert units is not None
        low, high = table_deviations(release, units).interval(0.95, "table")
        truth = cells.std(axis=0)
        covered += ((low <= truth) & (truth <= high))[:4].tolist()
    assert np.mean(covered) > 0.88


@pytest.mark.slow
def test_noise_of_one_stage_does_not_make_an_endless_tail() -> None:
    """Without bounds, noise in a bin of large numbers would be a second moment of any size."""
    for seed in (1000, 1001, 1002):
        stream = np.random.default_rng(seed)
        cells = stream.normal(size=(20_000, 15))
        scaled = in_memory(cells, numeric_columns([None] * 15), 1.0, stream)
        assert scaled is not None
        tails = ColumnTails.of(scaled.release(stream))
        assert tails.square_most.max() < 2
