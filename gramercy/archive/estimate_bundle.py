"""Writing and reading what was estimated from a release: matrices, tables and a graph."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gramercy.archive.bundle import check
from gramercy.archive.matrices import matrix_files, read_matrix, write_matrix
from gramercy.archive.package import EDGES, descriptor, read_manifest, write_descriptor
from gramercy.schemas.errors import BundleError
from gramercy.schemas.manifest import EstimateManifest

Array = NDArray[np.float64]

GRAPH = "graph.graphml"


@dataclass(frozen=True)
class EstimateBundle:
    """An estimate as read back: its seal holds and its formats agree.

    Parameters
    ----------
    manifest
        What it says of itself.
    matrices
        By name, the main one first; shape (p, p).
    tables
        By name.
    edges
        Weights of its graph, zero where there is no edge, if it has one; shape (p, p).
    sha256
        Digest of SHA256SUMS.
    """

    manifest: EstimateManifest
    matrices: Mapping[str, Array]
    tables: Mapping[str, pd.DataFrame]
    edges: Array | None
    sha256: str


def write_estimate(
    folder: Path,
    manifest: EstimateManifest,
    matrices: Mapping[str, Array],
    tables: Mapping[str, pd.DataFrame],
    edges: Array | None,
) -> None:
    """Fill an empty folder with an estimate."""
    for stem, matrix in matrices.items():
        write_matrix(folder, stem, matrix, manifest.names)
    for stem, table in tables.items():
        _write_table(folder, stem, table)
    if edges is not None:
        _write_table(folder, EDGES, _as_list(edges, manifest.names))
        (folder / GRAPH).write_text(_graphml(edges, manifest), encoding="utf-8", newline="\n")
    write_descriptor(folder, estimate_descriptor(folder, manifest))


def estimate_descriptor(folder: Path, manifest: EstimateManifest) -> dict[str, Any]:
    """What datapackage.json says of the files of an estimate."""
    name = f"{manifest.dataset.id}-{manifest.release}-{manifest.estimate}"
    title = f"{manifest.dataset.title}: {manifest.estimator['name']}"
    files = [f for stem in manifest.matrices for f in matrix_files(stem, len(manifest.names))]
    for stem in [*manifest.tables, *([EDGES] if manifest.graph else [])]:
        files += [f"{stem}.parquet", f"{stem}.csv"]
    return descriptor(folder, name, title, [*files, *([GRAPH] if manifest.graph else [])], manifest)


def read_estimate(folder: Path) -> EstimateBundle:
    """Read an estimate, verified.

    Raises
    ------
    BundleError
        Naming the file that is not what was sealed.
    """
    sha256 = check(folder)
    manifest = read_manifest(folder, EstimateManifest)
    matrices = {stem: read_matrix(folder, stem, manifest.names) for stem in manifest.matrices}
    tables = {stem: _read_table(folder, stem) for stem in manifest.tables}
    edges = _read_graph(folder, manifest) if manifest.graph else None
    return EstimateBundle(manifest, matrices, tables, edges, sha256)


def _write_table(folder: Path, stem: str, table: pd.DataFrame) -> None:
    held = pa.Table.from_pandas(table, preserve_index=False)
    pq.write_table(held, folder / f"{stem}.parquet", store_schema=False, compression="zstd")
    (folder / f"{stem}.csv").write_bytes(_csv(table).encode())


def _csv(table: pd.DataFrame) -> str:
    """With 17 digits every double comes back as it was."""
    text: str = table.to_csv(index=False, float_format="%.17g", lineterminator="\n")
    return text


def _read_table(folder: Path, stem: str) -> pd.DataFrame:
    path = folder / f"{stem}.parquet"
    try:
        # Without Arrow's threads: a process that ends while they start is aborted.
        held = pq.read_table(io.BytesIO(path.read_bytes()), use_threads=False, pre_buffer=False)
        table: pd.DataFrame = held.to_pandas()
        same = (folder / f"{stem}.csv").read_bytes() == _csv(table).encode()
    except Exception:  # whatever a parser makes of a file that was tampered with
        raise BundleError(f"{path}: is no table.") from None
    if not same:
        raise BundleError(f"{folder / stem}.csv: does not hold the table of {path.name}.")
    return table


def _as_list(edges: Array, names: tuple[str, ...]) -> pd.DataFrame:
    i, j = np.nonzero(np.triu(edges, 1))
    labels = np.array(names, dtype=object)
    return pd.DataFrame({"row": labels[i], "col": labels[j], "weight": edges[i, j]}).astype(
        {"row": "str", "col": "str"}
    )


def _graphml(edges: Array, manifest: EstimateManifest) -> str:
    import networkx as nx  # takes a third of a second

    graph = nx.Graph(
        release=f"{manifest.dataset.id}/{manifest.release}",
        estimate=manifest.estimate,
        privacy=manifest.privacy,
    )
    graph.add_nodes_from(manifest.names)
    i, j = np.nonzero(np.triu(edges, 1))
    named = ((manifest.names[a], manifest.names[b]) for a, b in zip(i, j, strict=True))
    graph.add_weighted_edges_from(
        (a, b, float(w)) for (a, b), w in zip(named, edges[i, j], strict=True)
    )
    return "\n".join(nx.generate_graphml(graph)) + "\n"


def _read_graph(folder: Path, manifest: EstimateManifest) -> Array:
    """The weights, and that the GraphML holds the same."""
    import networkx as nx

    place = {name: k for k, name in enumerate(manifest.names)}
    edges = np.zeros((len(place), len(place)))
    try:
        listed = _read_table(folder, EDGES)
        for row, col, weight in listed.itertuples(index=False):
            edges[place[row], place[col]] = edges[place[col], place[row]] = weight
        sound = np.isfinite(edges).all() and len(listed) == np.count_nonzero(np.triu(edges, 1))
        drawn = nx.parse_graphml((folder / GRAPH).read_text(encoding="utf-8"))
        found = nx.to_numpy_array(drawn, list(manifest.names), weight="weight")
    except BundleError:
        raise
    except Exception:  # whatever a parser makes of a file that was tampered with
        raise BundleError(f"{folder / GRAPH}: is no graph of these columns.") from None
    if not sound or set(drawn) != set(place) or not np.array_equal(found, edges):
        raise BundleError(f"{folder / GRAPH}: does not hold the edges of {EDGES}.parquet.")
    return edges
