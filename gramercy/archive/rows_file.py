"""Published rows: a Parquet file, written and read in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gramercy.schemas.problems.bundle import rows_differ

Array = NDArray[np.float64]

_BATCH_CELLS = 1 << 20


class RowWriter:
    """Writes rows of numbers, batch by batch.

    Parameters
    ----------
    path
        A file that does not exist yet.
    columns
        Names of the columns.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self._schema = pa.schema([(name, pa.float64()) for name in columns])
        self._file = pq.ParquetWriter(path, self._schema, use_dictionary=False)  # few values repeat
        self.rows = 0

    def write(self, cells: Array) -> None:
        """Append rows, shape (columns, rows)."""
        self._file.write_table(pa.table(list(cells), schema=self._schema))
        self.rows += cells.shape[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._file.close()


def read_rows(path: Path, columns: Sequence[str], rows: int) -> Iterator[Array]:
    """Batches of published rows, shape (columns, rows).

    Raises
    ------
    BundleError
        If the file does not contain these columns and this number of rows, all of finite numbers.
    """
    rows_read, batch_rows = 0, max(1, _BATCH_CELLS // len(columns))
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            valid = file.schema_arrow.names == list(columns)
            for batch in file.iter_batches(batch_rows, use_threads=False) if valid else ():
                cells = np.stack([_numbers(column) for column in batch.columns])
                rows_read += cells.shape[1]
                yield cells
    except Exception:  # a file that was tampered with may make Arrow raise anything
        rows_read = -1
    if rows_read != rows:
        raise rows_differ(str(path), rows)


def _numbers(column: Any) -> Array:
    cells: Array = column.to_numpy(zero_copy_only=False)
    if not np.isfinite(cells).all():
        raise ValueError
    return cells
