"""What an estimate found, on the terminal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy.archive.estimate_bundle import EstimateBundle
from gramercy.cli.output.estimate_text import print_estimate
from gramercy.schemas.facts import DatasetFacts
from gramercy.schemas.manifest import FORMAT, EstimateManifest

NAMES = tuple(f"[c{k}]" for k in range(6))


def bundle(tables: dict[str, pd.DataFrame], edges: np.ndarray[Any, Any] | None) -> EstimateBundle:
    manifest = EstimateManifest(
        format=FORMAT,
        kind="graph",
        estimate="some-1",
        dataset=DatasetFacts(id="toy", title="A toy", curator="C", version="v1", rows=9),
        release="v1-r1",
        release_sha256="0" * 64,
        names=NAMES,
        estimator={"name": "some"},
        tuning={},
        matrices=(),
        tables=tuple(tables),
        graph=edges is not None,
        privacy="post-processing of the release; no further privacy cost",
        software={},
    )
    return EstimateBundle(manifest, {}, tables, edges, "0" * 64)


def lines(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_tables_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    table = pd.DataFrame({"term": ["[bold]age", "bmi\x1b"], "estimate": [1 / 3, np.nan]})
    print_estimate(bundle({"the_coefficients": table}, np.ones((6, 6))))
    assert lines(capsys) == [
        ["the", "coefficients"],
        ["term", "estimate"],
        ["[bold]age", "0.3333"],
        ["bmi\\x1b"],
    ]


def test_long_tables_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_estimate(bundle({"t": pd.DataFrame({"x": range(50)})}, None))
    printed = lines(capsys)
    assert printed[-2:] == [["19"], ["and", "30", "more", "rows"]]


def test_strongest_edges_are_printed_where_there_is_no_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    weights = np.zeros((6, 6))
    weights[0, 1], weights[2, 3] = 0.25, -0.5
    print_estimate(bundle({}, weights + weights.T))
    title, header, *rows = lines(capsys)
    assert title[:5] == ["2", "edges", "between", "15", "pairs"]
    assert header == ["row", "col", "weight"]
    assert rows == [["[c2]", "[c3]", "-0.5"], ["[c0]", "[c1]", "0.25"]]


def test_graph_without_edges(capsys: pytest.CaptureFixture[str]) -> None:
    print_estimate(bundle({}, np.zeros((6, 6))))
    assert len(lines(capsys)) == 1
