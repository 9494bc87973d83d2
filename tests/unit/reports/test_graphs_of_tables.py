"""Reports show the graphs of several tables side by side, and what differs between two."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

import gramercy
from gramercy.estimators import Evidence, registry
from gramercy.estimators.equal_terms import together
from gramercy.reports.analyses import analyses
from tests.support.factories import home_at, run_pipeline
from tests.support.survey import survey_request
from tests.unit.estimators.test_joint_graphical_lasso import of_rows, simulated

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


@pytest.mark.slow
def test_columns_have_one_place_in_all_graphs(page: str) -> None:
    figure = page[page.index('<figure class="graph multiples">') :]
    figure = figure[: figure.index("</figure>")]
    parts = re.findall(r"<div><b>([^<]*)</b>(.*?)</svg>", figure, re.DOTALL)
    assert [name for name, _ in parts] == ["A", "B", "C"]
    places = [sorted(PLACES.findall(drawing)) for _, drawing in parts]
    assert places[0] == places[1] == places[2] != []
    assert {"income", "hours"} <= {name for *_, name in places[0]}


@pytest.mark.slow
def test_shared_edges_are_listed_first(page: str) -> None:
    table = page[page.index("Edges by table") :]
    lines = re.findall(r'<tr><td class="pair">([^<]*)</td><td class="n">(\d)</td>', table)
    assert lines[0] == ("income, hours", "3")
    counts = [int(count) for _, count in lines]
    assert counts == sorted(counts, reverse=True)


@pytest.mark.slow
def test_differences_have_intervals_and_a_false_discovery_rate(page: str) -> None:
    part = page[page.index("difference: what differs, A minus B") :]
    sentence = part[: part.index("</p>")]
    assert "10 %" in sentence
    line = r'<tr><td class="pair">[^<]*, [^<]*</td>.*?</tr>'
    lines = re.findall(line, part[: part.index("Files:")])
    assert 0 < len(lines) <= 30
    assert all(" to " in line for line in lines)
    assert "aria-label" in part[: part.index("</figure>")]


def shown(tables: dict[str, Evidence], name: str, **settings: Any) -> str:
    """The part of a report about an estimate from several tables."""
    estimator = registry[name].model_validate(settings)
    made = estimator.fit(together(tables))
    facts = SimpleNamespace(
        estimate=name, kind=made.kind, estimator=estimator.model_dump(), tuning=made.tuning
    )
    data = SimpleNamespace(dataset=SimpleNamespace(id="toy"), release="v1-r1", count_key="rows")
    release: Any = SimpleNamespace(manifest=data, evidence=SimpleNamespace(radius=None))
    release.rows_of = lambda _: release
    estimate: Any = SimpleNamespace(manifest=facts, tables=made.tables, group=None)
    return str(analyses(release, [estimate])[0])


@pytest.mark.slow
def test_tables_without_a_picture_are_counted() -> None:
    page = shown(
        simulated(10, same=True),
        "joint-graphical-lasso",
        structure="fused",
        penalty=0.3,
        shared=0.5,
    )
    lines = re.findall(r'<tr><td class="pair">[^<]*</td><td class="n">(\d+)</td>', page)
    assert lines[0] == "10"
    assert "50 % is shared" not in page  # successive tables share beyond the penalty


def test_pairs_that_no_table_determines_are_said_to_be_untested() -> None:
    page = shown({"A": of_rows(3), "B": of_rows(4)}, "difference", between=("A", "B"))
    assert "66 pairs could not be tested" in page
    assert "below" not in page
    assert "<table" not in page
