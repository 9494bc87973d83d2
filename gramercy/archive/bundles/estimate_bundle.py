"""Writing and reading estimate bundles: matrices, tables and a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.archive.bundles.estimate_graph import as_graph, graph_files, read_graph, write_graph
from gramercy.archive.bundles.estimate_tables import read_table, write_table
from gramercy.archive.bundles.matrices import matrix_files, read_matrix, write_matrix
from gramercy.archive.bundles.package import descriptor, read_manifest, write_descriptor
from gramercy.archive.seal.bundle import check
from gramercy.schemas.manifest import EstimateManifest

Array = NDArray[np.float64]


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
    """Read an estimate, verified.

    Raises
    ------
    BundleError
        Naming the file that differs from what was sealed.
    """
    sha256 = check(folder)
    manifest = read_manifest(folder, EstimateManifest)
    matrices = {stem: read_matrix(folder, stem, manifest.names) for stem in manifest.matrices}
    tables = {stem: read_table(folder, stem, len(manifest.names)) for stem in manifest.tables}
    edges = read_graph(folder, manifest.names) if manifest.graph else None
    return EstimateBundle(manifest, matrices, tables, edges, sha256)
