"""Writing and reading estimate bundles: matrices, tables and a graph."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gramercy.archive.bundle import check
from gramercy.archive.matrices import matrix_files, read_matrix, write_matrix
from gramercy.archive.package import EDGES, descriptor, read_manifest, write_descriptor
from gramercy.archive.parquet_limits import bounded_bytes, open_checked, read_bounded
from gramercy.common.spreadsheet import not_a_formula
from gramercy.schemas.errors import BundleError
from gramercy.schemas.manifest import EstimateManifest
from gramercy.schemas.problems.bundle import formats_differ, not_a_graph, not_a_table

Array = NDArray[np.float64]

GRAPH = "graph.graphml"

# Limits on what is read from a hostile archive: of CSV files, and of graphs as GraphML.
_CSV_BYTES, _ENTRY_BYTES = 32 << 20, 128
_EXPANSION = 8  # a number needs 8 bytes, and in CSV at least one
_NODE_BYTES, _EDGE_BYTES, _CHARACTER_BYTES = 256, 256, 8


@dataclass(frozen=True)
class EstimateBundle:
    """An estimate as read from disk; its seal is valid, and its formats agree.

    Parameters
    ----------
    manifest
        Its public facts.
    matrices
        Matrices by name, the main one first; shape (p, p).
    tables
        Tables by name.
    edges
        Weights of its graph, shape (p, p), zero for missing edges; None if it has no graph.
    sha256
        Digest of SHA256SUMS.
    """

    manifest: EstimateManifest
    matrices: Mapping[str, Array]
    tables: Mapping[str, pd.DataFrame]
    edges: Array | None
    sha256: str

    @property
    def group(self) -> str | None:
        """Name of the group of rows that it was computed from; None for all rows."""
        group = self.manifest.estimator.get("group")
        return None if group is None else str(group)


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
        _write_table(folder, EDGES, _edge_list(edges, manifest.names))
        (folder / GRAPH).write_text(_graphml(edges, manifest), encoding="utf-8", newline="\n")
    write_descriptor(folder, estimate_descriptor(folder, manifest))


def estimate_descriptor(folder: Path, manifest: EstimateManifest) -> dict[str, Any]:
    """The content of datapackage.json for an estimate."""
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
        Naming the file that differs from what was sealed.
    """
    sha256 = check(folder)
    manifest = read_manifest(folder, EstimateManifest)
    matrices = {stem: read_matrix(folder, stem, manifest.names) for stem in manifest.matrices}
    tables = {stem: _read_table(folder, stem, len(manifest.names)) for stem in manifest.tables}
    edges = _read_graph(folder, manifest) if manifest.graph else None
    return EstimateBundle(manifest, matrices, tables, edges, sha256)


def _write_table(folder: Path, stem: str, table: pd.DataFrame) -> None:
    arrow_table = pa.Table.from_pandas(table, preserve_index=False)
    pq.write_table(arrow_table, folder / f"{stem}.parquet", store_schema=False, compression="zstd")
    (folder / f"{stem}.csv").write_bytes(_csv(_without_formulas(table)))


def _csv(table: pd.DataFrame) -> bytes:
    """The table as CSV; with 17 digits, every double is read back exactly."""
    text: str = table.to_csv(index=False, float_format="%.17g", lineterminator="\n")
    return text.encode()


def _without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """The table with an apostrophe before names that a spreadsheet program could execute."""
    safe = table.rename(columns=lambda name: not_a_formula(str(name)))
    for k in range(table.shape[1]):
        cells = table.iloc[:, k]
        if not pd.api.types.is_numeric_dtype(cells):
            safe.isetitem(k, [not_a_formula(x) if isinstance(x, str) else x for x in cells])
    return safe


def _read_table(folder: Path, stem: str, columns: int) -> pd.DataFrame:
    """A table of an estimate from a release with this many columns."""
    path, same = folder / f"{stem}.parquet", False
    try:
        size = (folder / f"{stem}.csv").stat().st_size
        if size > _CSV_BYTES + _ENTRY_BYTES * columns * columns:
            raise ValueError
        stated = (folder / f"{stem}.csv").read_bytes()
        # A line of CSV is a row, unless a text contains line breaks.
        table = _read_parquet(path, stated.count(b"\n"), len(stated))
        # Earlier bundles have names that begin like formulas unchanged.
        same = stated == _csv(_without_formulas(table)) or stated == _csv(table)
    except Exception:  # a file that was tampered with may make a parser raise anything
        raise not_a_table(str(path)) from None
    if not same:
        raise formats_differ(f"{folder / stem}.csv", path.name)
    return table


