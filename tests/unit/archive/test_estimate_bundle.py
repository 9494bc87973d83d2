"""Estimates on disk: matrices, tables and a graph round-trip exactly, or are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from gramercy.archive.bundles import bundle_kinds
from gramercy.archive.bundles.bundle_kinds import (
    GRAPH,
    EstimateBundle,
    read_estimate,
    write_estimate,
)
from gramercy.archive.bundles.package import read_descriptor
from gramercy.archive.seal.bundle import SEAL, seal
from gramercy.schemas import families
from gramercy.schemas.facts import DatasetFacts
from gramercy.schemas.manifest import FORMAT, EstimateManifest
from tests.support.problems import raises

NAMES = ("c0", "sex=female", "größe & <b>")
MATRIX = np.array([[1.0, 0.1, 0.0], [0.1, 2.0, -1 / 3], [0.0, -1 / 3, np.pi]])
EDGES = np.array([[0.0, 0.1, 0.0], [0.1, 0.0, -0.3], [0.0, -0.3, 0.0]])
TABLE = pd.DataFrame({"class": ["a\r\nb", "b, c"], "share": [1 / 3, 2 / 3], "rows": [3, 7]})


def write_sample(folder: Path, **facts: Any) -> Path:
    folder.mkdir()
    manifest = EstimateManifest(
        format=FORMAT,
        kind="graph",
        estimate="some-1",
        dataset=DatasetFacts(id="toy", title="A toy", curator="C", version="v1", rows=9),
        release="v1-r1",
        release_sha256="0" * 64,
        names=NAMES,
        estimator={"name": "some"},
        tuning={"penalty": 0.1},
        matrices=("weights",),
        tables=("classes",),
        graph=True,
        privacy="post-processing of the release; no further privacy cost",
        software={},
    ).model_copy(update=facts)
    matrices = {"weights": MATRIX} if manifest.matrices else {}
    tables = {"classes": TABLE} if manifest.tables else {}
    write_estimate(folder, manifest, matrices, tables, EDGES if manifest.graph else None)
    seal(folder)
    return folder


def test_estimate_round_trips(tmp_path: Path) -> None:
    bundle = read_estimate(write_sample(tmp_path / "e"))
    assert (bundle.matrices["weights"] == MATRIX).all()
    assert (bundle.edges == EDGES).all()
    pd.testing.assert_frame_equal(bundle.tables["classes"], TABLE, check_dtype=False)
    assert (bundle.tables["classes"]["share"] == TABLE["share"]).all()


@pytest.mark.parametrize("kept", ["matrices", "tables", "graph"])
def test_estimate_with_one_kind_of_content_round_trips(tmp_path: Path, kept: str) -> None:
    nothing = {"matrices": (), "tables": (), "graph": False}
    del nothing[kept]
    bundle: EstimateBundle = read_estimate(write_sample(tmp_path / "e", **nothing))
    assert bool(bundle.matrices) == (kept == "matrices")
    assert bool(bundle.tables) == (kept == "tables")
    assert (bundle.edges is not None) == (kept == "graph")


@pytest.mark.slow
def test_nodes_of_graphml_have_names_and_labels(tmp_path: Path) -> None:
    place = write_sample(tmp_path / "e")
    graph = nx.read_graphml(place / GRAPH)
    for key in ("name", "label"):
        assert nx.get_node_attributes(graph, key) == {name: name for name in NAMES}
    assert (nx.to_numpy_array(graph, NAMES) == EDGES).all()
    # R's igraph reads attributes by the names that the keys declare.
    declared = ElementTree.parse(place / GRAPH).getroot().findall("{*}key")
    kinds = {(key.get("for"), key.get("attr.name")) for key in declared}
    of_graph = {("graph", name) for name in ("release", "estimate", "privacy")}
    assert kinds == {("node", "name"), ("node", "label"), ("edge", "weight"), *of_graph}


def test_graphml_of_earlier_versions_without_names_is_read(tmp_path: Path) -> None:
    place = write_sample(tmp_path / "e")
    graph = nx.read_graphml(place / GRAPH)
    for facts in graph.nodes.values():
        facts.clear()
    reseal_graph(place, graph)
    assert (read_estimate(place).edges == EDGES).all()


@pytest.mark.parametrize("key", ["name", "label"])
def test_node_with_the_name_of_another_is_refused(tmp_path: Path, key: str) -> None:
    place = write_sample(tmp_path / "e")
    graph = nx.read_graphml(place / GRAPH)
    graph.nodes[NAMES[0]][key] = NAMES[1]
    reseal_graph(place, graph)
    with raises(families.CONTENT, path=str(place / GRAPH)):
        read_estimate(place)


def reseal_graph(place: Path, graph: nx.Graph) -> None:
    """Replace the graph of a bundle, and seal it again."""
    (place / GRAPH).write_text("\n".join(nx.generate_graphml(graph)), encoding="utf-8")
    seal(place)


def test_graphml_states_the_privacy_cost(tmp_path: Path) -> None:
    place = write_sample(tmp_path / "e")
    graph = nx.read_graphml(place / GRAPH)
    assert graph.graph["privacy"] == "post-processing of the release; no further privacy cost"
    assert graph.graph["release"] == "toy/v1-r1"
    assert set(graph) == set(NAMES)
    assert graph.edges["c0", "sex=female"]["weight"] == 0.1


def test_descriptor_lists_every_file_and_field(tmp_path: Path) -> None:
    place = write_sample(tmp_path / "e")
    resources = {each["path"]: each for each in read_descriptor(place)["resources"]}
    assert resources.keys() == {p.name for p in place.iterdir()} - SEAL - {"datapackage.json"}
    types = {f["name"]: f["type"] for f in resources["classes.csv"]["schema"]["fields"]}
    assert types == {"class": "string", "share": "number", "rows": "number"}
    for name in ("classes.csv", "edges.csv", "weights.csv"):
        fields = [field["name"] for field in resources[name]["schema"]["fields"]]
        assert list(pd.read_csv(place / name).columns) == fields


def edited(change: Callable[[str], str]) -> Callable[[Path], None]:
    return lambda path: path.write_text(change(path.read_text()), encoding="utf-8") and None


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("classes.csv", edited(lambda text: text.replace("a", "z", 1))),
        ("classes.parquet", lambda path: path.write_bytes(b"nothing")),
        ("edges.csv", edited(lambda text: text.replace("0.1", "0.2"))),
        (GRAPH, edited(lambda text: text.replace("-0.3", "-0.4"))),
        (GRAPH, edited(lambda text: "<graphml/>")),
        ("weights.csv", edited(lambda text: text.replace("0.1", "0.3"))),
    ],
)
def test_formats_that_disagree_are_refused(
    tmp_path: Path, file: str, change: Callable[[Path], object]
) -> None:
    """Even if the bundle is sealed again after the change."""
    place = write_sample(tmp_path / "e")
    before = (place / file).read_bytes()
    for path in place.iterdir():
        path.chmod(0o644)
    change(place / file)
    assert (place / file).read_bytes() != before
    seal(place)
    with raises(families.CONTENT, path=str(place / file)):
        read_estimate(place)


def write_dense(folder: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> Path:
    with monkeypatch.context() as patch:
        patch.setattr(bundle_kinds, "MOST_EDGES", most)
        return write_sample(folder)


def test_graph_with_very_many_edges_is_stored_as_parquet_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write_dense(tmp_path / "e", monkeypatch, 1)
    assert not {GRAPH, "edges.csv"} & {path.name for path in place.iterdir()}
    resources = [each["path"] for each in read_descriptor(place)["resources"]]
    assert "edges.parquet" in resources
    assert GRAPH not in resources
    with raises(families.CONTENT, path=str(place / "edges.parquet")):
        read_estimate(place)  # two edges are few: their other files must not be missing
    monkeypatch.setattr(bundle_kinds, "MOST_EDGES", 1)
    bundle = read_estimate(place)
    assert bundle.edges is not None
    assert (bundle.edges == EDGES).all()
    graph = bundle.graph()
    assert (nx.to_numpy_array(graph, NAMES) == EDGES).all()
    assert graph.graph["release"] == "toy/v1-r1"


def test_all_files_of_a_dense_graph_are_read_where_they_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write_sample(tmp_path / "e")
    monkeypatch.setattr(bundle_kinds, "MOST_EDGES", 1)
    assert (read_estimate(place).edges == EDGES).all()
    edited(lambda text: text.replace("-0.3", "-0.4"))(place / GRAPH)
    reseal_graph(place, nx.read_graphml(place / GRAPH))
    with raises(families.CONTENT, path=str(place / GRAPH)):
        read_estimate(place)


@pytest.mark.parametrize(
    "table",
    [
        {"row": ["c0", "c0"], "col": ["sex=female", "sex=female"], "weight": [0.1, 0.1]},
        {"row": ["sex=female", "c0"], "col": [NAMES[2], "sex=female"], "weight": [0.1, 0.1]},
        {"row": ["sex=female"], "col": ["c0"], "weight": [0.1]},
        {"row": ["c0"], "col": ["c0"], "weight": [0.1]},
        {"row": ["c0"], "col": ["d"], "weight": [0.1]},
        {"row": ["c0"], "col": ["sex=female"], "weight": [0.0]},
        {"row": ["c0"], "col": ["sex=female"], "weight": [np.nan]},
        {"row": ["c0"] * 4, "col": ["sex=female"] * 4, "weight": [0.1] * 4},
        {"row": ["c0"], "column": ["sex=female"], "weight": [0.1]},
    ],
)
def test_edges_of_other_columns_are_refused(tmp_path: Path, table: dict[str, Any]) -> None:
    place = write_sample(tmp_path / "e")
    pd.DataFrame(table).to_parquet(place / "edges.parquet", index=False)
    reseal_graph(place, nx.read_graphml(place / GRAPH))
    with raises(families.CONTENT, path=str(place / "edges.parquet")):
        read_estimate(place)
