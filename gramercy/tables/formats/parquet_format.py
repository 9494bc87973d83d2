"""Read Parquet as batches of numbers, in memory that follows from the metadata of the file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem
from numpy.typing import NDArray

from gramercy.schemas.model import nfc
from gramercy.schemas.source import AnySource
from gramercy.tables import batches
from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats.table_format import (
    SampledRows,
    SourceFile,
    TableFormat,
    short_texts,
    type_name,
)
from gramercy.tables.formats.values import TEXT, Coding

Array = NDArray[np.float64]

# Bytes of memory.
_PAGE = 1 << 20  # writers end a page near this size; Arrow keeps one of every column
_PAGES = 256 << 20  # for the pages of all columns together; beyond, columns are read in turns
_TURN = 64 << 20  # for the pages of the columns of one turn
_BLOCK = 96 << 20  # for numbers that wait for the other columns
_TEXTS = 64 << 20  # for the texts of a batch
_READ_AHEAD = 64 << 20  # for the columns of a row group; larger ones are read in parts
_PART = 256 << 10  # for such a part, of one column
_LONG = 16 << 10  # for a text that may be repeated in every row of a batch
_SKIPPED = 1 << 26  # cells before those at the end of a row group, in a sample
_LENGTH = 4  # before each text outside of a dictionary; its index in one is smaller


@contextmanager
def open_parquet(file: SourceFile) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file with Arrow."""
    with _open_bytes(file) as stream, pq.ParquetFile(stream, pre_buffer=False) as table:
        yield table


def _open_bytes(file: SourceFile) -> Any:
    """The file as a stream; local files by Arrow's own reader, which releases the GIL."""
    fs, path = file.fs, file.path
    local = isinstance(fs, LocalFileSystem) and path.isprintable()  # Arrow needs UTF-8 paths
    return pa.OSFile(path) if local else fs.open(path, "rb")


