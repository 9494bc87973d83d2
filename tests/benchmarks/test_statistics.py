"""The statistics benchmark: correlations as defined, and private constants near the true ones."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.cells import Cell, append, read_results
from benchmarks.statistics import cells, page
from benchmarks.statistics.cells import METHODS, measure
from benchmarks.statistics.comparisons import comparisons
from benchmarks.statistics.correlations import about_means, error, pairwise
from benchmarks.statistics.methods import scaled_rows
from benchmarks.statistics.moments import errors_of
from benchmarks.statistics.tables import Table, load
from tests.support.kinds_of_tables import round_bounds
from tests.support.private_release import clipped_moment, privately_scaled

RNG = np.random.default_rng(3)
CELLS = RNG.normal(size=(3000, 4)) @ RNG.normal(size=(4, 4)) + [5, -3, 100, 0]


def test_pairwise_correlations_match_pandas() -> None:
    cells_ = np.where(RNG.random(CELLS.shape) < 0.3, np.nan, CELLS)
    cells_[:, 3] = 7.0
    found = pairwise(cells_)
    assert np.isnan(found[3]).all()
    assert found[:3, :3] == pytest.approx(pd.DataFrame(cells_).corr().to_numpy()[:3, :3])


def test_a_moment_without_noise_or_clipping_gives_the_correlations() -> None:
    table = Table(CELLS, None)
    rows = scaled_rows(CELLS, np.array([4.0, 0.0, 90.0, 1.0]), np.full(4, 3.0))
    estimate = about_means(clipped_moment(rows, 1e6), table.present)
    assert error(estimate, table.correlations) < 1e-6


@pytest.mark.parametrize("bounded", [True, False])
def test_private_constants_scale_columns_to_one(bounded: bool) -> None:
    table = Table(CELLS, np.array(round_bounds(CELLS)) if bounded else None)
    scaled = privately_scaled(table.cells, table.columns, 20.0, np.random.default_rng(1))
    assert scaled is not None
    assert scaled.rows[:, 0] == pytest.approx(1.0)
    assert scaled.rows[:, 1:].std(axis=0) == pytest.approx(np.ones(4), rel=0.2)
    assert np.abs(scaled.rows[:, 1:].mean(axis=0)).max() < 0.3
    assert 1 < scaled.radius < 20


def test_bounds_are_round_and_around_the_data() -> None:
    lower, upper = round_bounds(
        np.array([[0.0, -3.0, 1013.2], [7.0, 40.0, 1014.9], [1.0, 0, 1014]])
    )
    assert lower.tolist() == [0, -5, 1000]
    assert upper.tolist() == [10, 50, 2000]


def test_a_cell_is_measured_and_the_page_is_written(tmp_path: Path) -> None:
    for method in ("private", "bounds", "known"):
        append(tmp_path / "results.jsonl", measure(Cell("three columns", 1.0, method), 2))
    found = comparisons(read_results(tmp_path / "results.jsonl", cells.Result))
    assert [each.table for each in found] == ["three columns"]
    assert found[0].private is not None
    assert found[0].private < 0.05
    assert found[0].gain is not None
    page.write(tmp_path)
    assert "three columns" in (tmp_path / "results.md").read_text()
    assert (tmp_path / "figures" / "accuracy.svg").exists()


def test_tables_are_within_their_bounds() -> None:
    for name in ("zero-inflated, wide", "Likert", "missing"):
        table = load(name)
        assert table.bounds is not None
        assert (np.nanmin(table.cells, axis=0) >= table.bounds[0]).all()
        assert (np.nanmax(table.cells, axis=0) <= table.bounds[1]).all()


def test_errors_of_means_and_deviations() -> None:
    table = Table(CELLS, np.array(round_bounds(CELLS)))
    means, deviations = CELLS.mean(axis=0), CELLS.std(axis=0)
    exact = errors_of(table, means[None], deviations[None])
    assert set(exact) == {"means", "means, median", "deviations", "deviations, median"}
    assert all(each == [pytest.approx(0.0)] for each in exact.values())
    one = np.array([1.0, 0.0, 0.0, 0.0])
    off = errors_of(table, (means + one * deviations)[None], (deviations * 2**one)[None])
    assert off["means"] == [pytest.approx(0.5)]
    assert off["deviations"] == [pytest.approx(np.log(2) / 2)]
    assert off["deviations, median"] == [pytest.approx(0.0)]
    unknown = errors_of(table, np.full((1, 4), np.nan), np.full((1, 4), np.nan))
    assert unknown["deviations"] == [pytest.approx(np.log(10))]
    assert np.isfinite(unknown["means"]).all()


@pytest.mark.parametrize("method", ["own units, private", "own units, bounds", "pure"])
def test_own_units_are_measured(method: str) -> None:
    errors = measure(Cell("three columns", 4.0, method), 2).errors
    assert all(0 < error < 0.05 for error in errors.values())


def test_peers_without_an_interpreter_are_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peers = {name: each.peer for name, each in METHODS.items() if each.peer}
    for peer in peers.values():
        monkeypatch.delenv(peer.variable, raising=False)
    planned = {cell.method for cell, _ in cells.missing(False, {})}
    assert planned == set(METHODS) - set(peers)
    printed = capsys.readouterr().out
    assert all(peer.variable in printed for peer in peers.values())
    monkeypatch.setenv("OPENDP_PYTHON", "python")
    planned = {cell.method for cell, _ in cells.missing(False, {})}
    assert planned & set(peers) == {"OpenDP moments", "OpenDP components"}


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name, each in METHODS.items() if each.peer])
def test_peers_estimate_three_columns(method: str) -> None:
    peer = METHODS[method].peer
    if peer is None or not os.environ.get(peer.variable):
        pytest.skip("needs an interpreter with the library")
    errors = measure(Cell("three columns", 1.0, method), 2).errors
    assert min(errors.values()) < 0.2
