"""Test tables with their contracts and requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.arrays import Array
from gramercy.common.lattice import Lattice
from gramercy.schemas.contract import Contract

LATTICE_BITS = 16
_AT_ONCE = 1 << 20  # cells


def table(rows: int, columns: int, seed: int = 0) -> Array:
    """Draw standard normal cells, shape (columns, rows), the layout of Arrow."""
    return np.random.default_rng(seed).standard_normal((columns, rows))


def chain(rows: int, columns: int, correlation: float = 0.9) -> Array:
    """Draw cells whose neighbours in a row are correlated; see `table`."""
    cells = table(rows, columns)
    for k in range(1, columns):
        cells[k] *= np.sqrt(1 - correlation**2)
        cells[k] += correlation * cells[k - 1]
    return cells


def batches(cells: Array) -> Iterator[Array]:
    """Yield batches of rows of the size that a file reader yields."""
    step = max(1, _AT_ONCE // len(cells))
    for start in range(0, cells.shape[1], step):
        yield cells[:, start : start + step]


def names(columns: int) -> list[str]:
    return [f"c{k}" for k in range(columns)]


def arrow(cells: Array) -> pa.Table:
    return pa.table(list(cells), names=names(len(cells)))


def facts(source: str, rows: int, columns: int, **more: Any) -> dict[str, Any]:
    """Return a contract whose budget suffices for many releases."""
    return {
        "id": "throughput",
        "title": "Made-up numbers",
        "curator": "Benchmark",
        "source": source,
        "rows": rows,
        "intercept": False,
        "budget": {"epsilon": 100.0, "delta": 1e-9},
        "columns": {name: {"lower": -4.0, "upper": 4.0} for name in names(columns)},
    } | more


def contract(source: str, rows: int, columns: int, **more: Any) -> Contract:
    return Contract.model_validate(facts(source, rows, columns, **more))


def lattice(columns: int) -> Lattice:
    return Lattice(columns, LATTICE_BITS)


def request(
    folder: Path, of: dict[str, Any], mechanism: dict[str, Any], version: str, **more: Any
) -> Path:
    """Write a request and its contract as JSON, which is valid YAML."""
    (folder / "contract.yaml").write_text(json.dumps(of))
    path = folder / f"{version}.yaml"
    asked = {"dataset": "contract.yaml", "version": version, "mechanism": mechanism} | more
    path.write_text(json.dumps(asked))
    return path