class ParquetTables(TableFormat):
    """Parquet, whose footers state names, types, and numbers of rows."""

    title = "Parquet"

    def recognises(self, suffixes: Sequence[str], source: AnySource | None) -> bool:
        return suffixes[-1:] in ([".parquet"], [".pq"])

    def columns(self, file: SourceFile) -> list[tuple[str, str]]:
        with open_parquet(file) as table:
            return [(field.name, type_name(field.type)) for field in table.schema_arrow]

    def cell_batches(
        self,
        file: SourceFile,
        columns: Mapping[str, Coding],
        rows: int,
        malformed: MalformedLines,
        keep_malformed: bool,
    ) -> Iterator[Array]:
        with _open_bytes(file) as stream, pq.ParquetFile(stream, pre_buffer=False) as table:
            groups = range(table.num_row_groups) if file.row_groups is None else file.row_groups
            names = _stored_names(table)
            as_stored = {names[name]: coding for name, coding in columns.items()}
            reader = _Reader(stream, table.metadata, groups, as_stored)
            stored = [reader.column(name, coding) for name, coding in as_stored.items()]
            if sum(column.page for column in stored) <= _PAGES:
                yield from reader.batches(stored, groups, rows)
                return
            for group in groups:
                yield from reader.batches_in_turns(stored, group, rows)

    def partitions(self, file: SourceFile, min_cells: int) -> list[SourceFile]:
        """Successive row groups, which are combined until they have so many cells."""
        with open_parquet(file) as table:
            metadata = table.metadata
            sizes = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
            columns = metadata.num_columns
        parts, groups = list[SourceFile](), list[int]()
        for k in range(len(sizes)):
            groups.append(k)
            if sum(sizes[j] for j in groups) * columns >= min_cells or k == len(sizes) - 1:
                parts.append(replace(file, row_groups=tuple(groups)))
                groups = []
        return parts

    def row_count(self, file: SourceFile) -> int | None:
        with open_parquet(file) as table:
            return int(table.metadata.num_rows)

    def sample(self, file: SourceFile, columns: Sequence[str], rows: int) -> SampledRows:
        """Rows of the first row group, of the one in the middle, and the last rows of the file."""
        with _open_bytes(file) as stream, pq.ParquetFile(stream, pre_buffer=False) as table:
            metadata, names = table.metadata, _stored_names(table)
            columns = [names[name] for name in columns]
            encoded = _dictionary_columns(metadata, columns)
            reader = pq.ParquetFile(
                stream,
                metadata=metadata,
                read_dictionary=encoded,
                buffer_size=_PART,
                pre_buffer=False,
            )
            groups = [k for k in range(metadata.num_row_groups) if metadata.row_group(k).num_rows]
            everything = metadata.num_rows <= rows
            part = rows if everything else max(1, rows // 3)
            found = list[pa.RecordBatch]()
            middle = groups[len(groups) // 2] if groups else 0
            firsts = groups if everything else sorted({*groups[:1], middle})
            for group in firsts:
                found += _rows_of(reader, group, columns, 0, part)
            last = metadata.row_group(groups[-1]).num_rows if groups else 0
            # To reach its end, a row group is read up to it.
            has_last = everything or last * len(columns) <= _SKIPPED
            if groups and not everything and has_last:
                start = max(last - part, part if groups[-1] in firsts else 0)
                found += _rows_of(reader, groups[-1], columns, start, part)
            schema = pa.schema([_plain(table.schema_arrow.field(name)) for name in columns])
            cells = pa.Table.from_batches(found, schema) if found else schema.empty_table()
        cells = cells.rename_columns([nfc(name) for name in columns])
        return SampledRows(cells, complete=everything, has_last=has_last)


def _stored_names(table: pq.ParquetFile) -> dict[str, str]:
    """The names of columns as the file has them, by their normal form NFC."""
    return {nfc(field.name): field.name for field in table.schema_arrow}


def _dictionary_columns(metadata: pq.FileMetaData, columns: Collection[str]) -> list[str]:
    """Texts that stay encoded, so that none is repeated in memory; see `_Reader.column`."""
    encoded, wanted = [], set(columns)
    for k in range(len(metadata.schema)):
        leaf = metadata.schema.column(k)
        if leaf.path not in wanted or leaf.physical_type != "BYTE_ARRAY":
            continue
        chunks = [metadata.row_group(g).column(k) for g in range(metadata.num_row_groups)]
        if all(
            x.has_dictionary_page and not any("DELTA" in each for each in x.encodings)
            for x in chunks
        ):
            encoded.append(leaf.name)
    return encoded


def _rows_of(
    table: pq.ParquetFile, group: int, columns: Sequence[str], start: int, rows: int
) -> Iterator[pa.RecordBatch]:
    """Rows of a row group from one on, with short texts."""
    size = table.metadata.row_group(group).total_byte_size
    average = size / max(1, table.metadata.row_group(group).num_rows)
    at_once = max(1, min(rows, int(_TEXTS / max(1.0, average))))
    for batch in table.iter_batches(at_once, row_groups=[group], columns=list(columns)):
        kept = batch.select(list(columns)).slice(start, rows)
        start = max(0, start - batch.num_rows)
        rows -= kept.num_rows
        if kept.num_rows:
            short = {name: short_texts(kept.column(name)) for name in columns}
            yield pa.RecordBatch.from_pydict(short)
        if not rows:
            return


def _plain(field: pa.Field) -> pa.Field:
    """The column as a sample has it; see `short_texts`."""
    return pa.field(field.name, short_texts(pa.array([], field.type)).type)


@dataclass(frozen=True, repr=False)
class _Column:
    """A declared column, and the memory that it needs."""

    # name, coding: as stored, and as declared
    name: str
    coding: Coding
    page: int  # bytes of a page
    # bytes of the text in a row, on average over a row group, or of the longest that a dictionary
    # may repeat in every row; 0 for numbers
    text_bytes: float = 0.0
    # whether texts stay dictionary-encoded, so that none is repeated in memory
    stays_encoded: bool = False


class _Reader:
    """Reads some columns of some row groups of one file."""

    def __init__(
        self,
        stream: IO[bytes],
        metadata: pq.FileMetaData,
        groups: Sequence[int],
        names: Collection[str],
    ) -> None:
        self._stream, self._metadata, self._groups = stream, metadata, groups
        fields = metadata.schema.to_arrow_schema()
        self._dictionaries = {x.name for x in fields if pa.types.is_dictionary(x.type)}
        self._texts = {x.name for x in fields if type_name(x.type) == TEXT}
        leaves = [metadata.schema.column(k) for k in range(len(metadata.schema))]
        # The path of a column in a struct may equal the name of a column with a dot in it.
        self._leaves = {leaf.name: k for k, leaf in enumerate(leaves) if leaf.name == leaf.path}
        row_groups = [metadata.row_group(group) for group in groups]
        declared = [self._leaves[name] for name in names]
        sizes = (
            sum(group.column(k).total_compressed_size for k in declared) for group in row_groups
        )
        # Zero reads the whole column of a row group at once.
        is_small = max(sizes, default=0) <= _READ_AHEAD
        self._part = 0 if is_small else max(4096, min(_PART, _READ_AHEAD // len(declared)))

    def column(self, name: str, coding: Coding) -> _Column:
        """A column as the footer, and the dictionaries of texts, describe it."""
        leaf = self._leaves[name]
        chunks = [self._metadata.row_group(group).column(leaf) for group in self._groups]
        page = min(_PAGE, max((chunk.total_uncompressed_size for chunk in chunks), default=0))
        if self._metadata.schema.column(leaf).physical_type != "BYTE_ARRAY":
            return _Column(name, coding, page)
        average = max((x.total_uncompressed_size / max(1, x.num_values) for x in chunks), default=0)
        encoded = [x for x in zip(self._groups, chunks, strict=True) if x[1].has_dictionary_page]
        all_encoded, longest = len(encoded) == len(chunks), 0
        is_text = coding.is_text or name in self._texts  # numbers, too, may be written as text
        if average >= _LENGTH and is_text:  # some texts may be outside of dictionaries
            for group, chunk in encoded:
                lengths = pc.fill_null(pc.binary_length(self._dictionary(name, group)), 0)
                stored = _LENGTH * len(lengths) + (pc.sum(lengths).as_py() or 0)
                rest = chunk.total_uncompressed_size - stored
                all_encoded = all_encoded and rest < _LENGTH * chunk.num_values
                longest = max(longest, pc.max(lengths).as_py() or 0)
        # Arrow encodes texts outside of dictionaries slowly, and not if stored as differences. To
        # make a dictionary of decoded texts, as the file's schema may ask for, it checks their
        # UTF-8: no cell may decide whether a table is read.
        stays_encoded = (
            is_text
            and (all_encoded or longest > _LONG or name in self._dictionaries)
            and not any("DELTA" in encoding for chunk in chunks for encoding in chunk.encodings)
        )
        text_bytes = average if stays_encoded else max(average, longest)
        return _Column(name, coding, page, text_bytes, stays_encoded)

    def _dictionary(self, name: str, group: int) -> pa.Array:
        """The texts in the dictionary of a row group."""
        with self._open([name], _PART) as table:
            for batch in table.iter_batches(1, row_groups=[group], columns=[name]):
                return batch.column(name).dictionary
        return pa.array([], pa.string())

    def batches(
        self, columns: Sequence[_Column], groups: Sequence[int], rows: int, skip: int = 0
    ) -> Iterator[Array]:
        """All of these columns at once, from a row on."""
        names = [column.name for column in columns]
        text_bytes = sum(column.text_bytes for column in columns)
        rows = max(1, min(rows, int(_TEXTS / max(1.0, text_bytes))))
        encoded = [column.name for column in columns if column.stays_encoded]
        with self._open(encoded, self._part) as table, ThreadPoolExecutor(1) as other_thread:
            for batch in table.iter_batches(rows, row_groups=list(groups), columns=names):
                kept = batch.select(names).slice(skip)
                skip -= batch.num_rows - kept.num_rows
                if kept.num_rows or not batch.num_rows:
                    yield _to_numbers(kept, columns, other_thread)

    def batches_in_turns(
        self, columns: Sequence[_Column], group: int, rows: int
    ) -> Iterator[Array]:
        """Some columns after the others, over one row group that is read again for every block.

        Used where one page of every column would not fit into memory.
        """
        count = self._metadata.row_group(group).num_rows
        size = max(1, _BLOCK // (8 * len(columns)))
        turn = max(1, _TURN // max(column.page for column in columns))
        for start in range(0, count, size):
            block = np.empty((len(columns), min(size, count - start)))
            for first in range(0, len(columns), turn):
                part = columns[first : first + turn]
                filled = 0
                for batch in self.batches(part, [group], batches.BATCH_CELLS // len(part), start):
                    used = batch[:, : block.shape[1] - filled]
                    stop = filled + used.shape[1]
                    block[first : first + turn, filled:stop] = used
                    filled = stop
                    if filled == block.shape[1]:
                        break
                if filled < block.shape[1]:
                    raise ValueError
            for first in range(0, block.shape[1], rows):
                yield block[:, first : first + rows].copy()  # a view would keep the block
            del block

    def _open(self, encoded: list[str], read_ahead: int) -> pq.ParquetFile:
        """The file for some columns: all batches of one object have the same size."""
        return pq.ParquetFile(
            self._stream,
            metadata=self._metadata,
            read_dictionary=encoded,
            buffer_size=read_ahead,
            pre_buffer=False,
        )


def _to_numbers(batch: pa.RecordBatch, columns: Sequence[_Column], pool: Executor) -> Array:
    """All columns as numbers; persons are looked up while the other columns are copied."""
    numbers = np.empty((len(columns), batch.num_rows))
    waiting = {
        k: pool.submit(column.coding.floats, batch.column(k))
        for k, column in enumerate(columns)
        if column.coding.in_order
    }
    for k, column in enumerate(columns):
        if k not in waiting:
            numbers[k] = column.coding.floats(batch.column(k))
    for k, indices in waiting.items():
        numbers[k] = indices.result()
    return numbers
