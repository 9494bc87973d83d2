"""The solvers benchmark: accuracy is measured, and the page reports the measurements."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cells import append, read_results
from benchmarks.solvers import cells, page, tables
from benchmarks.solvers.cells import Cell, Measured, Result
from benchmarks.solvers.matrices import KINDS, REGIMES, matrix, penalties
from benchmarks.solvers.peers import OURS, PEERS, Run, Steps
from gramercy.estimators.solvers.glasso import graphical_lasso

P = 20


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("regime", REGIMES)
def test_every_matrix_kind_has_a_penalty_path(kind: str, regime: str) -> None:
    S = matrix(kind, regime, 3 * P, np.random.default_rng(5))
    assert np.diagonal(S).mean() == pytest.approx(1.0)
    assert (S == S.T).all()
    indefinite = np.linalg.eigvalsh(S).min() < 0
    assert indefinite == (regime == "noisy") or regime == "debiased"
    grid = penalties(S)
    assert (np.diff(grid) < 0).all()
    assert grid[0] == np.abs(S - np.diag(np.diagonal(S))).max()
    assert graphical_lasso(S, grid[0]).iterations == 0
    assert (graphical_lasso(S, grid[-1]).precision != 0).sum() > 3 * P


def test_accuracy_is_measured_by_the_objective() -> None:
    S = matrix("ar1", "clean", P, np.random.default_rng(1))
    found = graphical_lasso(S, 0.2, tol=1e-12)
    least = cells.objective(S, 0.2, found.precision) - P * found.gap
    assert cells.objective(S, 0.2, -found.precision) == math.inf

    def off_by(share: float) -> Run:
        return lambda S, grid, tolerance: iter([(0.5, (1 + share) * found.precision)])

    peer = PEERS[OURS]
    for share in (0.0, 1e-3, 0.1):
        T = (1 + share) * found.precision
        worse = float((S * T).sum() + 0.2 * np.abs(T - np.diag(np.diagonal(T))).sum())
        worse -= float(np.linalg.slogdet(T)[1]) + least
        seen = cells._measured(replace(peer, run=off_by(share)), S, np.array([0.2]), [least])
        assert seen.accuracy == pytest.approx(worse / P, abs=1e-12)
        assert seen.seconds == 0.5
        assert tables.reached(seen) == (share < 1e-2)


def test_failing_solver_is_reported() -> None:
    def breaks(S: np.ndarray, grid: np.ndarray, tolerance: float) -> Steps:
        yield 0.1, np.eye(len(S))
        raise FloatingPointError

    failing = replace(PEERS[OURS], run=breaks, tolerances=(1.0, 0.1))
    seen = cells._measured(failing, np.eye(3), np.array([2.0, 1.0]), [3.0, 3.0])
    assert (seen.accuracy, seen.solved) == (math.inf, 1)
    assert tables.failed(seen)


@pytest.mark.parametrize("what", ["path", "single"])
def test_cell_is_measured_stored_and_reported(what: cells.What, tmp_path: Path) -> None:
    cell = Cell("random", "noisy", P, what)
    made = cells.measure(cell)
    assert {"newton", "admm", "scikit-learn"} <= made.solvers.keys()
    for name in ("newton", "admm"):
        assert tables.reached(made.solvers[name])
        assert made.solvers[name].solved == {"path": 20, "single": 1}[what]
    assert 0 < made.density < 1
    assert made.floor > 0
    append(tmp_path / "results.jsonl", made)
    assert read_results(tmp_path / "results.jsonl", cells.Result) == {cell: made}
    page.write(tmp_path)
    text = (tmp_path / "results.md").read_text()
    assert f"{made.solvers['newton'].seconds:.3g}" in text
    for each in ("path", "single"):
        assert (tmp_path / "figures" / f"{each}.svg").read_text().startswith("<?xml")


def test_time_ratios_compare_one_run() -> None:
    def result(theirs: float, ours: float, accuracy: float = 0.0) -> Result:
        solvers = {OURS: Measured(ours, 0.0, 20), "other": Measured(theirs, accuracy, 20)}
        return Result(Cell("ar1", "clean", P, "path"), 1.0, 0.1, 0.1, solvers)

    results = {
        Cell(kind, "clean", P, "path"): each
        for kind, each in zip(
            KINDS, (result(3.0, 1.0), result(8.0, 2.0), result(5.0, 1.0, 1e-3)), strict=True
        )
    }
    found = tables.ratios(results, "other", tables.at(P, "path"))
    assert found == tables.Ratios(4.0, 3.0, 3, 1, 0)
    failing = Cell("ar1", "noisy", P, "path")
    results[failing] = replace(result(0.001, 1.0, math.inf), cell=failing)
    assert tables.ratios(results, "other", tables.at(P, "path")) == replace(
        found, cells=4, failed=1
    )
    assert tables.ratios(results, "other", tables.at(P, "single")) is None
    assert tables.seconds(results, "other", tables.at(P, "path", "clean")) == 5.5
    assert tables.seconds(results, "other", tables.at(P, "path", "noisy")) is None
    assert tables.solvers(results)[0] == OURS
    assert tables.sizes(results, "path") == [P]


def test_quick_plan_is_a_subset() -> None:
    whole, quick = list(cells.plan(False)), list(cells.plan(True))
    assert set(quick) < set(whole)
    assert {cell.p for cell in whole} == set(cells.COLUMNS)
    assert len(set(whole)) == len(whole)
