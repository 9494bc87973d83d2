"""The part of Thrift's compact protocol that Parquet footers and page headers use."""

from __future__ import annotations

from collections.abc import Iterator

BINARY, LIST, SET, MAP, STRUCT = 8, 9, 10, 11, 12
_TRUE, _FALSE, _BYTE, _DOUBLE = 1, 2, 3, 7
_INTEGERS = {4, 5, 6}
_MAX_DEPTH = 32
_LONG = 15  # as the size in a list's first byte: the actual size follows


class MemoryLimitError(ValueError):
    """Parsing would need more memory than allowed."""


class CompactReader:
    """Reads values one after the other, and counts the memory that a library would need for them.

    Parameters
    ----------
    data
        The bytes. Reading beyond their end raises IndexError.
    limit
        Bytes of memory that a library may need for the values that `skip` passes over. It needs
        several times their size in the data, and the largest multiple for empty structs.

    Attributes
    ----------
    position
        Number of bytes read.
    """

    def __init__(self, data: bytes, limit: int = 1 << 24) -> None:
        self._data = data
        self._left = limit
        self.position = 0

    def charge(self, size: int) -> None:
        """Count bytes of memory; raises MemoryLimitError beyond the limit."""
        self._left -= size
        if self._left < 0:
            raise MemoryLimitError

    def signed_integer(self) -> int:
        """Read a signed integer."""
        n = self._varint()
        return n >> 1 ^ -(n & 1)

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and type of each field of a struct; the caller reads or skips each value."""
        field = 0
        while first := self._byte():
            delta = first >> 4
            field = field + delta if delta else self.signed_integer()
            yield field, first & 15

    def list_header(self) -> tuple[int, int]:
        """Read the type and number of the items of a list; the items follow."""
        first = self._byte()
        size = first >> 4
        return first & 15, self._varint() if size == _LONG else size

    def skip(self, kind: int, depth: int = 0) -> None:
        """Skip a value of this type."""
        if kind in _INTEGERS:
            self._varint()
        elif kind == BINARY:
            size = self._varint()
            self.charge(32 + size)
            self._advance(size)
        elif depth > _MAX_DEPTH:
            raise MemoryLimitError
        elif kind == STRUCT:
            self._skip_struct(depth)
        elif kind in {LIST, SET}:
            inner, size = self.list_header()
            self.charge(8 * size)
            for _ in range(size):
                self.skip(_BYTE if inner in {_TRUE, _FALSE} else inner, depth + 1)
        elif kind in {_BYTE, _DOUBLE}:
            self._advance(1 if kind == _BYTE else 8)
        elif kind not in {_TRUE, _FALSE}:
            raise ValueError

    def _skip_struct(self, depth: int) -> None:
        """Skip a struct. Integers are skipped inline: footers have millions of structs."""
        self.charge(128)
        data, at = self._data, self.position
        while first := data[at]:
            at += 1
            if first < 1 << 4:  # the field's number follows
                while data[at] & 128:
                    at += 1
                at += 1
            kind = first & 15
            if kind in _INTEGERS:
                while data[at] & 128:
                    at += 1
                at += 1
            elif kind not in {_TRUE, _FALSE}:
                self.position = at
                self.skip(kind, depth + 1)
                at = self.position
        self.position = at + 1

    def _varint(self) -> int:
        """Read an unsigned integer. It is inlined for speed: they are most of a footer."""
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
