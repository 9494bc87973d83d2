"""Names and their numbers: a dictionary, or a compiled hash table for many of them.

Both compare all bytes of a name, so names are never confused. The table reads names where Arrow
stores them, and needs a third of the memory: their bytes, and sixteen to thirty-two bytes each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gramercy.common.machine import compiled
from gramercy.tables.formats.values import decoded

Array = NDArray[np.float64]
Slots = NDArray[np.uint32] | NDArray[np.uint64]

UNKNOWN = -1.0
_FEWEST_SLOTS = 1 << 10
_BLOCK = 64  # names


class NameDict:
    """Distinct names in a dictionary, numbered in the order in which they were added. Private.

    One thread adds names, while others may read their number. Texts are large strings.
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def texts(self) -> pa.LargeStringArray:
        """All names in their order."""
        return pa.array(list(self._numbers), pa.large_binary()).view(pa.large_string())

    def find(self, texts: pa.LargeStringArray) -> Array:
        """The number of each text, shape (texts,); `UNKNOWN`, or NaN for a null."""
        encoded = texts.dictionary_encode()
        found = [self._numbers.get(name, UNKNOWN) for name in stored_bytes(encoded.dictionary)]
        return decoded(np.array(found, np.float64), encoded.indices)

    def add(self, texts: pa.LargeStringArray) -> Array:
        """The number of each text, after those that are unknown were added in their order."""
        numbers = self._numbers
        return np.array(
            [
                np.nan if name is None else numbers.setdefault(name, len(numbers))
                for name in stored_bytes(texts)
            ],
            np.float64,
        )


