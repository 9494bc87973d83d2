"""The benchmark of verdicts: releases are compared with their tables, and the page counts them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cells import append, read_results
from benchmarks.verdicts import cells, page, tables
from tests.support.kinds_of_tables import KINDS
from tests.support.verdict_truth import VerdictTruth

CELL = cells.Cell("Likert", 2000, 4.0)


@pytest.fixture(scope="module")
def measured() -> cells.Result:
    return cells.measure(CELL, 3)


def test_every_kind_is_a_table_within_round_bounds() -> None:
    for name, kind in KINDS.items():
        made = kind.build(400, np.random.default_rng(1))
        assert made.shape[0] == 400, name
        assert np.isnan(made).any() == (kind.group == "missing cells"), name


def test_coverage_is_counted_by_entry_and_by_quantity(measured: cells.Result) -> None:
    draws = [
        replace(measured.draws[0], own={"mean": text}) for text in ("11-0", "10-0", "1101", "11-1")
    ]
    mean, least, known = tables.coverage([replace(measured, draws=draws)], "mean", "own")
    assert mean == pytest.approx(9 / 13)
    assert least == 0.5  # of the last column; the third is not always known
    assert known == pytest.approx(13 / 16)
    assert np.isnan(tables.coverage([replace(measured, draws=draws[:2])], "mean", "own")[1])


def test_false_verdicts_are_counted_and_listed(tmp_path: Path, measured: cells.Result) -> None:
    right = VerdictTruth("good", 0, 0.01, 0.02, 0.02, 0.02, 0.0)
    wrong = replace(right, largest=0.3, visible=0.05, clamped=0.2)
    aside = replace(wrong, excepted=1, visible=0.3)
    lost = replace(right, level="danger")
    draws = [replace(measured.draws[0], verdict=each) for each in (right, wrong, aside, lost)]
    append(tmp_path / "results.jsonl", replace(measured, draws=draws))
    read = read_results(tmp_path / "results.jsonl", cells.Result)
    lines = tables.releases(read)
    assert lines["green"].tolist() == [True, True, True, False]
    assert lines["false"].tolist() == [False, True, True, False]
    assert lines["fine"].tolist() == [True, False, False, True]
    page.write(tmp_path)
    text = (tmp_path / "results.md").read_text()
    assert "| all |  | 4 | 3 | 1 | 2 | 1 | 2 | 1 |" in text
    assert "| Likert | 2,000 | 4 | 1 | 0.30 | 0.30 | 0.20 |" in text


def test_a_cell_is_measured(measured: cells.Result) -> None:
    assert len(measured.draws) == 3
    for draw in measured.draws:
        assert 0 < draw.verdict.error < draw.verdict.largest < 0.2
        assert draw.verdict.visible <= draw.verdict.largest
        assert {of: len(each) for of, each in draw.own.items()} == {
            "mean": 12,
            "standard-deviation": 12,
            "correlation": 66,
        }
        assert draw.off == 0
    mean, _, known = tables.coverage([measured], "correlation", "own")
    assert mean > 0.9
    assert known == 1.0
