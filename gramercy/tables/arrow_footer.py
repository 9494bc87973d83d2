"""The memory that reading an Arrow IPC file needs, from its metadata alone.

Arrow loads the columns of a batch that are read as a whole, and decompresses them into as much
memory as the batch states. It loads all dictionaries, also those of other columns. The metadata are
flatbuffers: a table starts with the distance to its vtable, which has the place of each field.
https://arrow.apache.org/docs/format/Columnar.html
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from typing import IO

import pyarrow as pa

MAGIC = b"ARROW1"
_MAX_METADATA = 64 << 20  # bytes
_TAIL = 4 + len(MAGIC)  # bytes after the footer: its length, and the magic bytes
_HEADER, _COMPRESSION, _BUFFERS = 2, 3, 2  # fields of messages and of batches
_DICTIONARIES, _BATCHES = 2, 3  # fields of the footer
_DICTIONARY_BATCH, _DATA = 2, 1  # type of a message, and the batch in it
_TEXTS = (
    *(pa.types.is_string, pa.types.is_large_string),
    *(pa.types.is_binary, pa.types.is_large_binary),
)
_NESTED = (  # the buffers of the outer column; unions have another number in old files
    (pa.types.is_struct, 1),
    (pa.types.is_fixed_size_list, 1),
    (pa.types.is_list, 2),
    (pa.types.is_large_list, 2),
    (pa.types.is_map, 2),
)
_PREFIX = 8  # bytes before a compressed buffer: its size without compression


class MemoryLimitError(ValueError):
    """The metadata would need more memory than allowed."""


def memory_needed(stream: IO[bytes], buffers: Collection[int] | None = None) -> int:
    """Bytes of memory for all dictionaries, which Arrow loads at once, and the largest batch.

    Parameters
    ----------
    stream
        The file.
    buffers
        Positions of the buffers of a batch that are loaded; None for all.

    Raises
    ------
    MemoryLimitError
        If the metadata are too large.
    ValueError, struct.error
        If they are damaged.
    """
    end = stream.seek(0, 2)
    stream.seek(max(0, end - _TAIL))
    (length,) = struct.unpack("<i", stream.read(4))
    if stream.read(len(MAGIC)) != MAGIC or not 0 < length < end:
        raise ValueError
    _check_metadata(length)
    stream.seek(end - _TAIL - length)
    footer = _Table.root(stream.read(length))
    sizes: dict[int, list[int]] = {}
    for name, loaded in ((_DICTIONARIES, None), (_BATCHES, buffers)):
        blocks = [struct.unpack("<qi4xq", block) for block in footer.structs(name, 24)]
        if any(sum(block) > end for block in blocks):  # Arrow reserves memory for the whole body
            raise ValueError
        sizes[name] = [_size(stream, offset, metadata, loaded) for offset, metadata, _ in blocks]
    return sum(sizes[_DICTIONARIES]) + max(sizes[_BATCHES], default=0)


def _size(
    stream: IO[bytes], offset: int, metadata_length: int, loaded: Collection[int] | None
) -> int:
    _check_metadata(metadata_length)
    stream.seek(offset)
    metadata = stream.read(metadata_length)
    start = 8 if metadata[:4] == b"\xff\xff\xff\xff" else 4  # files before Arrow 0.15 have no mark
    message = _Table.root(metadata[start:])
    batch = message.table(_HEADER)
    if message.byte(1) == _DICTIONARY_BATCH:
        batch = batch.table(_DATA)
    compressed, total = batch.has(_COMPRESSION), 0
    for position, each in enumerate(batch.structs(_BUFFERS, 16)):
        place, length = struct.unpack("<qq", each)
        if length < 0:
            raise ValueError
        if loaded is not None and position not in loaded:
            continue
        total += length
        if compressed and length > _PREFIX:
            stream.seek(offset + metadata_length + place)
            stated: int = struct.unpack("<q", stream.read(_PREFIX))[0]
            total += max(stated, 0)  # -1 for a buffer that is not compressed
    return total


def buffers_of(schema: pa.Schema, columns: Collection[str]) -> frozenset[int] | None:
    """Positions of the buffers of some columns in every batch of a file.

    None if the schema has types whose number of buffers differs between batches or versions.
    """
    positions: list[int] = []
    end = 0
    for field in schema:
        count = _buffers(field.type)
        if count is None:
            return None
        if field.name in columns:
            positions += range(end, end + count)
        end += count
    return frozenset(positions)


def _buffers(kind: pa.DataType) -> int | None:
    """Number of buffers of a column, with those of its inner columns, or None."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _buffers(kind.storage_type)
    if types.is_null(kind):
        return 0
    if types.is_primitive(kind) or types.is_decimal(kind) or types.is_fixed_size_binary(kind):
        return 2
    if types.is_dictionary(kind):
        return 2
    if any(is_text(kind) for is_text in _TEXTS):
        return 3
    own = next((count for is_kind, count in _NESTED if is_kind(kind)), None)
    inner = [_buffers(field.type) for field in _inner_fields(kind)] if own is not None else [None]
    return None if own is None or None in inner else own + sum(filter(None, inner))


def _inner_fields(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(kind):
        return [pa.field("entries", pa.struct([kind.key_field, kind.item_field]))]
    return [kind.field(k) for k in range(kind.num_fields)]


def _check_metadata(length: int) -> None:
    if not 0 <= length <= _MAX_METADATA:
        raise MemoryLimitError


class _Table:
    """A table of a flatbuffer."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data, self._position = data, position
        self._vtable = position - struct.unpack_from("<i", data, position)[0]

    @classmethod
    def root(cls, data: bytes) -> _Table:
        """The outermost table."""
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def _place(self, field: int) -> int:
        """Where the value of a field is; 0 if the field is absent."""
        (size,) = struct.unpack_from("<H", self._data, self._vtable)
        entry = 4 + 2 * field
        if entry + 2 > size:
            return 0
        (distance,) = struct.unpack_from("<H", self._data, self._vtable + entry)
        return self._position + distance if distance else 0

    def has(self, field: int) -> bool:
        """Whether a field has a value."""
        return self._place(field) != 0

    def byte(self, field: int) -> int:
        """A field of one byte."""
        return self._data[place] if (place := self._place(field)) else 0

    def table(self, field: int) -> _Table:
        """A field that is a table."""
        place = self._place(field)
        if not place:
            raise ValueError
        return _Table(self._data, place + struct.unpack_from("<I", self._data, place)[0])

    def structs(self, field: int, size: int) -> Iterator[bytes]:
        """A field that is a list of structures of this size."""
        place = self._place(field)
        if not place:
            return
        start = place + struct.unpack_from("<I", self._data, place)[0]
        (count,) = struct.unpack_from("<I", self._data, start)
        if start + 4 + count * size > len(self._data):
            raise ValueError
        for position in range(start + 4, start + 4 + count * size, size):
            yield self._data[position : position + size]