class NameTable:
    """The same as `NameDict` in a hash table with open addressing.

    A name is in the first slot that was free from that of its hash. A slot is zero if it is free;
    otherwise its lower bits hold the name's number plus one, and the others are those of the hash,
    so that few other names are compared.
    """

    def __init__(self) -> None:
        self._count = 0
        self._starts, self._data = np.zeros(1, np.int64), np.empty(0, np.uint8)
        self._slots: Slots = np.zeros(_FEWEST_SLOTS, np.uint32)

    def __len__(self) -> int:
        return self._count

    def __getstate__(self) -> dict[str, Any]:
        """The names without the slots, which depend on the key of this process."""
        starts = self._starts[: self._count + 1]
        return {"starts": starts.copy(), "data": self._data[: starts[-1]].copy()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._starts, self._data = state["starts"], state["data"]
        self._count = len(self._starts) - 1
        self._fill_slots(self._count)

    def texts(self) -> pa.LargeStringArray:
        buffers = [None, pa.py_buffer(self._starts), pa.py_buffer(self._data)]
        return pa.Array.from_buffers(pa.large_string(), self._count, buffers)

    def find(self, texts: pa.LargeStringArray) -> Array:
        return self._look_up(TextBuffers.of(texts), adding=False)

    def add(self, texts: pa.LargeStringArray) -> Array:
        buffers = TextBuffers.of(texts)
        names, size = self._count + len(texts), int(buffers.offsets[-1] - buffers.offsets[0])
        self._starts = _with_room(self._starts, names + 1)
        self._data = _with_room(self._data, int(self._starts[self._count]) + size)
        if 2 * names > self._slots.size:
            self._fill_slots(names)
        return self._look_up(buffers, adding=True)

    def _look_up(self, texts: TextBuffers, *, adding: bool) -> Array:
        numbers = np.empty(len(texts.present))
        self._count = compiled(look_up_kernel)(
            texts.offsets,
            texts.data,
            texts.present,
            hashes(texts.offsets, texts.data),
            adding,
            self._slots,
            self._index_bits,
            self._starts,
            self._data,
            self._count,
            numbers,
        )
        return numbers

    def _fill_slots(self, names: int) -> None:
        """Make slots for so many names, of which at most half are used, and fill in the present."""
        size = max(_FEWEST_SLOTS, 1 << (2 * names - 1).bit_length())
        small = size < 1 << 32
        self._slots = np.zeros(size, np.uint32) if small else np.zeros(size, np.uint64)
        hashed = hashes(self._starts[: self._count + 1], self._data)
        compiled(fill_kernel)(hashed, self._slots, self._index_bits)

    @property
    def _index_bits(self) -> int:
        """Bits of a slot that hold a number; the others are those of the hash."""
        return self._slots.size.bit_length() - 1


Names = NameDict | NameTable


def stored_bytes(texts: pa.LargeStringArray) -> NDArray[np.object_]:
    """Texts as bytes, or None; text in a Parquet file may have bytes that are not UTF-8."""
    stored: NDArray[np.object_] = texts.cast(pa.large_binary()).to_numpy(zero_copy_only=False)
    return stored


def _with_room(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The array with room for `size` items; it grows by half, so that copies are rare."""
    if size <= array.size:
        return array
    larger = np.empty(max(size, array.size + array.size // 2), array.dtype)
    larger[: array.size] = array
    return larger


def look_up_kernel(  # noqa: PLR0912  one loop over blocks
    offsets: NDArray[np.int64],
    data: NDArray[np.uint8],
    present: NDArray[np.bool_],
    hashed: NDArray[np.uint64],
    adding: bool,
    slots: Slots,
    index_bits: int,
    starts: NDArray[np.int64],
    known: NDArray[np.uint8],
    count: int,
    numbers: Array,
) -> int:
    """Find each text, or add it to the `known` bytes; returns the number of names; for numba."""
    one, bits = np.uint64(1), np.uint64(index_bits)
    mask, indices_only = np.uint64(len(slots) - 1), (one << bits) - one
    shift = np.uint64(64 - 8 * slots.itemsize + index_bits)
    places = np.empty(_BLOCK, np.int64)
    for first in range(0, len(numbers), _BLOCK):
        size = min(_BLOCK, len(numbers) - first)
        # Touch what the block will read: these loads wait for memory together, not in turn.
        for i in range(size):
            slot, tag = hashed[first + i] & mask, hashed[first + i] >> shift
            while slots[slot] != 0 and np.uint64(slots[slot]) >> bits != tag:
                slot = (slot + one) & mask
            places[i] = np.int64(np.uint64(slots[slot]) & indices_only) - 1
        for i in range(size):
            places[i] = starts[places[i]] if places[i] >= 0 else -1
        for i in range(size):
            numbers[first + i] = known[places[i]] if 0 <= places[i] < len(known) else 0
        for k in range(first, first + size):
            if not present[k]:
                numbers[k] = np.nan
                continue
            begin, length = offsets[k], offsets[k + 1] - offsets[k]
            slot, tag = hashed[k] & mask, hashed[k] >> shift
            number = np.int64(-1)
            while slots[slot] != 0 and number < 0:
                entry = np.uint64(slots[slot])
                if entry >> bits == tag:
                    index = np.int64(entry & indices_only) - 1
                    start, j = starts[index], 0
                    if starts[index + 1] - start == length:
                        while j < length and known[start + j] == data[begin + j]:
                            j += 1
                        if j == length:
                            number = index
                slot = (slot + one) & mask
            if number < 0 and adding:
                number, start = np.int64(count), starts[count]
                known[start : start + length] = data[begin : begin + length]
                starts[count + 1] = start + length
                count += 1
                slots[slot] = tag << bits | np.uint64(count)
            numbers[k] = number
    return count


def fill_kernel(hashed: NDArray[np.uint64], slots: Slots, index_bits: int) -> None:
    """Number distinct names in empty slots; for numba."""
    one, bits = np.uint64(1), np.uint64(index_bits)
    mask = np.uint64(len(slots) - 1)
    shift = np.uint64(64 - 8 * slots.itemsize + index_bits)
    for k in range(len(hashed)):
        slot = hashed[k] & mask
        while slots[slot] != 0:
            slot = (slot + one) & mask
        slots[slot] = hashed[k] >> shift << bits | np.uint64(k + 1)


_56 = np.uint64(56)
_13, _16, _17, _21, _32 = map(np.uint64, (13, 16, 17, 21, 32))
_43, _47, _48, _51 = map(np.uint64, (64 - 21, 64 - 17, 64 - 16, 64 - 13))
_0, _FF = np.uint64(0), np.uint64(0xFF)
_V0, _V1 = np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D)
_V2, _V3 = np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573)

# Python draws a secret of its own for every process, unless its environment states one.
KEY = np.array([hash("first half"), hash("second half")]).view(np.uint64)


def hashes(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], key: NDArray[np.uint64] = KEY
) -> NDArray[np.uint64]:
    """The hash of each text, shape (texts,), by SipHash-1-3, as in Python's dictionaries.

    Names that collide cannot be chosen without the key, which differs in every process.
    J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012.
    """
    result: NDArray[np.uint64] = compiled(siphash_kernel)(offsets, data, key[0], key[1])
    return result


def siphash_kernel(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], key_0: np.uint64, key_1: np.uint64
) -> NDArray[np.uint64]:
    """The hash of each text; for numba."""
    result = np.empty(len(offsets) - 1, np.uint64)
    for k in range(len(result)):
        position, length = offsets[k], offsets[k + 1] - offsets[k]
        words = length // 8
        v0, v1, v2, v3 = key_0 ^ _V0, key_1 ^ _V1, key_0 ^ _V2, key_1 ^ _V3
        # Full words; the bytes that remain, with the length; and three rounds without input.
        for step in range(words + 4):
            word = _0
            if step < words:
                for j in range(8):
                    word |= np.uint64(data[position + j]) << np.uint64(8 * j)
                position += 8
            elif step == words:
                word = np.uint64(length) << _56
                for j in range(length - 8 * words):
                    word |= np.uint64(data[position + j]) << np.uint64(8 * j)
            elif step == words + 1:
                v2 ^= _FF
            v3 ^= word
            v0 += v1
            v2 += v3
            v1 = (v1 << _13 | v1 >> _51) ^ v0
            v3 = (v3 << _16 | v3 >> _48) ^ v2
            v0 = v0 << _32 | v0 >> _32
            v2 += v1
            v0 += v3
            v1 = (v1 << _17 | v1 >> _47) ^ v2
            v3 = (v3 << _21 | v3 >> _43) ^ v0
            v2 = v2 << _32 | v2 >> _32
            v0 ^= word
        result[k] = v0 ^ v1 ^ v2 ^ v3
    return result


@dataclass(frozen=True, repr=False)
class TextBuffers:
    """The buffers of Arrow text as arrays, for compiled code that makes no objects. Private."""

    # text k has the bytes from offset k up to offset k + 1; shape (texts + 1,)
    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]  # the bytes, of type uint8
    present: NDArray[np.bool_]  # whether each text is not null, shape (texts,)

    @classmethod
    def of(cls, texts: pa.LargeStringArray) -> TextBuffers:
        """The buffers of an array, which may be a slice, without a copy."""
        count = len(texts)
        _, offsets, data = texts.buffers()
        none = np.zeros(count + 1, np.int64)
        return cls(
            none
            if offsets is None
            else np.frombuffer(offsets, np.int64)[texts.offset :][: count + 1],
            np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8),
            texts.is_valid().to_numpy(zero_copy_only=False)
            if texts.null_count
            else np.ones(count, np.bool_),
        )
