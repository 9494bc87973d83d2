"""Check the footer and the page headers of a Parquet file before a library reads them.

A library decompresses a page as a whole and parses a footer as a whole, and both may need a
thousand times more memory than their bytes in the file. Their headers state the sizes.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from gramercy.common.parquet.thrift import (
    BINARY,
    LIST,
    STRUCT,
    CompactReader,
    MemoryLimitError,
)

MAGIC = b"PAR1"
_CHECKED: set[bytes] = (
    set()
)  # digests of accepted footers, because each partition opens its file again
_SMALL_FOOTER = 1 << 17  # bytes; a smaller footer needs little memory for any content
_FOOTER = 288 << 20  # bytes of memory
_COLUMN, _CHUNK, _ROW_GROUP = 1600, 640, 256  # bytes of memory for each, approximately
_MAX_DEPTH = 64  # nested groups of columns
_HEADER, _MAX_HEADER = 256, 1 << 24  # bytes to read for a page header, at first and at most

DICTIONARY, _DATA_V2 = 2, 3
PLAIN, _DELTA_LENGTH, _DELTA_BYTES = 0, 6, 7
VALUE_ENCODINGS = {PLAIN, _DELTA_LENGTH, _DELTA_BYTES}  # others store dictionary indices


@dataclass(frozen=True)
class Page:
    """A page, as its header states it.

    Parameters
    ----------
    offset
        Position of the page's body in the file.
    kind, encoding, values
        Values of these fields in the header.
    compressed_size, size
        Bytes of the body in the file, and decompressed.
    """

    offset: int
    kind: int
    encoding: int
    values: int
    compressed_size: int
    size: int


def check_footer(stream: IO[bytes]) -> None:
    """Refuse a footer that would need too much memory.

    Raises
    ------
    MemoryLimitError
        If the footer would need too much memory.
    ValueError, IndexError
        If the file has no valid footer.
    """
    end = stream.seek(0, 2)
    stream.seek(max(0, end - 8))
    length, magic = struct.unpack("<I4s", stream.read(8))
    if magic != MAGIC or length > end - 8:
        raise ValueError
    if length <= _SMALL_FOOTER:
        return
    if length > _FOOTER:
        raise MemoryLimitError
    stream.seek(end - 8 - length)
    data = stream.read(length)
    digest = hashlib.sha256(data).digest()
    if digest in _CHECKED:
        return
    footer = CompactReader(data, _FOOTER)
    for field, kind in footer.fields():
        if (field, kind) == (2, LIST):
            _check_columns(footer)
        elif (field, kind) == (4, LIST):
            for _ in range(footer.list_header()[1]):
                _check_row_group(footer)
        else:
            footer.skip(kind)
    _CHECKED.add(digest)


def _check_columns(footer: CompactReader) -> None:
    _, count = footer.list_header()
    footer.charge(_COLUMN * count)
    open_groups: list[int] = []  # for each open group, the number of children to come
    for _ in range(count):
        children = 0
        for field, kind in footer.fields():
            if field == 5:
                children = footer.signed_integer()
            else:
                footer.skip(kind)
        while open_groups and open_groups[-1] == 0:
            open_groups.pop()
        if open_groups:
            open_groups[-1] -= 1
        if children > 0:
            open_groups.append(children)
        if len(open_groups) > _MAX_DEPTH:
            raise MemoryLimitError


def _check_row_group(footer: CompactReader) -> None:
    footer.charge(_ROW_GROUP)
    for field, kind in footer.fields():
        if (field, kind) == (1, LIST):
            item_kind, count = footer.list_header()
            footer.charge(_CHUNK * count)
            for _ in range(count):
                footer.skip(item_kind)
        else:
            footer.skip(kind)


def pages(stream: IO[bytes], chunk: Any) -> Iterator[Page]:
    """The pages of a column in a row group, in order; `chunk` is Arrow's description of it.

    Raises
    ------
    ValueError, IndexError
        If the bytes are not page headers.
    """
    offset = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < offset:
        offset = chunk.dictionary_page_offset
    end, values = offset + chunk.total_compressed_size, 0
    while offset < end and values < chunk.num_values:
        page = _page_at(stream, offset)
        yield page
        offset = page.offset + page.compressed_size
        values += 0 if page.kind == DICTIONARY else page.values


def _page_at(stream: IO[bytes], offset: int) -> Page:
    size = _HEADER
    while True:
        stream.seek(offset)
        data = stream.read(size)
        try:
            return _parse_header(CompactReader(data), offset)
        except IndexError:
            if len(data) < size or size >= _MAX_HEADER:
                raise
            size *= 16


def _parse_header(header: CompactReader, offset: int) -> Page:
    facts: dict[int, Any] = {}
    details: dict[int, int] = {}
    for field, kind in header.fields():
        if field in {5, 7, 8} and kind == STRUCT:
            details = dict(_integer_fields(header))
        elif field in {1, 2, 3}:
            facts[field] = header.signed_integer()
        else:
            header.skip(kind)
    size, compressed_size = facts[2], facts[3]
    if size < 0 or compressed_size < 0 or details.get(1, 0) < 0:
        raise ValueError
    kind = facts[1]
    values = details.get(1, 0)
    encoding = details[4] if kind == _DATA_V2 else details.get(2, 0)
    return Page(offset + header.position, kind, encoding, values, compressed_size, size)


def _integer_fields(header: CompactReader) -> Iterator[tuple[int, int]]:
    for field, kind in header.fields():
        if kind in {BINARY, LIST, STRUCT}:
            header.skip(kind)
        elif kind in {1, 2}:  # true, false
            yield field, int(kind == 1)
        else:
            yield field, header.signed_integer()
