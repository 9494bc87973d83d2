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

from gramercy.schemas.errors import BundleError

Array = NDArray[np.float64]

_BATCH = 1 << 20  # cells


class RowWriter:
    """Writes rows of numbers, batch by batch.

    Parameters
    ----------
    path
        A file that does not exist yet.
    columns
        Their names.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self._schema = pa.schema([(name, pa.float64()) for name in columns])
        self._file = pq.ParquetWriter(path, self._schema, use_dictionary=False)  # few are alike
        self.rows = 0

    def write(self, cells: Array) -> None:
        """Add rows, shape (columns, rows)."""
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
        If the file does not hold these columns and as many rows of finite numbers.
    """
    seen, batch = 0, max(1, _BATCH // len(columns))
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            sound = file.schema_arrow.names == list(columns)
            for part in file.iter_batches(batch, use_threads=False) if sound else ():
                cells = np.stack([_numbers(column) for column in part.columns])
                seen += cells.shape[1]
                yield cells
    except Exception:  # whatever Arrow makes of a file that was tampered with
        seen = -1
    if seen != rows:
        raise BundleError(f"{path}: does not hold the {rows} rows that were published.")


def _numbers(column: Any) -> Array:
    cells: Array = column.to_numpy(zero_copy_only=False)
    if not np.isfinite(cells).all():
        raise ValueError
    return cells
