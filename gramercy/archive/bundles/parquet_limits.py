"""Refuses Parquet files of a hostile archive, from their footers and page headers.

Arrow decompresses a page as a whole, and repeats a value as often as a page states. A few bytes in
a file can therefore need any amount of memory and time. Their headers state the sizes.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

_ROW_BYTES, _FIXED_BYTES = 64, 8 << 20  # larger than what is written, decompressed
_PLAIN, _PLAIN_DICTIONARY, _RLE, _RLE_DICTIONARY = 0, 2, 3, 8
# Encodings that repeat a part of a text would need more memory than their pages.
ENCODINGS = frozenset({_PLAIN, _PLAIN_DICTIONARY, _RLE, _RLE_DICTIONARY})


def bounded_bytes(rows: int) -> int:
    """Bytes, also decompressed, that a table of texts and numbers with this many rows may need."""
    return _FIXED_BYTES + rows * _ROW_BYTES


def read_bounded(path: Path, most_rows: int, size: int | None = None) -> pa.Table:
    """Read a Parquet file into memory, if it has at most this many rows.

    Columns of text are dictionary-encoded in the result: a long text that is stored once would
    otherwise be repeated in every row.
    """
    size = bounded_bytes(most_rows) if size is None else size
    if path.stat().st_size > size:
        raise ValueError
    stream = io.BytesIO(path.read_bytes())
    with open_checked(stream) as file:
        texts = [x.name for x in file.schema_arrow if pa.types.is_string(x.type)]
        if file.metadata.num_rows > most_rows:
            raise ValueError
        check_pages(stream, file, Budget(size), ENCODINGS)
    # Without Arrow's threads, because a process that ends while they start is aborted.
    with pq.ParquetFile(stream, read_dictionary=texts, pre_buffer=False) as file:
        return file.read(use_threads=False).combine_chunks()


def open_checked(stream: IO[bytes]) -> pq.ParquetFile:
    """Open a file whose footer needs little memory."""
    check_footer(stream)
    stream.seek(0)
    return pq.ParquetFile(stream, pre_buffer=False)


class Budget:
    """Accepts pages until their decompressed sizes exceed a number of bytes."""

    def __init__(self, size: int) -> None:
        self._left = size

    def __call__(self, page: Page) -> bool:
        self._left -= max(page.size, page.compressed_size)
        return self._left >= 0


def check_pages(
    stream: IO[bytes],
    file: pq.ParquetFile,
    accepts: Callable[[Page], bool],
    encodings: Collection[int],
) -> None:
    """Check all pages of a file by their headers."""
    facts = file.metadata
    for group in range(facts.num_row_groups):
        for k in range(facts.num_columns):
            for page in pages(stream, facts.row_group(group).column(k)):
                if page.encoding not in encodings or not accepts(page):
                    raise ValueError
    stream.seek(0)


def texts_of(cells: pa.ChunkedArray) -> tuple[str | None, ...]:
    """Texts of a dictionary-encoded column; equal ones share their memory."""
    texts: list[str | None] = []
    for chunk in cells.chunks:
        words = chunk.dictionary.to_pylist()
        texts += [None if k is None else words[k] for k in chunk.indices.to_pylist()]
    return tuple(texts)


def codes_of(cells: pa.ChunkedArray, words: Sequence[str]) -> NDArray[np.int64]:
    """The index among `words` of each cell of a dictionary-encoded column; -1 for another text."""
    index = {word: k for k, word in enumerate(words)}
    parts = [np.zeros(0, np.int64)]
    for chunk in cells.chunks:
        codes = np.array([index.get(word, -1) for word in chunk.dictionary.to_pylist()], np.int64)
        parts.append(codes[chunk.indices.to_numpy()])
    return np.concatenate(parts)


def has_schema(table: pa.Table, schema: pa.Schema) -> bool:
    """Whether a table from `read_bounded` has these columns."""
    encoded = pa.dictionary(pa.int32(), pa.string())
    types = [encoded if pa.types.is_string(field.type) else field.type for field in schema]
    return bool(table.schema.names == schema.names and table.schema.types == types)


_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = {4, 5, 6}
_MAX_DEPTH = 32
_MOST_FIELDS = 64  # of a struct; Parquet has fewer
_LONG = 15  # as the size in a list's first byte: the actual size follows

_SMALL_FOOTER = 1 << 17  # bytes; a smaller footer needs little memory for any content
_FOOTER = 288 << 20  # bytes of memory
_COLUMN, _CHUNK, _OTHER = 1600, 640, 128  # bytes of memory for each struct, approximately
_HEADER, _MAX_HEADER = 256, 1 << 24  # bytes to read for a page header, at first and at most

PLAIN = 0
_DICTIONARY, _DATA_V2 = 2, 3


@dataclass(frozen=True)
class Page:
    """A page, as its header states it."""

    offset: int  # position of the page's body in the file
    # kind, encoding, values: values of these fields in the header
    kind: int
    encoding: int
    values: int
    # compressed_size, size: bytes of the body in the file, and decompressed
    compressed_size: int
    size: int


class _CompactReader:
    """Reads values one after the other, and counts the memory that Arrow would need for them."""

    def __init__(self, data: bytes, limit: int = 1 << 24) -> None:
        self._data = data
        self._left = limit
        self.position = 0

    def charge(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ValueError

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and type of each field of a struct; the caller reads each value."""
        field = 0
        while first := self._byte():
            delta = first >> 4
            field = field + delta if delta else self._signed_integer()
            if not 0 < field <= _MOST_FIELDS:
                raise ValueError
            yield field, first & 15

    def items(self) -> Iterator[int]:
        """The type of each item of a list; the caller reads each item."""
        first = self._byte()
        size = first >> 4
        for _ in range(self._varint() if size == _LONG else size):
            yield first & 15

    def value(self, kind: int, depth: int = 0) -> Any:
        """Read a value: an integer or a boolean, a struct of them as a dict, otherwise None."""
        if kind in _INTEGERS:
            return self._signed_integer()
        if kind == _STRUCT and depth <= _MAX_DEPTH:
            self.charge(_OTHER)
            return {field: self.value(inner, depth + 1) for field, inner in self.fields()}
        if kind in {_TRUE, _FALSE}:
            return kind == _TRUE
        if kind in {_LIST, _SET} and depth <= _MAX_DEPTH:
            for inner in self.items():
                self.charge(8)
                self.value(_BYTE if inner in {_TRUE, _FALSE} else inner, depth + 1)
        elif kind == _BINARY:
            size = self._varint()
            self.charge(32 + size)
            self._advance(size)
        elif kind in {_BYTE, _DOUBLE}:
            self._advance(1 if kind == _BYTE else 8)
        else:
            raise ValueError
        return None

    def _signed_integer(self) -> int:
        n = self._varint()
        return n >> 1 ^ -(n & 1)

    def _varint(self) -> int:
        """Read an unsigned integer; inlined for speed, because they are most of a footer."""
        data, at, n, shift = self._data, self.position, 0, 0
        while (byte := data[at]) & 128:
            n |= (byte & 127) << shift
            shift += 7
            at += 1
        self.position = at + 1
        return n | byte << shift

    def _byte(self) -> int:
        byte = self._data[self.position]
        self.position += 1
        return byte

    def _advance(self, size: int) -> None:
        self.position += size
        if self.position > len(self._data):
            raise IndexError


