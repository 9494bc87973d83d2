"""The analyses benchmark: scores as defined, AdaSSP near least squares, and its page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.analyses import cells, page
from benchmarks.analyses.cells import Result, measure
from benchmarks.analyses.lines import regression_lines
from benchmarks.analyses.methods import METHODS
from benchmarks.analyses.populations import Fitted, Population
from benchmarks.analyses.procedures import adassp
from benchmarks.cells import Cell, append, read_results
from benchmarks.pages import page_text
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


@pytest.mark.parametrize("method", ["private", "declared", "AdaSSP, true constants"])
def test_regressions_of_three_columns_are_close(method: str) -> None:
    scores = measure(Cell("three columns", 4.0, method), 2).scores
    assert min(each["error"] for each in scores.values()) < 0.05
    if method == "private":
        assert scores["regression"]["known"] == 1.0


@pytest.mark.parametrize("method", ["one regressor, private", "one regressor, pure"])
def test_regressions_on_one_regressor_are_close(method: str) -> None:
    scores = measure(Cell("normal, one regressor", 4.0, method), 2).scores
    assert all(each["error"] < 0.05 and each["known"] == 1.0 for each in scores.values())


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


def stored(cell: Cell, forms: dict[str, dict[str, float]]) -> Result:
    return Result(cell, 20_000, 3, 2, forms)


def test_the_page_shows_coverage_with_folds_and_where_it_is_low() -> None:
    scores = {"coverage": 0.96, "worst": 0.7, "clipped coverage": 0.97, "clipped worst": 0.9}
    forms = {"folds": scores | {"width": 0.03}, "no folds": scores | {"worst": 0.9, "width": 0.02}}
    cell = Cell("curved", 8.0, "folds")
    text = page_text(page.folds_section({cell: stored(cell, forms)}))
    assert "With folds, a coefficient is covered in less than 85 %: curved at ε = 8 (70 %)." in text
    assert "Without folds, no coefficient is covered in less than 85 %." in text
    assert "| 8 | folds | 96.0 % | 70 % | 97.0 % | 90 % | 0.03 |" in text
    assert "| curved | 8 | 96 % | 70 % | 97 % | 90 % | 0.03 | 96 % | 90 %" in text


def test_the_page_compares_one_regressor_and_synthetic_rows() -> None:
    close, far = {"error": 0.01, "loss": 0.02}, {"error": 0.3, "loss": 0.01}
    place, more = ("Likert, one regressor", 1.0), {"marginals": 0.2, "correlations": 0.1}
    survey = ("clinic", 1.0)
    forms = {
        Cell(*place, "one regressor, pure"): {"": close},
        Cell(*place, "one regressor, OpenDP"): {"100": far, "1000": far | {"error": 0.2}},
        Cell(*survey, "synthetic, private"): {"": close | more},
        Cell(*survey, "synthetic, MST"): {"10": far | more | {"marginals": 0.1}},
    }
    results = {cell: stored(cell, each) for cell, each in forms.items()}
    text = page_text(page.one_regressor_section(results))
    assert "| Likert | 1 |  |  | 0.01 | 0.02 | 0.2 | 0.01 |" in text
    assert "OpenDP is more accurate than Gramercy, pure: Likert at ε = 1 (loss)." in text
    text = page_text(page.synthetic_section(results))
    assert "MST is more accurate: clinic at ε = 1 (marginals, loss)." in text


def test_the_page_shows_where_others_are_better(tmp_path: Path) -> None:
    ours = Cell("three columns", 1.0, "private")
    scores = {form: {"error": 0.1, "loss": 0.02} for form in ("regression", "raw", "denoised")}
    better = {"1": {"error": 0.05, "loss": 0.04}, "3": {"error": 0.2, "loss": 0.01}}
    made = [
        Result(ours, 20_000, 3, 2, scores),
        Result(replace(ours, method="AdaSSP, true constants"), 20_000, 3, 2, better),
    ]
    parts = {"components, pure": 0.2, "components, OpenDP": 0.1}
    for method, lost in parts.items():
        cell, of = Cell("counts", 0.5, method), {"lost": lost, "first": 0.1, "share": 0.1}
        made.append(Result(cell, 20_000, 10, 2, {"": of}))
    for each in made:
        append(tmp_path / "results.jsonl", each)
    lines = regression_lines(read_results(tmp_path / "results.jsonl", cells.Result))
    assert lines["three columns", 1.0]["AdaSSP, true constants"] == {"error": 0.05, "loss": 0.01}
    page.write(tmp_path)
    text = (tmp_path / "results.md").read_text()
    assert "| three columns | 1 | AdaSSP, true constants | 0.50 | 0.50 |" in text
    assert "more accurate than Gramercy, pure: counts at ε = 0.5 (lost)." in text
    assert (tmp_path / "figures" / "loss.svg").exists()
