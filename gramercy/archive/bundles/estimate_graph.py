"""The graph of an estimate on disk: its edges as Parquet (canonical) and CSV, and as GraphML.

A graph with very many edges, such as that of a ridge estimate, is a matrix in the shape of a list:
it is stored as Parquet alone, which takes a tenth of the space and of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gramercy.archive.bundles.estimate_tables import read_table, write_table
from gramercy.archive.bundles.package import EDGES
from gramercy.archive.bundles.parquet_limits import codes_of, read_bounded
from gramercy.schemas import families, wordings
from gramercy.schemas.manifest import EstimateManifest

Array = NDArray[np.float64]

GRAPH = "graph.graphml"
MOST_EDGES = 50_000  # of a graph as CSV and GraphML
_PARQUET, _CSV = f"{EDGES}.parquet", f"{EDGES}.csv"
_SCHEMA = pa.schema([("row", pa.string()), ("col", pa.string()), ("weight", pa.float64())])
# Limits on what is read of a hostile archive's GraphML.
_FILE_BYTES, _NODE_BYTES, _EDGE_BYTES, _CHARACTER_BYTES = 32 << 20, 256, 256, 8


def graph_files(folder: Path) -> list[str]:
    """The files of the graph in a folder."""
    return [name for name in (_PARQUET, _CSV, GRAPH) if (folder / name).exists()]


def write_graph(folder: Path, edges: Array, manifest: EstimateManifest) -> None:
    """Write a graph: as Parquet, and up to `MOST_EDGES` edges as CSV and GraphML.

    Parameters
    ----------
    folder
        Folder of the estimate.
    edges
        Weights, shape (p, p), symmetric; zero for missing edges.
    manifest
        Its facts, with the p names.
    """
    i, j = np.nonzero(np.triu(edges, 1))
    words = pa.array(manifest.names, pa.string())
    rows, cols = (pa.DictionaryArray.from_arrays(pa.array(k, pa.int32()), words) for k in (i, j))
    table = pa.table({"row": rows, "col": cols, "weight": pa.array(edges[i, j])})
    if i.size > MOST_EDGES:
        pq.write_table(table, folder / _PARQUET, store_schema=False, compression="zstd")
        return
    write_table(folder, EDGES, table.cast(_SCHEMA).to_pandas())
    import networkx as nx

    text = "\n".join(nx.generate_graphml(as_graph(edges, manifest))) + "\n"
    (folder / GRAPH).write_text(text, encoding="utf-8", newline="\n")


def read_graph(folder: Path, names: Sequence[str]) -> Array:
    """The weights of the edges, shape (p, p), which all files must contain.

    Raises
    ------
    BundleError
        Naming the file that is missing, that is not a graph of these columns, or that differs.
    """
    edges = _read_edges(folder / _PARQUET, names)
    # Other files may exist for any number of edges, and must then agree.
    if np.count_nonzero(edges) > 2 * MOST_EDGES and graph_files(folder) == [_PARQUET]:
        return edges
    read_table(folder, EDGES, len(names))
    if not _same_graphml(folder / GRAPH, edges, names):
        raise wordings.formats_differ(str(folder / GRAPH), _PARQUET)
    return edges


def as_graph(edges: Array, manifest: EstimateManifest) -> Any:
    """The graph as a `networkx.Graph`, with the release that it comes from as attributes."""
    from gramercy.common.graphs import weighted_graph  # imports networkx: a third of a second

    return weighted_graph(
        manifest.names,
        edges,
        release=f"{manifest.dataset.id}/{manifest.release}",
        estimate=manifest.estimate,
        privacy=manifest.privacy,
    )


def _read_edges(path: Path, names: Sequence[str]) -> Array:
    p, valid = len(names), False
    edges = np.zeros((p, p))
    try:
        table = read_bounded(path, p * (p - 1) // 2)
        i, j = codes_of(table["row"], names), codes_of(table["col"], names)
        edges[i, j] = table["weight"].to_numpy()
        found = np.nonzero(np.triu(edges, 1))
        valid = bool(np.isfinite(edges).all()) and table.column_names == [*_SCHEMA.names]
        valid &= np.array_equal(found, (i, j))
    except Exception:  # a file that was tampered with may make Arrow raise anything
        valid = False
    if not valid:
        raise wordings.not_a_table(str(path))
    return edges + edges.T


def _same_graphml(path: Path, edges: Array, names: Sequence[str]) -> bool:
    import networkx as nx

    from gramercy.common.graphs import has_own_names  # imports networkx

    try:
        graph = nx.parse_graphml(_bounded_text(path, names, int(np.count_nonzero(edges))))
        weights = nx.to_numpy_array(graph, list(names), weight="weight")
        return has_own_names(graph) and set(graph) == set(names) and np.array_equal(weights, edges)
    except Exception:  # a file that was tampered with may make a parser raise anything
        raise families.CONTENT(
            "{path} is not a graph of these columns.",
            "Fetch the bundle again from its curator.",
            path=str(path),
        ) from None


def _bounded_text(path: Path, names: Sequence[str], edges: int) -> str:
    """The text of a GraphML file; ValueError if it is too large, or defines XML entities."""
    longest = _CHARACTER_BYTES * max(map(len, names))
    # Each name is an id and two attributes.
    nodes = len(names) * _NODE_BYTES + 3 * _CHARACTER_BYTES * sum(map(len, names))
    if path.stat().st_size > _FILE_BYTES + nodes + edges * (_EDGE_BYTES + 2 * longest):
        raise ValueError
    text = path.read_text(encoding="utf-8")
    if "<!" in text:
        raise ValueError
    return text
