"""A table of up to a hundred million rows: one file under many names, read from the page cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.arrays import Array
from benchmarks.throughput.cells import Cell, Contender
from benchmarks.throughput.jobs import inputs
from gramercy.schemas.normalisation import Unit
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums.streaming import accumulate

MOST_IN_FILE = 1_000_000  # rows
_ROWS_AT_ONCE = 20_000


@contextmanager
def job(cell: Cell, folder: Path) -> Iterator[dict[str, Contender]]:
    each = min(cell.rows, MOST_IN_FILE)
    names = [folder / f"{k:05d}.parquet" for k in range(cell.rows // each)]
    first, *others = names
    pq.write_table(inputs.arrow(inputs.table(each, cell.columns)), first, use_dictionary=False)
    for name in others:
        os.link(first, name)
    url = str(folder / "*.parquet")
    terms = inputs.contract(url, each * len(names), cell.columns)

    def ours() -> Any:
        return accumulate(open_source(url), terms, Unit(), inputs.lattice(cell.columns))

    def products() -> Array:
        """X.T @ X of the cells as they are, a batch at a time."""
        total = np.zeros((cell.columns, cell.columns))
        for name in names:
            for batch in pq.ParquetFile(name).iter_batches(_ROWS_AT_ONCE):
                X = np.stack([column.to_numpy() for column in batch.columns])
                total += X @ X.T
        return total

    yield {
        "Gramercy: Parquet to Gram": Contender(ours),
        "pyarrow: batches, X.T @ X": Contender(products),
    }