def _read_parquet(path: Path, most_rows: int, csv_bytes: int) -> pd.DataFrame:
    """The table in a Parquet file, which also exists as CSV with this number of bytes."""
    size = bounded_bytes(0) + _EXPANSION * csv_bytes
    if path.stat().st_size > size:
        raise ValueError
    with open_checked(io.BytesIO(path.read_bytes())) as file:
        rows, types = file.metadata.num_rows, {x.name: x.type for x in file.schema_arrow}
    texts = [name for name, kind in types.items() if pa.types.is_string(kind)]
    if rows > most_rows or any(pa.types.is_nested(kind) for kind in types.values()):
        raise ValueError
    table = read_bounded(path, texts, rows, size)
    for k, name in enumerate(table.column_names):
        if name in texts:
            table = table.set_column(k, name, _decoded(table[name], csv_bytes))
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _decoded(cells: pa.ChunkedArray, most_bytes: int) -> pa.ChunkedArray:
    """Texts that were dictionary-encoded; ValueError if they need more bytes in all."""
    for chunk in cells.chunks:
        lengths = pc.fill_null(pc.binary_length(chunk.dictionary), 0).to_numpy(False)
        codes = chunk.indices.drop_null().to_numpy(False)
        if len(codes) and lengths.astype(np.int64)[codes].sum() > most_bytes:
            raise ValueError
    return cells.cast(pa.string())


def _edge_list(edges: Array, names: tuple[str, ...]) -> pd.DataFrame:
    i, j = np.nonzero(np.triu(edges, 1))
    labels = np.array(names, dtype=object)
    return pd.DataFrame({"row": labels[i], "col": labels[j], "weight": edges[i, j]}).astype(
        {"row": "str", "col": "str"}
    )


def _graphml(edges: Array, manifest: EstimateManifest) -> str:
    import networkx as nx  # imported here, because it takes a third of a second

    from gramercy.common.graphs import weighted_graph  # imports networkx

    graph = weighted_graph(
        manifest.names,
        edges,
        release=f"{manifest.dataset.id}/{manifest.release}",
        estimate=manifest.estimate,
        privacy=manifest.privacy,
    )
    return "\n".join(nx.generate_graphml(graph)) + "\n"


def _graph_text(path: Path, names: Sequence[str], edges: int) -> str:
    """The text of a GraphML file; ValueError if it is too large, or defines XML entities."""
    longest = _CHARACTER_BYTES * max(map(len, names))
    # Each name is an id and two attributes.
    nodes = len(names) * _NODE_BYTES + 3 * _CHARACTER_BYTES * sum(map(len, names))
    if path.stat().st_size > _CSV_BYTES + nodes + edges * (_EDGE_BYTES + 2 * longest):
        raise ValueError
    text = path.read_text(encoding="utf-8")
    if "<!" in text:
        raise ValueError
    return text


def _read_graph(folder: Path, manifest: EstimateManifest) -> Array:
    """The weights of the edges, which the table and the GraphML file must both contain."""
    import networkx as nx

    from gramercy.common.graphs import has_own_names  # imports networkx

    index = {name: k for k, name in enumerate(manifest.names)}
    edges = np.zeros((len(index), len(index)))
    try:
        table = _read_table(folder, EDGES, len(index))
        for row, col, weight in table.itertuples(index=False):
            edges[index[row], index[col]] = edges[index[col], index[row]] = weight
        valid = np.isfinite(edges).all() and len(table) == np.count_nonzero(np.triu(edges, 1))
        graph = nx.parse_graphml(_graph_text(folder / GRAPH, manifest.names, len(table)))
        weights = nx.to_numpy_array(graph, list(manifest.names), weight="weight")
        valid &= has_own_names(graph)
    except BundleError:
        raise
    except Exception:  # a file that was tampered with may make a parser raise anything
        raise not_a_graph(str(folder / GRAPH)) from None
    if not valid or set(graph) != set(index) or not np.array_equal(weights, edges):
        raise formats_differ(str(folder / GRAPH), f"{EDGES}.parquet")
    return edges
