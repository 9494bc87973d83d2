"""Parquet as batches of numbers, in memory that has a bound whatever its pages unpack to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem
from numpy.typing import NDArray

from gramercy.schemas.errors import TableError
from gramercy.tables.blocks import blocks
from gramercy.tables.parquet_guard.page_heads import DICTIONARY, PLAIN, SPELLED, check_footer, pages
from gramercy.tables.values import Reading, converted, of_texts

Array = NDArray[np.float64]

BATCH_CELLS = 1 << 21

# Bytes of memory.
_PAGE = 64 << 20  # one page of numbers
_TEXTS = 16 << 20  # one page of texts
_DELTAS = 2 << 20  # one page of texts that each begin as the one before, and all may be long
_PAGES = 128 << 20  # the pages of all columns at once
_HONEST = 256 << 20  # those of a file that is not much smaller than what it unpacks to
_UNPACKED = 2  # times its size
_SOME = 64 << 20  # those of some columns, where others wait
_BLOCK = 96 << 20  # numbers that wait for those of other columns
_BATCH = 64 << 20  # texts at once
_BUFFERS = 64 << 20  # what is read ahead
_AHEAD = 256 << 10  # of one column
_ENTRY = 4  # times its page that a dictionary takes once it is read


@dataclass(frozen=True)
class _Column:
    """A declared column of a file, and what it takes to read it.

    Parameters
    ----------
    name, levels
        As declared.
    leaf
        Its place in the file.
    of_bytes
        Whether its cells have any length.
    largest, packed, spelled
        Bytes of its largest page, of the largest as it lies in the file, and of the largest that
        spells its cells out.
    delta
        Whether cells are told by those before them.
    """

    name: str
    levels: Reading
    leaf: int
    of_bytes: bool
    largest: int
    packed: int
    spelled: int
    delta: bool

    @property
    def most(self) -> int:
        """Bytes that a page of it may take."""
        of_texts = _DELTAS if self.delta else _TEXTS
        return of_texts if self.of_bytes else _PAGE

    def at_once(self, rows: int) -> int:
        """How many of its cells are read at once, each as long as its longest may be."""
        return max(1, min(rows, _BATCH // max(1, self.spelled))) if self.of_bytes else rows


@contextmanager
def opened(
    fs: Any, file: str, columns: Mapping[str, Reading] | None = None
) -> Iterator[tuple[IO[bytes], pq.ParquetFile]]:
    """A Parquet file and Arrow's view of it, once its footer is known to fit.

    Parameters
    ----------
    fs, file
        Where it lies.
    columns
        Those that will be read. Texts stay places in dictionaries: spelled out, a long one that is
        told once and meant a million times would fill the memory.

    Raises
    ------
    TooHeavyError
        If it does not.
    """
    with _bytes(fs, file) as stream:
        check_footer(stream)
        with pq.ParquetFile(stream, pre_buffer=False) as table:
            texts = _in_dictionaries(table.metadata, columns or {})
            ahead = _ahead(table, columns or {})
        with pq.ParquetFile(
            stream, read_dictionary=texts, buffer_size=ahead, pre_buffer=False
        ) as table:
            yield stream, table


def _bytes(fs: Any, file: str) -> Any:
    """A file on this machine by Arrow's own means, which hold up no other thread."""
    here = isinstance(fs, LocalFileSystem) and file.isprintable()  # not so: no UTF-8
    return pa.OSFile(file) if here else fs.open(file, "rb")


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


def cells(
    fs: Any,
    file: str,
    columns: Mapping[str, Reading],
    rows: int,
    only: Sequence[int] | None = None,
    shown: str | None = None,
) -> Iterator[Array]:
    """Batches of about so many rows, of some row groups or all; see `tables.read.cells`.

    What is wrong with a file is told of it as `shown`.

    Raises
    ------
    TableError
        If its pages do not fit into memory, or a column is missing.
    """
    with opened(fs, file, columns) as (stream, table):
        reader = _Reader(stream, table, rows)
        groups = range(table.num_row_groups) if only is None else only
        known = _looked_at(stream, table, shown or file, columns, groups)
        if not groups:
            return
        if _fit(known):
            yield from reader.side_by_side(known, groups)
            return
        for group in groups:
            alone = _looked_at(stream, table, shown or file, columns, [group])
            if _fit(alone):
                yield from reader.side_by_side(alone, [group])
            else:
                yield from reader.in_turn(alone, group)


def _looked_at(
    stream: IO[bytes],
    table: pq.ParquetFile,
    file: str,
    columns: Mapping[str, Reading],
    groups: Sequence[int],
) -> list[_Column]:
    """What the heads of all pages say of the declared columns."""
    every = (table.schema.column(leaf) for leaf in range(len(table.schema)))
    # Inside another column, a path may read as a name with a point in it.
    leaves = {each.name: leaf for leaf, each in enumerate(every) if each.name == each.path}
    found = []
    for name, levels in columns.items():
        leaf = leaves[name]
        of_bytes = table.schema.column(leaf).physical_type == "BYTE_ARRAY"
        largest = packed = spelled = 0
        delta = False
        for group in groups:
            for page in pages(stream, table.metadata.row_group(group).column(leaf)):
                largest, packed = max(largest, page.size, page.packed), max(packed, page.packed)
                if page.kind != DICTIONARY and page.encoding in SPELLED:
                    spelled = max(spelled, page.size)
                    delta = delta or page.encoding != PLAIN
        column = _Column(name, levels, leaf, of_bytes, largest, packed, spelled, delta)
        if largest > column.most:
            raise TableError(
                f"{file}: column '{name}' lies in pages of more than {column.most >> 20} MiB.",
                "Write it in smaller pages or row groups.",
            )
        found.append(column)
    return found


def _fit(columns: Sequence[_Column]) -> bool:
    """Whether pages of all of them can be in memory at once."""
    return sum(map(_weight, columns)) <= _room(columns)


def _room(columns: Sequence[_Column]) -> int:
    """More where the file is large itself, so that nobody is surprised."""
    return max(_PAGES, min(_HONEST, _UNPACKED * sum(column.packed for column in columns)))


def _weight(column: _Column) -> int:
    """Bytes of memory while it is read: a page, and a dictionary."""
    return column.largest * (_ENTRY if column.of_bytes else 1)


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

    def side_by_side(self, columns: Sequence[_Column], groups: Sequence[int]) -> Iterator[Array]:
        """All columns at once, over row groups."""
        parts = self._parts(columns, _room(columns))
        if len(parts) == 1:
            yield from self._read(parts[0], groups, self._rows)
            return
        place = {column.name: at for at, column in enumerate(columns)}
        order = np.argsort([place[column.name] for part in parts for column in part])
        streams = [blocks(self._read(part, groups, self._rows), self._rows) for part in parts]
        for each in zip(*streams, strict=True):
            yield np.concatenate(each)[order]

    def in_turn(self, columns: Sequence[_Column], group: int) -> Iterator[Array]:
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

    def _parts(self, columns: Sequence[_Column], most: int) -> list[list[_Column]]:
        """Columns that are read together: pages that fit, and cells that do, whatever they hold."""
        parts: list[list[_Column]] = []
        weight = full = most + 1
        for column in columns:
            alone = column.at_once(self._rows) < self._rows
            if not alone and weight + _weight(column) <= most:
                parts[-1].append(column)
                weight += _weight(column)
            else:
                parts.append([column])
                weight = full if alone else _weight(column)
        return parts

    def _read(
        self, part: Sequence[_Column], groups: Sequence[int], rows: int, start: int = 0
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
