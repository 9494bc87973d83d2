"""The exact Gram matrix from a file on disk: every step before the noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from benchmarks.arrays import Array
from benchmarks.throughput.cells import Cell, Contender
from benchmarks.throughput.jobs import inputs
from gramercy.pipeline.plan.checking import check_table
from gramercy.schemas.normalisation import Unit
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums.streaming import accumulate

Reader = Callable[[Path], Any]


@contextmanager
def contenders(
    path: Path, cell: Cell, kind: str, by_arrow: Reader, by_pandas: Reader
) -> Iterator[dict[str, Contender]]:
    """Provide the contenders that read the existing file `path`."""
    terms, lattice = (
        inputs.contract(str(path), cell.rows, cell.columns),
        inputs.lattice(cell.columns),
    )

    def ours() -> Any:
        return accumulate(open_source(str(path)), terms, Unit(), lattice)

    def product() -> Array:
        """Return X^T X through pandas, which stacks the columns faster than numpy."""
        read: pa.Table = by_arrow(path)
        X = read.to_pandas().to_numpy()
        result: Array = X.T @ X
        return result

    def cov() -> Any:
        frame: pd.DataFrame = by_pandas(path)
        return frame.cov()

    yield {
        f"Gramercy: {kind} to Gram": Contender(ours),
        "pyarrow: read, X.T @ X": Contender(product),
        "pandas: read, .cov()": Contender(cov),
        "Gramercy: check of all cells": Contender(lambda: check_table(terms)),
    }
