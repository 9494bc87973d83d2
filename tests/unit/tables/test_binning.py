"""Every cell is in exactly the bin that the edges say, by compiled code and without."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any

import numpy as np
import pytest

from gramercy.scaling.column_constants import Constants, Grid, LevelGrid, first_grid, zoomed_grid
from gramercy.tables.counts.binning import Binning, bin_edges, first_guesses

NASTY = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -5e-324, 1.5, -7.25]
FAR = zoomed_grid(Constants(1000.0, 1.0, 1.0, bins=64), 999.0, 1e6)
EDGES: tuple[np.ndarray, ...] = (
    np.array([-1.0, 0.0, 0.5, 2.0]),
    np.array([0.0, 5e-324]),
    np.linspace(-1e308, 1e307, 257),
    bin_edges(first_grid(-3.0, 1e6)),
    bin_edges(first_grid(None, None)),
    bin_edges(LevelGrid(3)),
    bin_edges(FAR),
    np.array([-1.7e308, -1e308, 1e300, 1.7e308]),  # distances are infinite
    1000 + np.arange(40) * 2.0**-43,  # neighbours, with one key
    bin_edges(LevelGrid(2)),
    np.array([-8.0, 4.0, 8.0, 8.1, 8.2]),  # the last key has edges
    bin_edges(LevelGrid(1)),  # no edge within
)


def expected_bin(cell: float, edges: Any) -> int:
    if not math.isfinite(cell):
        return len(edges) - 1
    return min(max(bisect_right(list(edges), cell) - 1, 0), len(edges) - 2)


def cells_at_edges() -> np.ndarray:
    """For each column all its edges, both neighbours of each, and special numbers."""
    columns = []
    for edges in EDGES:
        near = [np.nextafter(edges, -np.inf), edges, np.nextafter(edges, np.inf)]
        columns.append(np.concatenate([*near, np.array(NASTY)]))
    rows = max(map(len, columns))
    return np.stack([np.resize(column, rows) for column in columns])


@pytest.mark.parametrize(
    "kind", ["plain", pytest.param("compiled", marks=pytest.mark.slow), "uncompiled kernel"]
)
def test_cells_are_in_the_bins_that_edges_say(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "uncompiled kernel":  # as plain Python, without a compiler
        monkeypatch.setattr("gramercy.tables.counts.binning.compiled", lambda function: function)
    cells = cells_at_edges()
    binning = Binning(EDGES, large=kind != "plain")
    bins_of = np.errstate(over="ignore")(binning.bins)  # uncompiled, NumPy warns of far cells
    bins = bins_of(cells)
    expected = [
        [expected_bin(cell, edges) for cell in column]
        for column, edges in zip(cells, EDGES, strict=True)
    ]
    np.testing.assert_array_equal(bins, expected)
    counts = binning.zeros()
    for rows in (slice(0, 7), slice(7, 7), slice(7, None)):
        binning.count(bins_of(cells[:, rows]), counts)
    for histogram, column, edges in zip(binning.split(counts), bins, EDGES, strict=True):
        np.testing.assert_array_equal(histogram, np.bincount(column, minlength=len(edges)))


@pytest.mark.parametrize(
    "grid",
    [
        first_grid(-5.0, 5.0),
        first_grid(0.0, 1e5),
        first_grid(40.0, 200.0),
        first_grid(None, None),
        zoomed_grid(Constants(0.0, 1.0, 1.0, bins=64), -5.0, 5.0),
        FAR,
    ],
)
def test_first_guesses_leave_few_edges_of_any_grid(grid: Grid) -> None:
    both = first_guesses([grid.edges, bin_edges(LevelGrid(1))])
    assert both.steps[0] <= 2  # of the six to eight steps of a search among all edges


def test_levels_have_a_bin_each_and_one_for_other_cells() -> None:
    binning = Binning([bin_edges(LevelGrid(3))])
    assert binning.sizes == (4,)
    assert binning.bins(np.array([[0.0, 1.0, 2.0, np.nan]])).tolist() == [[0, 1, 2, 3]]
