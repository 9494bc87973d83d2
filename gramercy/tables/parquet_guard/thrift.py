"""Just enough of Thrift's compact protocol to look at what a Parquet file says of itself."""

from __future__ import annotations

from collections.abc import Iterator

BINARY, LIST, SET, MAP, STRUCT = 8, 9, 10, 11, 12
_TRUE, _FALSE, _BYTE, _DOUBLE = 1, 2, 3, 7
_INTEGERS = {4, 5, 6}
_DEEPEST = 32
_LONG = 15  # a list's head has room for a smaller size


class TooHeavyError(ValueError):
    """What is described would take more memory than there is for it."""


class Compact:
    """Reads values one after the other.

    Parameters
    ----------
    data
        Raises IndexError where it ends too early.
    most
        Bytes of memory that what is passed over may take once a library has parsed it. Every byte
        of the data is worth several there: a description that says nothing costs most.
    """

    def __init__(self, data: bytes, most: int = 1 << 24) -> None:
        self._data = data
        self._left = most
        self.at = 0

    def charge(self, size: int) -> None:
        """Count memory; raises TooHeavyError where there is none left."""
        self._left -= size
        if self._left < 0:
            raise TooHeavyError

    def number(self) -> int:
        """A whole number with a sign."""
        n = self._varint()
        return n >> 1 ^ -(n & 1)

    def fields(self) -> Iterator[tuple[int, int]]:
        """(field, type) of a struct; each value has to be read, or skipped, before the next."""
        field = 0
        while head := self._byte():
            ahead = head >> 4
            field = field + ahead if ahead else self.number()
            yield field, head & 15

    def items(self) -> tuple[int, int]:
        """(type, number) of a list's items, which follow."""
        head = self._byte()
        size = head >> 4
        return head & 15, self._varint() if size == _LONG else size

    def skip(self, kind: int, depth: int = 0) -> None:
        """Pass over a value of this type."""
        if kind in _INTEGERS:
            self._varint()
        elif kind == BINARY:
            size = self._varint()
            self.charge(32 + size)
            self._pass(size)
        elif depth > _DEEPEST:
            raise TooHeavyError
        elif kind == STRUCT:
            self._skip_struct(depth)
        elif kind in {LIST, SET}:
            inner, size = self.items()
            self.charge(8 * size)
            for _ in range(size):
                self.skip(_BYTE if inner in {_TRUE, _FALSE} else inner, depth + 1)
        elif kind in {_BYTE, _DOUBLE}:
            self._pass(1 if kind == _BYTE else 8)
        elif kind not in {_TRUE, _FALSE}:
            raise ValueError

    def _skip_struct(self, depth: int) -> None:
        """Footers are millions of these: whole numbers are passed over at once."""
        self.charge(128)
        data, at = self._data, self.at
        while head := data[at]:
            at += 1
            if head < 1 << 4:  # the field's number follows
                while data[at] & 128:
                    at += 1
                at += 1
            kind = head & 15
            if kind in _INTEGERS:
                while data[at] & 128:
                    at += 1
                at += 1
            elif kind not in {_TRUE, _FALSE}:
                self.at = at
                self.skip(kind, depth + 1)
                at = self.at
        self.at = at + 1

    def _varint(self) -> int:
        """A loop of its own, since most of what is read is this."""
        data, at, n, shift = self._data, self.at, 0, 0
        while (byte := data[at]) & 128:
            n |= (byte & 127) << shift
            shift += 7
            at += 1
        self.at = at + 1
        return n | byte << shift

    def _byte(self) -> int:
        byte = self._data[self.at]
        self.at += 1
        return byte

    def _pass(self, size: int) -> None:
        self.at += size
        if self.at > len(self._data):
            raise IndexError
