"""The benchmark of factor analyses: its populations, and its counts of intervals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.cells import append
from benchmarks.factors import cells, page
from benchmarks.factors.cells import CELLS, Cell, Result


@pytest.mark.parametrize("cell", CELLS[:: len(CELLS) - 1], ids=lambda cell: cell.loadings)
def test_samples_have_the_loadings_of_their_population(cell: Cell) -> None:
    found = np.corrcoef(cell.sample(50_000, np.random.default_rng(1)).cells.T)
    expected = cell.truth @ cell.truth.T
    np.fill_diagonal(expected, 1.0)
    rounding = 0.1 if cell.rotation == "five levels" else 0.0
    np.testing.assert_allclose(found, expected, atol=0.03 + rounding)


def test_results_are_counted_and_written(tmp_path: Path) -> None:
    """Without noise, nearly all intervals contain the truth, and nothing is unknown."""
    cell = Cell(8, 2, "strong", "varimax", 20_000, 100.0)
    found = cells.measure(cell, 5)
    assert (found.known, found.right) == (1, 1)
    assert min(filter(None, found.held.values())) > 0.8
    assert found.width is not None and found.width < 0.02  # noqa: PT018
    append(tmp_path / "results.jsonl", Result(CELLS[0], 5, 1.0, 0.5, {"loadings": None}, None, 1.0))
    page.write(tmp_path)
    text = (tmp_path / "results.md").read_text()
    assert "| 8, 2 | strong | varimax | 2,000 | 1 | declared |" in text
