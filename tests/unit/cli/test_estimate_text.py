"""What an estimate found, on the terminal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy.archive.bundles.bundle_kinds import EstimateBundle
from gramercy.cli.estimate import estimate_facts, print_estimate
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


def test_wide_tables_are_printed_in_parts(capsys: pytest.CaptureFixture[str]) -> None:
    """Every header and number is whole, and every part begins with the names of the rows."""
    numbers = {f"a_long_name_of_a_count_{k}": [26_583.25 * (k + 1), 0.5] for k in range(8)}
    print_estimate(bundle({"t": pd.DataFrame({"ward": ["A", "B"], **numbers})}, None))
    printed = lines(capsys)
    headers = [line for line in printed if line[0] == "ward"]
    assert [name for line in headers for name in line[1:]] == list(numbers)
    assert len(headers) > 1
    cells = [cell for line in printed if line[0] == "A" for cell in line[1:]]
    assert cells == [f"{26_583.25 * (k + 1):.0f}" for k in range(8)]


def test_tables_and_edges_as_plain_data() -> None:
    table = pd.DataFrame({"term": ["age", "bmi"], "estimate": [np.inf, np.nan], "n": [1, 2]})
    assert estimate_facts(bundle({"t": table}, None)) == {
        "t": [{"term": "age", "estimate": None, "n": 1}, {"term": "bmi", "estimate": None, "n": 2}]
    }
    weights = np.zeros((6, 6))
    weights[0, 1] = weights[1, 0] = 0.25
    (edge,) = estimate_facts(bundle({}, weights))["edges"]
    assert edge == {"row": "[c0]", "col": "[c1]", "weight": 0.25}
