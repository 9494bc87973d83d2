"""Reports show the graphs of several tables side by side, and what differs between two."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import gramercy
from tests.support.factories import home_at, run_pipeline
from tests.support.survey import survey_request

pytestmark = pytest.mark.slow

PLACES = re.compile(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="[\d.]+"><title>([^<]*)</title>')


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tables")
    request = survey_request(folder, epsilon=8.0, rows=20_000, by="ward")
    facts = yaml.safe_load(request.read_text())
    facts["estimates"] = [
        {"name": "joint-graphical-lasso", "penalty": 0.05, "shared": 0.5},
        {"name": "difference", "between": ["A", "B"], "rate": 0.1},
    ]
    request.write_text(yaml.safe_dump(facts))
    with home_at(folder / "home") as home:
        run_pipeline(request)
    report = gramercy.open(home / "archive").latest("toy").report
    assert report is not None
    return Path(report).read_text(encoding="utf-8")


def test_columns_have_one_place_in_all_graphs(page: str) -> None:
    figure = page[page.index('<figure class="graph multiples">') :]
    figure = figure[: figure.index("</figure>")]
    parts = re.findall(r"<div><b>([^<]*)</b>(.*?)</svg>", figure, re.DOTALL)
    assert [name for name, _ in parts] == ["A", "B", "C"]
    places = [sorted(PLACES.findall(drawing)) for _, drawing in parts]
    assert places[0] == places[1] == places[2] != []
    assert {"income", "hours"} <= {name for *_, name in places[0]}


def test_shared_edges_are_listed_first(page: str) -> None:
    table = page[page.index("Edges by table") :]
    lines = re.findall(r'<tr><td class="pair">([^<]*)</td><td class="n">(\d)</td>', table)
    assert lines[0] == ("income, hours", "3")
    counts = [int(count) for _, count in lines]
    assert counts == sorted(counts, reverse=True)


def test_differences_have_intervals_and_a_false_discovery_rate(page: str) -> None:
    part = page[page.index("difference: what differs, A minus B") :]
    sentence = part[: part.index("</p>")]
    assert "10 %" in sentence
    line = r'<tr><td class="pair">[^<]*, [^<]*</td>.*?</tr>'
    lines = re.findall(line, part[: part.index("Files:")])
    assert 0 < len(lines) <= 30
    assert all(" to " in line for line in lines)
    assert "aria-label" in part[: part.index("</figure>")]
