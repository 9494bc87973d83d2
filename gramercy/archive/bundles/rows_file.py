"""Published rows: a Parquet file, written and read in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gramercy.archive.bundles.parquet_limits import PLAIN, Page, check_pages, open_checked
from gramercy.schemas import families

Array = NDArray[np.float64]

_BATCH_CELLS = 1 << 20
_CODECS = {"SNAPPY", "UNCOMPRESSED"}
_PAGE_BYTES = 4 << 20  # pages have about 1 MiB
_ENCODINGS = {PLAIN}


def most_row_bytes(columns: Sequence[str], rows: int) -> int:
    """Bytes that a file of published rows may have, if it is written by `rows_per_batch`."""
    names = sum(len(name.encode()) for name in columns)
    batches = 1 + rows // rows_per_batch(columns)
    # Every batch has a header and a description of each column, with its name.
    return 10 * rows * len(columns) + batches * (512 * len(columns) + 2 * names)


def rows_per_batch(columns: Sequence[str]) -> int:
    """Number of rows per batch."""
    return max(1, _BATCH_CELLS // len(columns))


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
    """Batches of published rows, shape (columns, rows)."""
    rows_read, batch_rows = 0, rows_per_batch(columns)
    try:
        with path.open("rb") as stream, open_checked(stream) as file:
            _check_cells(stream, file, columns, rows)
            for batch in file.iter_batches(batch_rows, use_threads=False):
                cells = np.stack([_numbers(column) for column in batch.columns])
                rows_read += cells.shape[1]
                yield cells
    except Exception:  # a file that was tampered with may make Arrow raise anything
        rows_read = -1
    if rows_read != rows:
        raise families.CONTENT(
            "{path} does not contain the {rows} rows that were published.",
            "Fetch the bundle again from its curator.",
            path=str(path),
            rows=rows,
        )


def _check_cells(
    stream: IO[bytes], file: pq.ParquetFile, columns: Sequence[str], rows: int
) -> None:
    """Raise ValueError unless the file has these rows of numbers, each stored by itself.

    A dictionary or strong compression would let a small file state any number of rows.
    """
    chunks = (
        file.metadata.row_group(group).column(k)
        for group in range(file.metadata.num_row_groups)
        for k in range(file.metadata.num_columns)
    )
    if (
        file.metadata.num_rows != rows
        or file.schema_arrow != pa.schema([(name, pa.float64()) for name in columns])
        or any(chunk.compression not in _CODECS for chunk in chunks)
    ):
        raise ValueError
    check_pages(stream, file, _fits, _ENCODINGS)


def _fits(page: Page) -> bool:
    return max(page.size, page.compressed_size) <= _PAGE_BYTES


def _numbers(column: Any) -> Array:
    cells: Array = column.to_numpy(zero_copy_only=False)
    if not np.isfinite(cells).all():
        raise ValueError
    return cells
