"""The graphs benchmark: releases have the stated guarantee and law, and scores are correct."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cells import append, read_results
from benchmarks.graphs import (
    cells,
    differences,
    joint,
    page,
    pairs,
    releases,
    scores,
    tables,
    truths,
)
from benchmarks.graphs.methods import METHODS
from benchmarks.graphs.truths import KINDS, truth
from gramercy.mechanisms.accounting.gdp import gdp_delta
from gramercy.schemas.evidence import Evidence

P, EPSILON = 6, 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_population_of_unit_rows(kind: str) -> None:
    rng = np.random.default_rng(1)
    made = truth(kind, 12, rng)
    assert np.trace(made.moment) == pytest.approx(1.0, abs=1e-9)
    rows = made.rows(200_000, rng)
    np.testing.assert_allclose(rows.T @ rows / len(rows), made.moment, atol=2e-3)
    assert (made.edges == made.edges.T).all()
    assert not made.edges.diagonal().any()
    precision = np.linalg.inv(made.moment)
    off = ~made.edges & ~np.eye(12, dtype=bool)
    assert np.abs(precision[made.edges]).min() > 3 * np.abs(precision[off]).max()


@pytest.mark.parametrize(
    ("mechanism", "most"), [("gaussian", math.sqrt(2)), ("gaussian-iid", math.sqrt(2)), ("rows", 2)]
)
def test_all_releases_have_the_same_guarantee(mechanism: str, most: float) -> None:
    """The scale is the sensitivity over the exact mu of (epsilon, delta)."""
    mu = most / releases.scale(mechanism, P, EPSILON)
    assert gdp_delta(mu, EPSILON) == pytest.approx(releases.DELTA, rel=1e-4)


@pytest.mark.parametrize("make", [releases.isotropic, releases.independent, releases.noisy_rows])
def test_noise_matches_the_stated_law(make: object) -> None:
    assert callable(make)
    rng = np.random.default_rng(2)
    rows = np.repeat(np.eye(P), 50, axis=0)
    made: list[Evidence] = [make(rows, EPSILON, rng) for _ in range(300)]
    noise = [each.raw - rows.T @ rows / len(rows) for each in made]
    np.testing.assert_allclose(np.std(noise, axis=0), made[0].law.deviations(P), rtol=0.25)
    off = ~np.eye(P, dtype=bool)
    spread = np.sqrt(np.mean(np.square(noise), axis=0)[off].mean())
    assert spread == pytest.approx(made[0].law.sd_off_diagonal, rel=0.05)


def test_folds_sum_to_the_release_and_its_noise() -> None:
    rng = np.random.default_rng(3)
    rows = np.repeat(np.eye(P), 50, axis=0)
    made = [releases.folded(rows, EPSILON, rng) for _ in range(100)]
    one = made[0]
    whole = sum(fold.moment * fold.rows for fold in one.folds) / len(rows)
    np.testing.assert_allclose(one.raw, whole)
    assert sum(fold.rows for fold in one.folds) == len(rows)
    of_one = releases.isotropic(rows, EPSILON, rng).law.sd_off_diagonal
    assert one.law.sd_off_diagonal == pytest.approx(of_one * math.sqrt(releases.FOLDS))
    noise = [each.raw - rows.T @ rows / len(rows) for each in made]
    off = ~np.eye(P, dtype=bool)
    spread = np.sqrt(np.mean(np.square(noise), axis=0)[off].mean())
    assert spread == pytest.approx(one.law.sd_off_diagonal, rel=0.08)


def test_scores_by_hand() -> None:
    moment = np.array([[0.5, 0.2, 0.0], [0.2, 0.3, 0.0], [0.0, 0.0, 0.2]])
    edges = np.zeros((3, 3), dtype=bool)
    edges[0, 1] = edges[1, 0] = True
    target = scores.Target(moment, edges, True)
    assert scores.stein(np.linalg.inv(moment), target) == pytest.approx(0, abs=1e-12)
    assert scores.stein(np.eye(3), target) == pytest.approx(-math.log(0.022) - 2, rel=1e-4)
    assert scores.covariance(moment, target) == 0
    assert scores.covariance(2 * moment, target) == 1
    more = edges.copy()
    more[0, 2] = more[2, 0] = True
    assert scores.f1(more, target) == pytest.approx(2 / 3, rel=1e-4)
    assert scores.f1(~edges & edges, target) == 0
    assert scores.auc(np.abs(moment), target.edges) == 1
    assert scores.auc(np.zeros((3, 3)), target.edges) == 0.5
    path = [None, np.eye(3), np.linalg.inv(moment)]
    assert scores.auc(scores.entry(path), target.edges) == 1


def test_cell_is_measured_stored_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    result = cells.measure(cells.Cell("hub", 20, 500, 4.0, 0))
    assert result.methods.keys() == METHODS.keys()
    append(path, result)
    held = read_results(path, cells.Result)
    assert held == {result.cell: result}
    page.write(tmp_path)
    text = (tmp_path / "results.md").read_text()
    assert "## Penalties: when each rule wins" in text
    assert "| 20 | 500 | 4 |" in text
    assert (tmp_path / "figures/graphs.svg").exists()
    assert tables.comparison(held, "f1", "lasso-auto", "gpp") is not None


def test_pair_of_releases_is_measured_stored_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    result = cells.measure(cells.Cell("autoregressive", 8, 10_000, 1.0, 0, pairs=True))
    one, two = (result.methods[f"{stages}-ridge"].stein for stages in pairs.STAGES)
    assert one is not None
    assert two is not None
    assert two < one / 2
    append(path, result)
    assert read_results(path, cells.Result) == {result.cell: result}
    page.write(tmp_path)
    shown = (tmp_path / "results.md").read_text().split("in one stage and in two")[1]
    assert "| ridge, auto |" in shown


def test_missing_tables_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truths, "FOLDER", tmp_path)
    assert truths.present() == []
    planned = list(cells.plan(quick=True))
    assert planned
    assert not any(cell.source in truths.TABLES for cell in planned)
    folder = tmp_path / "wine_quality"
    folder.mkdir()
    rng = np.random.default_rng(4)
    written = np.column_stack([rng.normal(5, 2, 40), np.ones(40), rng.normal(size=40)])
    np.savetxt(folder / "data.csv", written, delimiter=",", header="a,b,c", comments="")
    assert truths.present() == ["wine_quality"]
    rows = truths.load("wine_quality")
    assert rows.shape == (40, 2)  # the constant column is dropped
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)


def test_groups_have_a_tenth_of_their_edges_of_their_own() -> None:
    for source, (_, shared) in joint.SOURCES.items():
        if shared == joint.DRIFTING:
            continue
        graphs = [each.edges for each in joint.truths_of(source, 3, np.random.default_rng(5))]
        common = np.mean([(graphs[0] & each).sum() / each.sum() for each in graphs[1:]])
        assert (common > 0.75) == (shared == joint.SHARED)
        assert common < 0.9


def test_periods_drift_from_each_other() -> None:
    truths_of = joint.truths_of(f"hub, {joint.DRIFTING}", 4, np.random.default_rng(5))
    common = [(truths_of[0].edges & each.edges).sum() for each in truths_of]
    assert common[0] > common[1] > common[3] > common[0] / 2


def test_all_pairs_of_groups_are_compared_and_reported(tmp_path: Path) -> None:
    cell = cells.Cell(f"hub:{differences.GROUPS}", 10, 50_000, 1.0, 0, differences=True)
    found = cells.measure(cell)
    f1, false = found.methods["pairs"].f1, found.methods["equal-pairs"].false
    assert f1 is not None
    assert f1 > 0.5
    assert false is not None
    assert false < 0.5
    append(tmp_path / "results.jsonl", found)
    page.write(tmp_path)
    shown = (tmp_path / "results.md").read_text().split("All pairs of four groups")[1]
    assert f"| 10 | {f1:.2f} / " in shown


def test_groups_are_reported(tmp_path: Path) -> None:
    source = next(iter(joint.SOURCES))
    cell = cells.Cell(source, joint.COLUMNS, joint.ROWS[0], joint.EPSILON, 0, groups=4)
    methods = {name: scores.Scores(f1=0.8, false=0.1) for name in joint.METHODS}
    append(tmp_path / "results.jsonl", cells.Result(cell, 1.0, methods))
    page.write(tmp_path)
    text = (tmp_path / "results.md").read_text()
    assert f"| {source} | 4 | 2000 | 0.80 |" in text
    assert "| **all, edges in common** | 4 | 2000 | 0.80 |" in text
