"""Read Parquet as batches of numbers, in bounded memory for pages of any decompressed size."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem
from numpy.typing import NDArray

from gramercy.common.parquet.page_headers import check_footer
from gramercy.tables.blocks import blocks
from gramercy.tables.parquet_memory import (
    StoredColumn,
    fits_in_memory,
    memory_budget,
    stored_columns,
)
from gramercy.tables.source_file import SourceFile
from gramercy.tables.values import Coding, is_person_index, to_floats

Array = NDArray[np.float64]

BATCH_CELLS = 1 << 21

# Bytes of memory.
_TURN = 64 << 20  # for the pages of columns that are read together, while others wait
_BLOCK = 96 << 20  # for numbers that wait for the other columns
_BUFFERS = 64 << 20  # for read-ahead of all columns
_BUFFER = 256 << 10  # for read-ahead of one column


@contextmanager
def open_parquet(file: SourceFile) -> Iterator[tuple[IO[bytes], pq.ParquetFile]]:
    """Open a Parquet file with Arrow, after a check that its footer fits into memory.

    Raises
    ------
    MemoryLimitError
        If the footer is too large.
    """
    with _open_bytes(file) as stream:
        check_footer(stream)
        with pq.ParquetFile(stream, pre_buffer=False) as table:
            yield stream, table


def _open_bytes(file: SourceFile) -> Any:
    """The file as a stream; local files by Arrow's own reader, which releases the GIL."""
    fs, path = file.fs, file.path
    local = isinstance(fs, LocalFileSystem) and path.isprintable()  # Arrow needs UTF-8 paths
    return pa.OSFile(path) if local else fs.open(path, "rb")


