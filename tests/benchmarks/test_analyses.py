"""The analyses benchmark: scores as defined, AdaSSP near least squares, and its page."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.analyses import cells
from benchmarks.analyses.cells import measure
from benchmarks.analyses.methods import METHODS
from benchmarks.analyses.populations import Fitted, Population
from benchmarks.analyses.procedures import adassp
from benchmarks.cells import Cell
from benchmarks.peers import OPENDP, SMARTNOISE_SYNTH
from benchmarks.statistics.tables import Table

RNG = np.random.default_rng(7)
X = RNG.normal(size=(2000, 2)) * [1.0, 3.0] + [5.0, -2.0]
Y = 4 + X @ [0.5, -1.0] + RNG.normal(size=2000)
POPULATION = Population(Table(np.column_stack([X, Y]), None))


def test_least_squares_of_the_population_loses_nothing() -> None:
    exact = POPULATION.coefficients
    assert exact == pytest.approx([4, 0.5, -1], abs=0.2)
    scores = POPULATION.scores([Fitted(exact, exact[1:] - 1, exact[1:] + 1)] * 2)
    perfect = {"error": 0, "loss": 0, "known": 1, "coverage": 1, "worst": 1}
    assert scores == pytest.approx(perfect, abs=1e-9)


def test_errors_are_in_standard_deviations_and_unknown_intervals_do_not_cover() -> None:
    off = POPULATION.coefficients + np.array([0.0, 0.1, 0.0])
    unknown = np.array([off[1] - 0.01, np.nan])
    scores = POPULATION.scores([Fitted(off, unknown, unknown + 0.02)])
    ratio = X[:, 0].std() / Y.std()
    assert scores["error"] == pytest.approx(0.1 * ratio / np.sqrt(2))
    bias = 0.1 * X[:, 0].mean()
    assert scores["loss"] == pytest.approx((0.1 * ratio) ** 2 + (bias / Y.std()) ** 2)
    assert (scores["known"], scores["coverage"], scores["worst"]) == (0.5, 0.0, 0.0)
    assert "coverage" not in POPULATION.scores([Fitted(off)])


def test_adassp_is_least_squares_at_a_large_budget_and_shrinks_at_a_small_one() -> None:
    x, rng = np.column_stack([np.ones(2000), X]), np.random.default_rng(1)
    exact = np.linalg.lstsq(x, Y)[0]
    assert adassp(x, Y, 100.0, 100.0, 1e9, rng) == pytest.approx(exact, abs=1e-3)
    small = adassp(x, Y, 10.0, 20.0, 0.2, rng)
    assert np.linalg.norm(small) < np.linalg.norm(exact)


def test_adassp_clips_rows_and_outcomes() -> None:
    x, rng = np.array([[3.0, 4.0], [0.3, 0.4], [0.4, -0.3]]), np.random.default_rng(1)
    clipped = np.array([[0.6, 0.8], [0.3, 0.4], [0.4, -0.3]])
    exact = np.linalg.lstsq(clipped, np.array([1.0, 0.5, 0.2]))[0]
    found = adassp(x, np.array([9.0, 0.5, 0.2]), 1.0, 1.0, 1e9, rng)
    assert found == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize(
    ("table", "method"),
    [
        *(("three columns", each) for each in ("private", "declared", "AdaSSP, true constants")),
        *(("normal, one regressor", f"one regressor, {each}") for each in ("private", "pure")),
    ],
)
def test_regressions_are_close(table: str, method: str) -> None:
    scores = measure(Cell(table, 4.0, method), 2).scores
    assert min(each["error"] for each in scores.values()) < 0.05
    if method not in {"declared", "AdaSSP, true constants"}:
        known = [each["known"] for form, each in scores.items() if form in {"", "regression"}]
        assert known == [1.0]


@pytest.mark.parametrize("method", ["components, private", "components, pure"])
def test_components_of_three_columns_are_close(method: str) -> None:
    scores = measure(Cell("three columns", 4.0, method), 2).scores[""]
    assert 0 <= scores["lost"] < 0.01
    assert scores["share"] < 0.05


def test_peers_without_an_interpreter_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for peer in (OPENDP, SMARTNOISE_SYNTH):
        monkeypatch.delenv(peer.variable, raising=False)
    planned = {cell.method for cell, _ in cells.missing(False, {})}
    left_out = ("components, OpenDP", "one regressor, OpenDP", "synthetic, MST", "synthetic, AIM")
    assert planned == set(METHODS) - set(left_out)
