"""Texts of a Parquet file that are too large to be unpacked as a whole.

One cell may hold two gigabytes of text, or say that it begins like the one before it, a million
times over. Such a cell is no level; but it may neither keep the table from being read, which would
tell of it, nor cost its neighbours on the page their levels. So pages are unpacked here piece by
piece, and of a cell no more is kept than a level can have.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tables.pages import (
    DATA_V2,
    DELTA_BYTES,
    DELTA_LENGTH,
    DICTIONARY,
    PLAIN,
    PLAIN_DICTIONARY,
    RLE_DICTIONARY,
    Page,
    pages,
)
from tables.thrift import TooHeavyError
from tables.unpack import Part, Readable, unpacked
from tables.values import Levels, converted, longest

Array = NDArray[np.float64]
_CELLS, _BYTES = 1 << 16, 1 << 23  # of a batch
_ENTRIES = 1 << 20  # of a dictionary, and lengths that are told before their texts
_INDICES = 64 << 20  # bytes of levels
_DELTA_BLOCK = 1 << 20  # bytes


def far_texts(stream: IO[bytes], chunk: Any, optional: bool, levels: Levels) -> Iterator[Array]:
    """Places of the levels in a column of a row group, in batches; NaN where a cell is none.

    Parameters
    ----------
    stream, chunk
        The file, and Arrow's description of the column in the row group.
    optional
        Whether cells may be missing.
    levels
        Texts.

    Raises
    ------
    TooHeavyError
        If not the texts but what describes them takes too much memory.
    ValueError, IndexError, EOFError
        If what lies there is none of it.
    """
    most, dictionary = longest(levels), np.zeros(0)
    for page in pages(stream, chunk):
        before = sum(page.levels)
        part = Part(stream, page.at + before, page.packed - before)
        codec = chunk.compression if page.compressed else "UNCOMPRESSED"
        body = _Bytes(unpacked(part, codec), most)
        if page.kind == DICTIONARY:
            if page.values > _ENTRIES:
                raise TooHeavyError
            dictionary = _places(_plain(body, page.values), levels)
            continue
        defined = _defined(stream, page, body, optional)
        left = page.values
        places = _cells(page, body, dictionary, levels)
        while left:
            here = defined(min(left, _CELLS))
            cells = np.full(len(here), np.nan)
            cells[here] = places(int(np.count_nonzero(here)))
            yield cells
            left -= len(here)


class _Bytes:
    """A stream that gives what it is asked for, or fails; texts no longer than `most`."""

    def __init__(self, stream: Readable, most: int = 0) -> None:
        self._stream, self.most = stream, most

    def __call__(self, size: int) -> bytes:
        data = self._stream.read(size)
        while len(data) < size:
            more = self._stream.read(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def varint(self) -> int:
        n = shift = 0
        while (byte := self(1)[0]) & 128:
            n |= (byte & 127) << shift
            shift += 7
        return n | byte << shift

    def text(self, size: int) -> bytes:
        """The beginning of a text of this size; the rest is passed over."""
        begun = self(min(size, self.most))
        left = size - len(begun)
        while left:
            left -= len(self(min(left, 1 << 16)))
        return begun


def _defined(
    stream: IO[bytes], page: Page, body: _Bytes, optional: bool
) -> Callable[[int], NDArray[np.bool_]]:
    """Which of the next so many cells are there."""
    if not optional:
        return lambda count: np.ones(count, dtype=bool)
    if page.kind == DATA_V2:
        repetition, size = page.levels
        levels = _Bytes(Part(stream, page.at + repetition, size))
    else:
        (size,) = struct.unpack("<I", body(4))
        if size > _INDICES:
            raise TooHeavyError
        levels = _Bytes(_Held(body(size)))
    found = _Runs(levels, 1)
    return lambda count: found.take(count) == 1


class _Held:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def read(self, size: int, /) -> bytes:
        piece = self._data[self._at : self._at + size]
        self._at += len(piece)
        return piece


def _cells(page: Page, body: _Bytes, dictionary: Array, levels: Levels) -> Callable[[int], Array]:
    """The next so many cells that are there."""
    if page.encoding in {PLAIN_DICTIONARY, RLE_DICTIONARY}:
        indices: list[_Runs] = []

        def looked_up(count: int) -> Array:
            if not count:  # where no cell is there, there may be no width either
                return np.zeros(0)
            if not indices:
                indices.append(_Runs(body, body(1)[0]))
            return dictionary[indices[0].take(count)]

        return looked_up
    ways = {PLAIN: _plain, DELTA_LENGTH: _delta_length, DELTA_BYTES: _delta_bytes}
    texts = ways[page.encoding](body, page.values)
    return lambda count: _places((next(texts) for _ in range(count)), levels)


def _places(texts: Iterator[bytes | None], levels: Levels) -> Array:
    found, held, size = [np.zeros(0)], [], 0
    for text in texts:
        held.append(text)
        size += len(text or b"")
        if len(held) >= _CELLS or size >= _BYTES:
            found.append(converted(_texts(held), levels))
            held, size = [], 0
    return np.concatenate([*found, converted(_texts(held), levels)])


def _texts(held: list[bytes | None]) -> pa.Array:
    """As Arrow reads them, which does not ask whether they are UTF-8."""
    return pa.array(held, pa.binary()).view(pa.string())


def _plain(body: _Bytes, count: int) -> Iterator[bytes | None]:
    for _ in range(count):
        (size,) = struct.unpack("<I", body(4))
        begun = body.text(size)
        yield begun if size <= body.most else None


def _delta_length(body: _Bytes, _: int) -> Iterator[bytes | None]:
    for size in _deltas(body):
        begun = body.text(size)
        yield begun if size <= body.most else None


def _delta_bytes(body: _Bytes, _: int) -> Iterator[bytes | None]:
    """Each begins as the one before it."""
    before, begun = 0, b""
    kept, sizes = _deltas(body), _deltas(body)
    for keep, size in zip(kept, sizes, strict=True):
        if keep > before:
            raise ValueError
        begun = (begun[:keep] + body.text(size))[: body.most]
        before = keep + size
        yield begun if before <= body.most else None


def _deltas(body: _Bytes) -> Iterator[int]:
    """Whole numbers, none negative, told by their differences; all are read at once."""
    block, minis, count = body.varint(), body.varint(), body.varint()
    if count > _ENTRIES or not 0 < minis <= block <= _DELTA_BLOCK or block % (8 * minis):
        raise TooHeavyError
    found = [np.array([_zigzag(body.varint())], dtype=np.int64)]
    mini, left = block // minis, count - 1
    while left > 0:
        least, widths = _zigzag(body.varint()), body(minis)
        for width in widths[: -(-left // mini)]:
            differences = _unpacked(body(mini * width // 8), width, mini) + least
            found.append(found[-1][-1] + np.cumsum(differences))
            left -= mini
    numbers = np.concatenate(found)[:count]
    if (numbers < 0).any():
        raise ValueError
    return map(int, numbers)


def _zigzag(n: int) -> int:
    return n >> 1 ^ -(n & 1)


def _unpacked(data: bytes, width: int, count: int) -> NDArray[np.int64]:
    """Numbers of `width` bits each, the lowest first."""
    if not width:
        return np.zeros(count, dtype=np.int64)
    bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
    weights = np.int64(1) << np.arange(width, dtype=np.int64)
    found: NDArray[np.int64] = bits.reshape(count, width) @ weights
    return found


class _Runs:
    """Parquet's mixture of runs and of packed numbers."""

    def __init__(self, body: _Bytes, width: int) -> None:
        if width > 32:
            raise ValueError
        self._body, self._width = body, width
        self._run, self._value, self._groups = 0, 0, 0
        self._packed = np.zeros(0, dtype=np.int64)

    def take(self, count: int) -> NDArray[np.int64]:
        """The next so many numbers."""
        found = [np.zeros(0, dtype=np.int64)]
        while count:
            if len(self._packed):
                found.append(self._packed[:count])
                self._packed = self._packed[count:]
            elif self._run:
                found.append(np.full(min(count, self._run), self._value, dtype=np.int64))
                self._run -= len(found[-1])
            elif self._groups:
                groups = min(self._groups, _CELLS // 8)
                self._groups -= groups
                data = self._body(groups * self._width)
                self._packed = _unpacked(data, self._width, 8 * groups)
                continue
            else:
                self._next()
                continue
            count -= len(found[-1])
        return np.concatenate(found)

    def _next(self) -> None:
        head = self._body.varint()
        if head & 1:
            self._groups = head >> 1
        else:
            self._run = head >> 1
            data = self._body((self._width + 7) // 8)
            self._value = int.from_bytes(data, "little")