def _read_ahead(table: pq.ParquetFile, columns: Collection[str]) -> int:
    """Read-ahead of each column, in bytes; 0 to read the whole column of a row group at once.

    Columns are identified by position, because a column chunk may state any name.
    """
    leaves = [k for k in range(len(table.schema)) if table.schema.column(k).path in columns]
    groups = map(table.metadata.row_group, range(table.metadata.num_row_groups))
    sizes = (sum(max(0, g.column(k).total_compressed_size) for k in leaves) for g in groups)
    if max(sizes, default=0) <= _BUFFERS:
        return 0
    return max(4096, min(_BUFFER, _BUFFERS // len(leaves)))


def cell_batches(file: SourceFile, columns: Mapping[str, Coding], rows: int) -> Iterator[Array]:
    """Batches of about `rows` rows; see `tables.reader.cell_batches`.

    Raises
    ------
    TableError
        If a page does not fit into memory.
    KeyError
        If a column is missing.
    """
    with open_parquet(file) as (stream, table):
        reader = _Reader(stream, table, columns, rows)
        groups = range(table.num_row_groups) if file.row_groups is None else file.row_groups
        stored = stored_columns(stream, table, file.display_name, columns, groups)
        if not groups:
            return
        if fits_in_memory(stored):
            yield from reader.read_together(stored, groups)
            return
        for group in groups:
            in_group = stored_columns(stream, table, file.display_name, columns, [group])
            if fits_in_memory(in_group):
                yield from reader.read_together(in_group, [group])
            else:
                yield from reader.read_in_turns(in_group, group)


class _Reader:
    """Reads as many columns of one file at once as fit into memory.

    Parameters
    ----------
    stream, table
        The file, as bytes and as Arrow opened it.
    columns
        All columns to read.
    rows
        Number of rows of a batch.
    """

    def __init__(
        self,
        stream: IO[bytes],
        table: pq.ParquetFile,
        columns: Mapping[str, Coding],
        rows: int,
    ) -> None:
        self._stream, self._table, self._rows = stream, table, rows
        self._buffer_size = _read_ahead(table, columns)

    def read_together(
        self, columns: Sequence[StoredColumn], groups: Sequence[int]
    ) -> Iterator[Array]:
        """All columns at once, over several row groups."""
        parts = self._column_groups(columns, memory_budget(columns))
        if len(parts) == 1:
            yield from self._read(parts[0], groups, self._rows)
            return
        index = {column.name: k for k, column in enumerate(columns)}
        places = [[index[column.name] for column in part] for part in parts]
        streams = [blocks(self._read(part, groups, self._rows), self._rows) for part in parts]
        for aligned in zip(*streams, strict=True):
            joined = np.empty((len(columns), aligned[0].shape[1]))
            for place, numbers in zip(places, aligned, strict=True):
                joined[place] = numbers
            yield joined

    def read_in_turns(self, columns: Sequence[StoredColumn], group: int) -> Iterator[Array]:
        """One set of columns after another, over one row group that is read again for every block.

        Used where one page of every column would not fit into memory.
        """
        count = self._table.metadata.row_group(group).num_rows
        size = max(1, _BLOCK // (8 * len(columns)))
        parts = self._column_groups(columns, _TURN)
        index = {column.name: k for k, column in enumerate(columns)}
        for start in range(0, count, size):
            block = np.empty((len(columns), min(size, count - start)))
            for part in parts:
                filled, rows = 0, max(1, BATCH_CELLS // len(part))
                for batch in self._read(part, [group], rows, start):
                    used = batch[:, : block.shape[1] - filled]
                    stop = filled + used.shape[1]
                    for column, numbers in zip(part, used, strict=True):
                        block[index[column.name], filled:stop] = numbers
                    filled = stop
                    if filled == block.shape[1]:
                        break
                if filled < block.shape[1]:
                    raise ValueError
            for first in range(0, block.shape[1], self._rows):
                yield block[:, first : first + self._rows].copy()  # a view would keep the block
            del block

    def _column_groups(
        self, columns: Sequence[StoredColumn], budget: int
    ) -> list[list[StoredColumn]]:
        """Sets of columns that fit into memory together, by the size of their pages and cells."""
        parts: list[list[StoredColumn]] = []
        weight = full = budget + 1
        for column in columns:
            alone = column.rows_at_once(self._rows) < self._rows
            if not alone and weight + column.weight <= budget:
                parts[-1].append(column)
                weight += column.weight
            else:
                parts.append([column])
                weight = full if alone else column.weight
        return parts

    def _read(
        self, part: Sequence[StoredColumn], groups: Sequence[int], rows: int, skip: int = 0
    ) -> Iterator[Array]:
        rows = min(column.rows_at_once(rows) for column in part)
        names = [column.name for column in part]
        encoded = [column.name for column in part if column.stays_encoded(rows)]
        with self._open(encoded) as table, ThreadPoolExecutor(1) as other_thread:
            for batch in table.iter_batches(rows, row_groups=list(groups), columns=names):
                kept = batch.select(names).slice(skip)
                skip -= batch.num_rows - kept.num_rows
                if kept.num_rows or not batch.num_rows:
                    yield _to_numbers(kept, part, other_thread)

    def _open(self, encoded: list[str]) -> pq.ParquetFile:
        """The file for one set of columns: all batches of one object have the same size."""
        return pq.ParquetFile(
            self._stream,
            metadata=self._table.metadata,
            read_dictionary=encoded,
            buffer_size=self._buffer_size,
            pre_buffer=False,
        )


def _to_numbers(batch: pa.RecordBatch, columns: Sequence[StoredColumn], pool: Executor) -> Array:
    """All columns as numbers; persons are looked up while the other columns are copied."""
    numbers = np.empty((len(columns), batch.num_rows))
    pairs = [(cells, column.coding) for cells, column in zip(batch, columns, strict=True)]
    waiting = {k: pool.submit(to_floats, *x) for k, x in enumerate(pairs) if is_person_index(x[1])}
    for k, pair in enumerate(pairs):
        if k not in waiting:
            numbers[k] = to_floats(*pair)
    for k, indices in waiting.items():
        numbers[k] = indices.result()
    return numbers
