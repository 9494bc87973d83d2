"""A code in a few cells: its column's numbers are right, or wide; never narrow and wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from gramercy.estimators.accuracy.clipped_accuracy import ClippedAccuracy
from gramercy.estimators.far_cells import FarCells
from gramercy.estimators.table_units import table_units
from gramercy.estimators.uncertainty.entries import correlation
from gramercy.estimators.uncertainty.table_entries import table_deviations, table_means
from gramercy.schemas.evidence import ROW_LENGTHS, Evidence
from gramercy.schemas.facts import ColumnFacts
from tests.support.private_release import numeric_columns
from tests.support.private_release import privately_scaled as in_memory
from tests.support.simulated_release import privately_scaled

Array = NDArray[np.float64]

ROWS, CODED = 20_000, 190  # so few that the scale of the column does not always follow them
BOUNDS = [(-5.0, 1e6)] + [(-5.0, 5.0)] * 5


def coded_table() -> Array:
    table = np.random.default_rng(8).normal(size=(ROWS, 6))
    table[:CODED, 0] = 999_999.0
    return table


def covered(evidence: Evidence, table: Array) -> Array:
    """Whether mean, deviation and correlations of the first column are within their intervals."""
    units = table_units(evidence)
    assert units is not None
    actual = table.mean(axis=0)[0], table.std(axis=0)[0], np.corrcoef(table.T)[0, 1:]
    found = (
        table_means(evidence, units).interval(0.95, "table"),
        table_deviations(evidence, units).interval(0.95, "table"),
        correlation(evidence).interval(0.95, "table"),
    )
    at = (0, 0, np.s_[0, 1:])
    return np.array(
        [
            np.all((low[k] <= value) & (value <= high[k]))
            for value, k, (low, high) in zip(actual, at, found, strict=True)
        ]
    )


@pytest.mark.slow
def test_intervals_contain_what_the_histograms_show_far_out() -> None:
    table = coded_table()
    held = [covered(privately_scaled(table, BOUNDS, 1.0, seed), table) for seed in range(10)]
    assert np.mean(held) >= 0.7


@pytest.mark.slow
def test_verdict_sets_such_a_column_aside() -> None:
    table, unnoticed = coded_table(), 0
    for seed in range(10):
        accuracy = ClippedAccuracy.of(privately_scaled(table, BOUNDS, 1.0, seed))
        assert accuracy is not None
        unnoticed += accuracy.level == "good" and "c0" not in accuracy.excepted
    assert unnoticed <= 5


@pytest.mark.slow
def test_noise_within_wide_bounds_is_seldom_taken_for_cells() -> None:
    table, found = np.random.default_rng(9).normal(size=(ROWS, 6)), []
    for seed in range(10):
        evidence = privately_scaled(table, [(-1e5, 1e6)] * 6, 1.0, seed)
        facts = (each for each in evidence.columns if isinstance(each, ColumnFacts))
        found += [FarCells.of(evidence, each).least > 0 for each in facts]
    assert len(found) == 60
    assert sum(found) <= 2


@pytest.mark.parametrize("declared", [True, False])
def test_last_bin_needs_little_evidence_at_a_declared_bound_only(*, declared: bool) -> None:
    """The last of the bins without bounds is as any other: there is no code at 2^40."""
    stream = np.random.default_rng(9)
    cells, limits = stream.normal(size=(ROWS, 3)), (-1e6, 1e6) if declared else None
    scaled = in_memory(cells, numeric_columns([limits] * 3), 1.0, stream)
    assert scaled is not None
    evidence = scaled.release(stream)
    histograms = list(evidence.histograms)
    for k, each in enumerate(histograms):
        count = each.count.copy()
        count[1:-2] = np.where(np.abs(each.lower[1:-2]) < 1e3, count[1:-2], 0)
        count[0], count[-2] = 0, round(1.9 * each.sd)
        histograms[k] = each if each.column == ROW_LENGTHS else replace(each, count=count)
    column = evidence.columns[1]
    assert isinstance(column, ColumnFacts)
    found = FarCells.of(replace(evidence, histograms=tuple(histograms)), column)
    assert (found.least > 0) == declared
