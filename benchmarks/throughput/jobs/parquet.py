"""The exact Gram matrix from Parquet files on disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from benchmarks.throughput.cells import Cell, Contender
from benchmarks.throughput.jobs import files, inputs


@contextmanager
def job(cell: Cell, folder: Path) -> Iterator[dict[str, Contender]]:
    path = folder / "table.parquet"
    pq.write_table(inputs.arrow(inputs.table(cell.rows, cell.columns)), path)
    with files.contenders(path, cell, "Parquet", pq.read_table, pd.read_parquet) as result:
        yield result
