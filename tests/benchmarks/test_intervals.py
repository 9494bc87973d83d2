"""The benchmark of intervals: populations are tables, and coverage is counted as defined."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cells import append, read_results
from benchmarks.intervals import cells, page, tables
from benchmarks.intervals.populations import (
    FOLDS,
    QUANTITIES,
    Estimated,
    intervals,
    population,
    quantities,
    sample,
)
from benchmarks.intervals.scores import Score
from benchmarks.statistics.tables import load
from tests.support.private_release import privately_scaled

CELL = cells.Cell("normal", 20_000, 4.0)


def test_a_population_has_the_quantities_of_its_table() -> None:
    values = load(CELL.table).cells[:, np.linspace(0, 19, 10).round().astype(int)]
    found = quantities(population(CELL.table))
    others = np.column_stack([np.ones(len(values)), values[:, 2:]])
    residuals = values[:, :2] - others @ np.linalg.lstsq(others, values[:, :2])[0]
    partial = np.corrcoef(residuals.T)[0, 1]
    assert found["partial-correlation"][0] == pytest.approx(partial)
    assert found["correlation"][0] == pytest.approx(np.corrcoef(values.T)[0, 1])
    assert found["mean"] == pytest.approx(values.mean(axis=0))
    assert found["standard-deviation"] == pytest.approx(values.std(axis=0))


@pytest.mark.parametrize("folds", FOLDS)
def test_intervals_are_near_the_values_of_the_table(folds: int) -> None:
    rng = np.random.default_rng(2)
    drawn = sample(population(CELL.table), CELL.n, rng)
    scaled = privately_scaled(drawn.cells, drawn.columns, CELL.epsilon, rng, folds)
    assert scaled is not None
    found, truth = intervals(scaled.release(rng)), quantities(drawn)
    for of in QUANTITIES:
        each = found[of]
        assert each.known.all()
        assert (each.lower < each.estimate).all()
        assert (each.estimate < each.upper).all()
        assert each.estimate == pytest.approx(truth[of], abs=0.3)
        assert (each.lower <= each.own_lower + 1e-12).all()


def test_coverage_bias_and_width_are_counted() -> None:
    estimates = np.array([[0.0, -1], [1, 1], [0, -1], [1, 1], [0, 9], [1, 0]])
    lower = np.array([[-0.5, -1.5], [-0.5, 0.5]] * 3)
    known = np.array([[True, True]] * 4 + [[True, False]] * 2)
    columns = (estimates, lower, lower + 2, known, lower, lower + 2)
    releases = [Estimated(*values) for values in zip(*columns, strict=True)]
    own = [np.array([5.0, -1.5])] * 6
    score = Score.of(releases, np.zeros(2), own)
    spread, normal = math.sqrt(0.3), 1.959964  # the first estimate is 0, 1, 0, 1, 0, 1
    assert score.known == pytest.approx(10 / 12, abs=1e-4)
    assert score.held == pytest.approx(0.8)  # six of the first, two of four of the second
    left = np.array([0.4, -0.6, 0.4, -0.6, 0.2, 0.2])  # covered, less 0.8 of the known
    assert score.error == pytest.approx(math.sqrt(6 / 5 * left @ left) / 10, rel=1e-3)
    assert score.worst == 0.5
    assert (score.own, score.own_worst) == (pytest.approx(0.2), 0.0)
    assert score.bias == pytest.approx(0.5 / spread, rel=1e-3)
    assert score.width == score.narrowest == pytest.approx(1 / (normal * spread), rel=1e-3)
    assert score.spread == pytest.approx(spread, rel=1e-3)
    lost = [replace(each, known=np.zeros(2, dtype=bool)) for each in releases]
    assert Score.of(lost, np.zeros(2), own) == Score(0.0)


def test_cell_is_measured_stored_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    measured = cells.measure(CELL, 6)
    append(path, measured)
    assert read_results(path, cells.Result) == {CELL: measured}
    lines = tables.intervals(read_results(path, cells.Result))
    assert len(lines) == len(FOLDS) * len(QUANTITIES)
    costs = lines[(lines["folds"] == 10) & (lines["of"] == "mean")]["cost"]
    assert costs.between(0.8, 6).all()

    unknown = {of: Score(0.1) for of in QUANTITIES}
    seldom = {
        of: replace(score, held=0.5, error=0.01) for of, score in measured.scores["10"].items()
    }
    other = replace(CELL, n=200_000)
    append(path, replace(measured, cell=other, scores={"1": unknown, "10": seldom}))
    lines = tables.intervals(read_results(path, cells.Result))
    assert set(tables.short(lines)["n"]) >= {other.n}

    page.write(tmp_path)
    text = (tmp_path / "results.md").read_text()
    assert "| normal | partial correlation |" in text
    assert "unknown (10 %)" in text
    for name in ("coverage", "width"):
        assert (tmp_path / "figures" / f"{name}.svg").exists()


def test_every_planned_cell_has_private_constants() -> None:
    planned = [cell for cell, _ in cells.missing(False, {})]
    assert {cell.n for cell in planned} == set(cells.ROWS)
    smallest = cells.Cell("lognormal", cells.ROWS[0], cells.EPSILONS[0])
    assert smallest in planned
    radii = cells.measure(cells.Cell("lognormal", 20_000, 1.0), 1).radii
    assert radii["10"] < radii["1"]  # the rule takes the noise of folds into account
