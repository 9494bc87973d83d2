"""The benchmark of intervals: populations are tables, releases have the right noise, and counts."""

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
    PARTS,
    QUANTITIES,
    Estimated,
    Population,
    intervals,
    population,
    release,
)
from benchmarks.intervals.scores import Score
from benchmarks.statistics.tables import load

CELL = cells.Cell("normal", 20_000, 4.0)


@pytest.fixture(scope="module")
def sampled() -> Population:
    return population(CELL.table, CELL.n, CELL.epsilon, 1, np.random.default_rng(1))


def test_a_population_has_the_quantities_of_its_table(sampled: Population) -> None:
    assert np.linalg.norm(sampled.rows, axis=1).max() == pytest.approx(1)
    chosen = np.linspace(0, 19, 10).round().astype(int)
    values = load(CELL.table).cells[:, chosen]
    others = np.column_stack([np.ones(len(values)), values[:, 2:]])
    residuals = values[:, :2] - others @ np.linalg.lstsq(others, values[:, :2])[0]
    partial = np.corrcoef(residuals.T)[0, 1]
    assert sampled.original["partial-correlation"][0] == pytest.approx(partial)
    assert sampled.original["correlation"][0] == pytest.approx(np.corrcoef(values.T)[0, 1])
    # Few rows of normal columns are clipped, and hardly.
    assert sampled.normalised["mean"] == pytest.approx(sampled.original["mean"], abs=0.01)
    for of in QUANTITIES[1:]:
        assert sampled.normalised[of] == pytest.approx(sampled.original[of], rel=0.02, abs=0.01)


@pytest.mark.parametrize("folds", FOLDS)
def test_every_fold_has_the_noise_of_a_whole_release(sampled: Population, folds: int) -> None:
    rng = np.random.default_rng(2)
    sums = sampled.sums(rng.integers(0, len(sampled.rows), size=CELL.n), PARTS)
    moment, entries = sums.sum(axis=0) / CELL.n, np.triu_indices(sampled.p + 1, 1)
    releases = [release(sampled, sums, CELL.n, folds, rng) for _ in range(20)]
    noise = np.array([(each.raw - moment)[entries] for each in releases])
    expected = math.sqrt(folds) * sampled.noise / CELL.n
    assert math.sqrt((noise**2).mean()) == pytest.approx(expected, rel=0.1)
    assert releases[0].law.sd_off_diagonal == pytest.approx(expected)
    if folds > 1:
        seen = releases[0]
        assert [fold.rows for fold in seen.folds] == [CELL.n / folds] * folds
        assert np.mean([fold.moment for fold in seen.folds], axis=0) == pytest.approx(seen.raw)
    found = intervals(releases[0])
    for of in QUANTITIES:
        assert found[of].known.all()
        assert found[of].estimate == pytest.approx(sampled.normalised[of], abs=0.3)


def test_coverage_bias_and_width_are_counted() -> None:
    estimates = np.array([[0.0, -1], [1, 1], [0, -1], [1, 1], [0, 9], [1, 0]])
    lower = np.array([[-0.5, -1.5], [-0.5, 0.5]] * 3)
    known = np.array([[True, True]] * 4 + [[True, False]] * 2)
    columns = (estimates, lower, lower + 2, known)
    releases = [Estimated(*values) for values in zip(*columns, strict=True)]
    score = Score.of(releases, np.zeros(2), np.array([5.0, -1.5]))
    spread, normal = math.sqrt(0.3), 1.959964  # the first estimate is 0, 1, 0, 1, 0, 1
    assert score.known == pytest.approx(10 / 12, abs=1e-4)
    assert score.held == pytest.approx(0.8)  # six of the first, two of four of the second
    left = np.array([0.4, -0.6, 0.4, -0.6, 0.2, 0.2])  # covered, less 0.8 of the known
    assert score.error == pytest.approx(math.sqrt(6 / 5 * left @ left) / 10, rel=1e-3)
    assert score.worst == 0.5
    assert score.of_table == pytest.approx(0.2)
    assert score.bias == pytest.approx(5 / spread, rel=1e-3)
    assert score.width == score.narrowest == pytest.approx(1 / (normal * spread), rel=1e-3)
    assert score.spread == pytest.approx(spread, rel=1e-3)
    lost = [replace(each, known=np.zeros(2, dtype=bool)) for each in releases]
    assert Score.of(lost, np.zeros(2), np.zeros(2)) == Score(0.0)


def test_cell_is_measured_stored_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    measured = cells.measure(CELL, 6)
    append(path, measured)
    assert read_results(path, cells.Result) == {CELL: measured}
    lines = tables.intervals(read_results(path, cells.Result))
    assert len(lines) == len(FOLDS) * len(QUANTITIES)
    assert not lines["drafted"].any()
    costs = lines[(lines["folds"] == 20) & (lines["of"] == "mean")]["cost"]
    assert costs.between(1, 6).all()

    unknown = {of: Score(0.1) for of in QUANTITIES}
    seldom = {of: replace(score, worst=0.5) for of, score in measured.scores["10"].items()}
    other, drafted = replace(CELL, n=200_000), replace(CELL, n=200_000_000)
    scores = {"1": unknown, "10": seldom, "20": unknown}
    append(path, replace(measured, cell=other, scores=scores))
    append(path, replace(measured, cell=drafted))
    lines = tables.intervals(read_results(path, cells.Result))
    assert set(lines[lines["drafted"]]["n"]) == {drafted.n}
    assert set(tables.short(lines)["n"]) >= {other.n}

    page.write(tmp_path)
    text = (tmp_path / "results.md").read_text()
    assert "| normal | partial correlation |" in text
    assert "unknown (10 %)" in text
    for name in ("coverage", "width"):
        assert (tmp_path / "figures" / f"{name}.svg").exists()


def test_every_planned_cell_has_private_constants_and_whole_folds() -> None:
    planned = [cell for cell, _ in cells.missing(False, {})]
    assert {cell.n for cell in planned} == set(cells.ROWS)
    assert all(cell.n % PARTS == 0 for cell in planned)
    assert all(PARTS % folds == 0 for folds in FOLDS)
    smallest = cells.Cell("lognormal", cells.ROWS[0], cells.EPSILONS[0])
    assert smallest in planned
    made = population(smallest.table, smallest.n, smallest.epsilon, 20, np.random.default_rng(1))
    assert made.p == 10
    without = population(smallest.table, smallest.n, smallest.epsilon, 1, np.random.default_rng(1))
    assert made.radius < without.radius  # the rule takes the noise of folds into account