def check_footer(stream: IO[bytes]) -> None:
    """Refuse a footer that would need too much memory, or has columns inside of columns."""
    end = stream.seek(0, 2)
    stream.seek(max(0, end - 8))
    length, magic = struct.unpack("<I4s", stream.read(8))
    if magic != b"PAR1" or length > min(end - 8, _FOOTER):
        raise ValueError
    if length <= _SMALL_FOOTER:
        return
    stream.seek(end - 8 - length)
    footer = _CompactReader(stream.read(length), _FOOTER)
    for field, kind in footer.fields():
        if (field, kind) == (2, _LIST):
            # Field 5 is the number of inner columns, which only the outermost one has.
            if sum(bool(column.get(5)) for column in _structs(footer, _COLUMN)) > 1:
                raise ValueError
        elif (field, kind) == (4, _LIST):
            for inner in footer.items():
                _check_row_group(footer, inner)
        else:
            footer.value(kind)


def _structs(footer: _CompactReader, size: int) -> Iterator[dict[int, Any]]:
    """The structs of a list, for each of which Arrow needs some memory."""
    for kind in footer.items():
        footer.charge(size)
        if kind != _STRUCT:
            raise ValueError
        yield footer.value(kind)


def _check_row_group(footer: _CompactReader, kind: int) -> None:
    footer.charge(_OTHER)
    if kind != _STRUCT:
        raise ValueError
    for field, inner in footer.fields():
        if (field, inner) == (1, _LIST):
            for _ in _structs(footer, _CHUNK):
                pass
        else:
            footer.value(inner)


def pages(stream: IO[bytes], chunk: Any) -> Iterator[Page]:
    """The pages of a column in a row group, in order; `chunk` is Arrow's description of it."""
    offset = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < offset:
        offset = chunk.dictionary_page_offset
    end, values = offset + chunk.total_compressed_size, 0
    while offset < end and values < chunk.num_values:
        page = _page_at(stream, offset)
        yield page
        offset = page.offset + page.compressed_size
        values += 0 if page.kind == _DICTIONARY else page.values


def _page_at(stream: IO[bytes], offset: int) -> Page:
    size = _HEADER
    while True:
        stream.seek(offset)
        data = stream.read(size)
        try:
            return _parse_header(_CompactReader(data), offset)
        except IndexError:
            if len(data) < size or size >= _MAX_HEADER:
                raise
            size *= 16


def _parse_header(header: _CompactReader, offset: int) -> Page:
    facts = header.value(_STRUCT)
    kind, size, compressed_size = facts[1], facts[2], facts[3]
    details: dict[int, int] = next((facts[k] for k in (8, 7, 5) if k in facts), {})
    values, encoding = details.get(1, 0), details[4] if kind == _DATA_V2 else details.get(2, 0)
    if min(size, compressed_size, values) < 0:
        raise ValueError
    return Page(offset + header.position, kind, encoding, values, compressed_size, size)
