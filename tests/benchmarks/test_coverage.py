"""The coverage benchmark: its populations and counts are correct."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cells import append, read_results
from benchmarks.coverage import cells, page, populations, tables
from benchmarks.coverage.populations import GRAPHS, QUANTITIES, population
from benchmarks.coverage.scores import Edges, Entries
from gramercy.estimators.noise.draws import Stream
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import Family, NoiseLaw

SOME: list[tuple[Family, float]] = [("none", 0.0), ("laplace", 0.01), ("noisy-rows", 0.2)]
CELL = cells.Cell("hub", 10, 1000, "unit")


@pytest.mark.parametrize("rows", ["gaussian", "unit"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_samples_match_the_population(graph: str, rows: str) -> None:
    assert rows in {"gaussian", "unit"}
    made = population(graph, 10, rows)
    drawn = np.mean(list(islice(made.moments(20_000, 1), 5)), axis=0)
    target = made.targets["covariance"]
    assert np.trace(target) == pytest.approx(made.power * 10)
    assert made.power == pytest.approx(0.1 if rows == "unit" else 0.05)
    np.testing.assert_allclose(drawn, target, atol=0.05 * made.power)
    partial = made.targets["partial-correlation"][made.related["partial-correlation"]]
    stray = made.stray("partial-correlation")
    assert stray < (0.01 if rows == "unit" else 1e-9)
    assert np.abs(partial).min() > 0.1


@pytest.mark.parametrize("family", populations.FAMILIES[1:])
def test_noise_has_the_requested_strength(family: Family) -> None:
    p, n, moment, strength = 6, 500, np.eye(6) / 6, 0.01
    law = populations.law_of(family, p, n, 1 / p, strength)
    source, off = Stream(1), ~np.eye(p, dtype=bool)
    made = [populations.release(moment, n, law, source, unit=True) for _ in range(40)]
    spread = math.sqrt(np.mean([(each.raw - moment)[off] ** 2 for each in made]))
    assert spread == pytest.approx(strength / p, rel=0.2)
    assert law.sd_off_diagonal == pytest.approx(strength / p)


def test_interval_coverage_is_counted() -> None:
    moment, target = np.eye(2) / 2, np.array([[1.0, 0.1], [0.1, 1.0]])
    entries = Entries("correlation", target)
    for rows in (100.0, 100.0, 100_000.0) * 2:  # the last interval is too short for 0.1
        entries.add(Evidence(moment, moment, NoiseLaw.none(), rows, unit=False))
    found = entries.summary()
    assert found.known == 1
    assert found.held == pytest.approx(2 / 3, abs=1e-4)
    assert found.error == pytest.approx(math.sqrt(4 / 15 / 6), abs=1e-4)  # four 1, two 0
    seldom = Entries("correlation", target)
    for _ in range(4):
        seldom.add(Evidence(moment, moment, NoiseLaw.none(), 100.0, unit=False))
    assert seldom.error() == math.inf
    assert seldom.summary().error is None
    lost = Entries("partial-correlation", target)
    for _ in range(2):
        lost.add(Evidence(-moment, moment, NoiseLaw.none(), 100.0, unit=False))
    assert (lost.summary().known, lost.summary().held, lost.error()) == (0, None, 0)


def test_interval_width_equals_the_oracle_width() -> None:
    made, law = population("random", 10, "gaussian"), NoiseLaw.none()
    entries = Entries("covariance", made.targets["covariance"])
    for moment in islice(made.moments(1000, 3), 60):
        entries.add(populations.release(moment, 1000, law, Stream(1), unit=False))
    width = entries.summary().width
    assert width is not None
    assert width == pytest.approx(1, abs=0.1)


def test_discoveries_are_counted() -> None:
    moment = np.eye(3)
    moment[0, 1] = moment[1, 0] = moment[1, 2] = moment[2, 1] = 0.5
    related = np.zeros((3, 3), dtype=bool)
    related[0, 1] = related[1, 0] = True
    edges = Edges("correlation", related)
    edges.add(Evidence(moment, moment, NoiseLaw.none(), 1000.0, unit=False))
    edges.add(Evidence(np.eye(3), np.eye(3), NoiseLaw.none(), 1000.0, unit=False))
    found = edges.summary()["0.05"]
    assert (found.false, found.error, found.power) == (0.25, 0.25, 0.5)


def test_cell_is_measured_stored_and_reported(tmp_path: Path) -> None:
    path, measured = tmp_path / "results.jsonl", cells.measure(CELL, 2, SOME)
    assert [(each.family, each.strength) for each in measured.settings] == SOME
    assert measured.stray["partial-correlation"] < 0.01
    append(path, measured)
    held = read_results(path, cells.Result)
    assert held == {CELL: measured}
    half = tmp_path / "half.jsonl"
    for some in (measured.settings[:1], measured.settings[1:]):
        append(half, replace(measured, seconds=measured.seconds / 2, settings=some))
    assert read_results(half, cells.Result)[CELL].settings == measured.settings
    lines = tables.intervals(held)
    assert len(lines) == len(SOME) * len(QUANTITIES)
    assert tables.known(lines)["held"].between(0, 1).all()
    outside = tables.outside(lines)
    assert (~outside["held"].between(*tables.BAND)).all()
    page.write(tmp_path)
    text = (tmp_path / "results.md").read_text()
    assert text.count("| hub | 10 | 1000 | unit |") == len(outside)
    assert "## False discoveries" in text
    assert (tmp_path / "figures/coverage.svg").exists()
    assert (tmp_path / "figures/power.svg").exists()


def test_missing_noise_laws_of_a_cell_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "kinds", lambda: iter(SOME))
    (first, most), *others = cells.plan(quick=True)
    measured = replace(cells.measure(CELL, 2, SOME[1:]), cell=first, most=most)
    missing = [(first, most, SOME[:1]), *((*each, SOME) for each in others)]
    assert list(cells.missing(True, {first: measured})) == missing


def test_sampling_stops_when_coverage_is_precise(monkeypatch: pytest.MonkeyPatch) -> None:
    one: list[cells.Kind] = [("gaussian-iid", 0.001)]
    monkeypatch.setattr(cells, "PRECISE", 0.05)
    monkeypatch.setattr(cells, "LEAST", 5)
    (setting,) = cells.measure(CELL, 60, one).settings
    assert 5 <= setting.releases < 60
    assert max(each.error or 0 for each in setting.coverage.values()) <= 0.05
    monkeypatch.setattr(cells, "PRECISE", 0.0)
    assert cells.measure(CELL, 4, one).settings[0].releases == 4
