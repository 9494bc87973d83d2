"""Parquet as batches of numbers, in memory that has a bound whatever its pages unpack to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem
from numpy.typing import NDArray

from gramercy.tables.blocks import blocks
from gramercy.tables.parquet_guard.memory import StoredColumn, fit, room, stored_columns
from gramercy.tables.parquet_guard.page_heads import check_footer
from gramercy.tables.source_file import SourceFile
from gramercy.tables.values import Reading, converted, of_texts

Array = NDArray[np.float64]

BATCH_CELLS = 1 << 21

# Bytes of memory.
_SOME = 64 << 20  # pages of some columns, where others wait
_BLOCK = 96 << 20  # numbers that wait for those of other columns
_BUFFERS = 64 << 20  # what is read ahead
_AHEAD = 256 << 10  # of one column


@contextmanager
def opened(
    file: SourceFile, columns: Mapping[str, Reading] | None = None
) -> Iterator[tuple[IO[bytes], pq.ParquetFile]]:
    """A Parquet file and Arrow's view of it, once its footer is known to fit.

    Parameters
    ----------
    file
        Which.
    columns
        Those that will be read. Texts stay places in dictionaries: spelled out, a long one that is
        told once and meant a million times would fill the memory.

    Raises
    ------
    TooHeavyError
        If it does not.
    """
    with _bytes(file) as stream:
        check_footer(stream)
        with pq.ParquetFile(stream, pre_buffer=False) as table:
            texts = _in_dictionaries(table.metadata, columns or {})
            ahead = _ahead(table, columns or {})
        with pq.ParquetFile(
            stream, read_dictionary=texts, buffer_size=ahead, pre_buffer=False
        ) as table:
            yield stream, table


def _bytes(file: SourceFile) -> Any:
    """A file on this machine by Arrow's own means, which hold up no other thread."""
    fs, path = file.fs, file.path
    here = isinstance(fs, LocalFileSystem) and path.isprintable()  # not so: no UTF-8
    return pa.OSFile(path) if here else fs.open(path, "rb")


def _ahead(table: pq.ParquetFile, columns: Collection[str]) -> int:
    """Bytes of each column that are read ahead; 0 for all that a row group has of it.

    Columns are told by their place: a chunk may call itself by any name.
    """
    leaves = [k for k in range(len(table.schema)) if table.schema.column(k).path in columns]
    groups = map(table.metadata.row_group, range(table.metadata.num_row_groups))
    sizes = (sum(max(0, g.column(k).total_compressed_size) for k in leaves) for g in groups)
    if max(sizes, default=0) <= _BUFFERS:
        return 0
    return max(4096, min(_AHEAD, _BUFFERS // len(leaves)))


def _in_dictionaries(metadata: Any, columns: Mapping[str, Reading]) -> list[str]:
    """Columns of texts that can be read as dictionaries; Arrow cannot where cells are deltas."""
    chunks = [
        metadata.row_group(group).column(leaf)
        for group in range(metadata.num_row_groups)
        for leaf in range(metadata.num_columns)
    ]
    cannot = {
        c.path_in_schema
        for c in chunks
        if c.physical_type != "BYTE_ARRAY" or any("DELTA" in each for each in c.encodings)
    }
    return [name for name, levels in columns.items() if of_texts(levels) and name not in cannot]


def cells(file: SourceFile, columns: Mapping[str, Reading], rows: int) -> Iterator[Array]:
    """Batches of about so many rows; see `tables.read.cells`.

    Raises
    ------
    TableError
        If its pages do not fit into memory, or a column is missing.
    """
    with opened(file, columns) as (stream, table):
        reader = _Reader(stream, table, rows)
        groups = range(table.num_row_groups) if file.groups is None else file.groups
        known = stored_columns(stream, table, file.shown, columns, groups)
        if not groups:
            return
        if fit(known):
            yield from reader.side_by_side(known, groups)
            return
        for group in groups:
            alone = stored_columns(stream, table, file.shown, columns, [group])
            if fit(alone):
                yield from reader.side_by_side(alone, [group])
            else:
                yield from reader.in_turn(alone, group)


class _Reader:
    """Reads columns of one file, as many at once as fit.

    Parameters
    ----------
    stream, table
        The file.
    rows
        Of a batch.
    """

    def __init__(self, stream: IO[bytes], table: pq.ParquetFile, rows: int) -> None:
        self._stream, self._table, self._rows = stream, table, rows

    def side_by_side(
        self, columns: Sequence[StoredColumn], groups: Sequence[int]
    ) -> Iterator[Array]:
        """All columns at once, over row groups."""
        parts = self._parts(columns, room(columns))
        if len(parts) == 1:
            yield from self._read(parts[0], groups, self._rows)
            return
        place = {column.name: at for at, column in enumerate(columns)}
        order = np.argsort([place[column.name] for part in parts for column in part])
        streams = [blocks(self._read(part, groups, self._rows), self._rows) for part in parts]
        for each in zip(*streams, strict=True):
            yield np.concatenate(each)[order]

    def in_turn(self, columns: Sequence[StoredColumn], group: int) -> Iterator[Array]:
        """Some columns after others, over one row group, from its beginning for every block.

        A page of every column at once would not fit.
        """
        count = self._table.metadata.row_group(group).num_rows
        size = max(1, _BLOCK // (8 * len(columns)))
        parts = self._parts(columns, _SOME)
        place = {column.name: at for at, column in enumerate(columns)}
        for start in range(0, count, size):
            block = np.empty((len(columns), min(size, count - start)))
            for part in parts:
                filled, rows = 0, max(1, BATCH_CELLS // len(part))
                for batch in self._read(part, [group], rows, start):
                    here = batch[:, : block.shape[1] - filled]
                    stop = filled + here.shape[1]
                    for column, numbers in zip(part, here, strict=True):
                        block[place[column.name], filled:stop] = numbers
                    filled = stop
                    if filled == block.shape[1]:
                        break
                if filled < block.shape[1]:
                    raise ValueError
            for at in range(0, block.shape[1], self._rows):
                yield block[:, at : at + self._rows].copy()  # who keeps it keeps no block
            del block

    def _parts(self, columns: Sequence[StoredColumn], most: int) -> list[list[StoredColumn]]:
        """Columns that are read together: pages that fit, and cells that do, whatever they hold."""
        parts: list[list[StoredColumn]] = []
        weight = full = most + 1
        for column in columns:
            alone = column.at_once(self._rows) < self._rows
            if not alone and weight + column.weight <= most:
                parts[-1].append(column)
                weight += column.weight
            else:
                parts.append([column])
                weight = full if alone else column.weight
        return parts

    def _read(
        self, part: Sequence[StoredColumn], groups: Sequence[int], rows: int, start: int = 0
    ) -> Iterator[Array]:
        rows = min(column.at_once(rows) for column in part)
        names = [column.name for column in part]
        for batch in self._table.iter_batches(rows, row_groups=list(groups), columns=names):
            found = batch.select(names).slice(start)
            start -= batch.num_rows - found.num_rows
            if found.num_rows or not batch.num_rows:
                numbers = np.empty((len(part), found.num_rows))
                for place, cells in enumerate(found.columns):
                    numbers[place] = converted(cells, part[place].levels)
                yield numbers
