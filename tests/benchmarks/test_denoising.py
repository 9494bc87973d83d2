"""The benchmark of denoising: a cell can be measured, stored and reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.cells import append, read_results
from benchmarks.denoising import cells, page


def test_cell_is_measured_stored_and_reported(tmp_path: Path) -> None:
    for cell in (
        cells.Cell("gaussian", 1.0, 30, "slow"),
        cells.Cell("laplace", 4.0, 30, "flat", 3.0),
    ):
        result = cells.measure(cell, 2)
        assert result.best < result.denoised < result.projected
        append(tmp_path / "results.jsonl", result)
    held = read_results(tmp_path / "results.jsonl", cells.Result)
    assert held[cell] == result
    page.write(tmp_path)
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert "## 30 columns, rows of unit length" in text
    assert f"{result.denoised / result.best:.3f}" in text


def test_rows_have_the_stated_lengths() -> None:
    assert np.isclose(np.trace(cells.second_moment(20, "slow", 0.0)), 1.0)
    assert 0.08 < np.trace(cells.second_moment(20, "slow", 3.0)) < 1 / 8


def test_plan_measures_each_cell_once() -> None:
    planned = [cell for cell, _ in cells.plan(quick=False)]
    assert len(planned) == len(set(planned)) == 288
    assert cells.missing(True, {}) == [(cells.Cell("gaussian", 1.0, 320, "slow"), 1)]
