"""The exact Gram matrix from CSV files on disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from pyarrow import csv

from benchmarks.throughput.cells import Cell, Contender
from benchmarks.throughput.jobs import files, inputs


@contextmanager
def job(cell: Cell, folder: Path) -> Iterator[dict[str, Contender]]:
    path = folder / "table.csv"
    csv.write_csv(inputs.arrow(inputs.table(cell.rows, cell.columns).round(6)), path)
    with files.contenders(path, cell, "CSV", csv.read_csv, pd.read_csv) as result:
        yield result
