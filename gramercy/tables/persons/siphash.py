"""SipHash-1-3, with which Python's dictionaries hash text, for compiled code.

Names that collide cannot be chosen without the key, which differs in every process.
J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.common.machine import compiled

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
    """The hash of each text, shape (texts,); see `tables.formats.text_buffers.TextBuffers`."""
    result: NDArray[np.uint64] = compiled(siphash_kernel)(offsets, data, key[0], key[1])
    return result


def siphash_kernel(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], key_0: np.uint64, key_1: np.uint64
) -> NDArray[np.uint64]:
    """See `hashes`; for numba."""
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
