"""Writing and reading estimate bundles: matrices, tables and a graph.

Tables are Parquet (canonical) and CSV. The edges of a graph are such a table, and GraphML. A graph
with very many edges, such as that of a ridge estimate, is a matrix in the shape of a list: it is
stored as Parquet alone, which takes a tenth of the space and of the time.
"""

from __future__ import annotations

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

from gramercy.archive.bundles.escaped_texts import not_a_formula
from gramercy.archive.bundles.matrices import matrix_files, read_matrix, write_matrix
from gramercy.archive.bundles.package import EDGES, descriptor, read_manifest, write_descriptor
from gramercy.archive.bundles.parquet_limits import bounded_bytes, codes_of, read_bounded
from gramercy.archive.seal.bundle import check
from gramercy.schemas import families, wordings
from gramercy.schemas.manifest import EstimateManifest

Array = NDArray[np.float64]


@dataclass(frozen=True)
class EstimateBundle:
    """An estimate as read from disk; its seal is valid, and its formats agree."""

    manifest: EstimateManifest  # its public facts
    matrices: Mapping[str, Array]  # matrices by name, the main one first; shape (p, p)
    tables: Mapping[str, pd.DataFrame]  # tables by name
    # weights of its graph, shape (p, p), zero for missing edges; None if it has no graph
    edges: Array | None
    sha256: str  # digest of SHA256SUMS

    @property
    def group(self) -> str | None:
        """Name of the group of rows that it was computed from; None for all rows."""
        group = self.manifest.estimator.get("group")
        return None if group is None else str(group)

    def graph(self) -> Any:
        """Its graph as a `networkx.Graph`, maybe without edges."""
        p = len(self.manifest.names)
        return as_graph(np.zeros((p, p)) if self.edges is None else self.edges, self.manifest)


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
        write_table(folder, stem, table)
    if edges is not None:
        write_graph(folder, edges, manifest)
    write_descriptor(folder, estimate_descriptor(folder, manifest))


def estimate_descriptor(folder: Path, manifest: EstimateManifest) -> dict[str, Any]:
    """The content of datapackage.json for an estimate."""
    name = f"{manifest.dataset.id}-{manifest.release}-{manifest.estimate}"
    title = f"{manifest.dataset.title}: {manifest.estimator['name']}"
    files = [f for stem in manifest.matrices for f in matrix_files(stem, len(manifest.names))]
    files += [f"{stem}.{suffix}" for stem in manifest.tables for suffix in ("parquet", "csv")]
    files += graph_files(folder) if manifest.graph else []
    return descriptor(folder, name, title, files, manifest)


def read_estimate(folder: Path) -> EstimateBundle:
    """Read an estimate, verified."""
    sha256 = check(folder)
    manifest = read_manifest(folder, EstimateManifest)
    matrices = {stem: read_matrix(folder, stem, manifest.names) for stem in manifest.matrices}
    tables = {stem: read_table(folder, stem, len(manifest.names)) for stem in manifest.tables}
    edges = read_graph(folder, manifest.names) if manifest.graph else None
    return EstimateBundle(manifest, matrices, tables, edges, sha256)


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
    edges
        Weights, shape (p, p), symmetric; zero for missing edges.
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
    """The weights of the edges, shape (p, p), which all files must contain."""
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


# Limits on what is read from a hostile archive.
_CSV_BYTES, _ENTRY_BYTES = 32 << 20, 128
_EXPANSION = 8  # a number needs 8 bytes, and in CSV at least one


def write_table(folder: Path, stem: str, table: pd.DataFrame) -> None:
    arrow_table = pa.Table.from_pandas(table, preserve_index=False)
    pq.write_table(arrow_table, folder / f"{stem}.parquet", store_schema=False, compression="zstd")
    (folder / f"{stem}.csv").write_bytes(csv_bytes(_without_formulas(table)))


def csv_bytes(table: pd.DataFrame) -> bytes:
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


def read_table(folder: Path, stem: str, columns: int) -> pd.DataFrame:
    """A table of an estimate from a release with this many columns."""
    path, same = folder / f"{stem}.parquet", False
    try:
        size = (folder / f"{stem}.csv").stat().st_size
        if size > _CSV_BYTES + _ENTRY_BYTES * columns * columns:
            raise ValueError
        stated = (folder / f"{stem}.csv").read_bytes()
        # A line of CSV is a row, unless a text contains line breaks.
        table = _read_parquet(path, stated.count(b"\n"), len(stated))
        same = stated == csv_bytes(_without_formulas(table))
    except Exception:  # a file that was tampered with may make a parser raise anything
        raise wordings.not_a_table(str(path)) from None
    if not same:
        raise wordings.formats_differ(f"{folder / stem}.csv", path.name)
    return table


def _read_parquet(path: Path, most_rows: int, csv_bytes: int) -> pd.DataFrame:
    """The table in a Parquet file, which also exists as CSV with this number of bytes."""
    table = read_bounded(path, most_rows, bounded_bytes(0) + _EXPANSION * csv_bytes)
    for k, cells in enumerate(table.columns):
        if pa.types.is_nested(cells.type):
            raise ValueError
        if pa.types.is_dictionary(cells.type):
            table = table.set_column(k, table.column_names[k], _decoded(cells, csv_bytes))
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
