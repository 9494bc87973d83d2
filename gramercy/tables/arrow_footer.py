"""The sizes of batches in an Arrow IPC file, from its metadata alone.

Arrow decompresses a batch as a whole, into as much memory as the batch states. The metadata are
flatbuffers: a table starts with the distance to its vtable, which has the place of each field.
https://arrow.apache.org/docs/format/Columnar.html
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO

from gramercy.tables.parquet_guard.thrift import MemoryLimitError

MAGIC = b"ARROW1"
_MAX_METADATA = 64 << 20  # bytes
_TAIL = 4 + len(MAGIC)  # bytes after the footer: its length, and the magic bytes
_HEADER, _COMPRESSION, _BUFFERS = 2, 3, 2  # fields of messages and of batches
_DICTIONARIES, _BATCHES = 2, 3  # fields of the footer
_DICTIONARY_BATCH, _DATA = 2, 1  # type of a message, and the batch in it
_PREFIX = 8  # bytes before a compressed buffer: its size without compression


def batch_sizes(stream: IO[bytes]) -> Iterator[int]:
    """Bytes of memory of every batch and every dictionary that the footer names.

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
    for name in (_DICTIONARIES, _BATCHES):
        for block in footer.structs(name, 24):
            offset, metadata_length, body_length = struct.unpack("<qi4xq", block)
            yield _size(stream, offset, metadata_length, body_length)


def _size(stream: IO[bytes], offset: int, metadata_length: int, body_length: int) -> int:
    _check_metadata(metadata_length)
    stream.seek(offset)
    metadata = stream.read(metadata_length)
    start = 8 if metadata[:4] == b"\xff\xff\xff\xff" else 4  # files before Arrow 0.15 have no mark
    message = _Table.root(metadata[start:])
    batch = message.table(_HEADER)
    if message.byte(1) == _DICTIONARY_BATCH:
        batch = batch.table(_DATA)
    buffers = [struct.unpack("<qq", each) for each in batch.structs(_BUFFERS, 16)]
    if not batch.has(_COMPRESSION):
        return max(body_length, sum(int(length) for _, length in buffers))
    total = body_length
    for place, length in buffers:
        if length > _PREFIX:
            stream.seek(offset + metadata_length + place)
            stated: int = struct.unpack("<q", stream.read(_PREFIX))[0]
            total += length if stated < 0 else stated
    return total


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
