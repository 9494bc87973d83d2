"""The benchmark of weekly releases of a growing table, and the tables that its guide has of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.cells import append
from benchmarks.pages import symbols
from benchmarks.series import noise, page
from benchmarks.series.cells import Cell, Result
from benchmarks.series.strategies import STRATEGIES, norm, redrawn
from benchmarks.series.strategies import noise as exact_noise
from benchmarks.series.year import WAYS, publish_year
from gramercy.common.prefix_sums import PrefixSums

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "growing-tables.md"


@pytest.mark.slow
def test_guide_has_the_exact_figures() -> None:
    guide = GUIDE.read_text()
    for lines in (page.noise_table(), page.corrections_table(), page.redraws_table()):
        assert symbols("\n".join(lines)) in guide


def test_noise_of_ways_with_known_figures() -> None:
    weeks = 12
    root = np.sqrt(weeks)
    assert exact_noise("whole", weeks) == pytest.approx(np.full(weeks, root))
    assert exact_noise("whole", weeks, 1)[1:] == pytest.approx(np.sqrt(2) * root)
    assert exact_noise("weeks", weeks) == pytest.approx(np.sqrt(np.arange(1, weeks + 1)))
    # Two weeks and their sum: the sum and the two weeks are two estimates of one number.
    assert exact_noise("tree", 2)[-1] == pytest.approx(np.sqrt(2) * np.sqrt(2 / 3))
    series = PrefixSums(weeks)
    scale = np.sqrt(series.squared_norm())
    for width in (None, 1, 3):
        spreads = [series.spread(week, width) for week in range(width or 1, weeks + 1)]
        assert exact_noise("cumulative", weeks, width) == pytest.approx(scale * np.array(spreads))


def test_a_tree_has_no_sum_before_its_last_week() -> None:
    sums = STRATEGIES["tree"](52)
    assert norm(sums) == pytest.approx(np.sqrt(6))
    assert sums.sum(axis=1).max() == 32


def test_a_redraw_costs_less_than_another_series() -> None:
    grown = [redrawn(52, week) for week in range(1, 53)]
    assert min(grown) == pytest.approx(grown[0])
    assert 0.4 < grown[0] < grown[38] < grown[51] < 1


@pytest.mark.parametrize("way", STRATEGIES)
def test_measured_noise_is_the_exact_one(way: str) -> None:
    weeks, last = 6, 3
    drawn = noise.measure(way, 40, weeks, last)
    assert drawn.one == pytest.approx(1, abs=0.15)
    for name, width in (("so_far", None), ("last", last), ("single", 1)):
        assert getattr(drawn, name) == pytest.approx(exact_noise(way, weeks, width), rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_year_by_the_pipeline(
    way: str, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GRAMERCY_HOME", str(home))  # is put back after the test
    weeks = 4
    year = publish_year(way, weeks, 60)
    assert year.epsilon == pytest.approx(1, abs=1e-4)
    assert len(year.seconds) == weeks
    assert year.error == pytest.approx(exact_noise(way, weeks)[-1], rel=0.35)
    append(tmp_path / "results.jsonl", Result(Cell("pipeline", way, 60), 1.0, year=year))
    page.write(tmp_path)
    assert f"{year.error:.2f}" in (tmp_path / "results.md").read_text()
