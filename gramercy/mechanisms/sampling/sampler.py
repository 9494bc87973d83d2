"""The only source of noise: every draw is made here, from the operating system's generator.

Integer noise is exact: draws have exactly the stated law, and no floating-point computation can be
observed in them (sampling/rounding.py, sampling/discrete.py). `gaussian` and `gamma` are doubles,
for mechanisms that declare floating-point arithmetic.

Each draw takes 64 bits: a sign, and the first 63 bits of a tail probability. If they do not
determine the integer, more bits are appended to them; they are never drawn again. Many draws are
made in several threads; draws that need more bits are resolved by mpmath, in one thread.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv, gammaincinv

from gramercy.common.machine import cores
from gramercy.mechanisms.sampling import discrete
from gramercy.mechanisms.sampling.discrete import MAX_DISCRETE_SIGMA, discrete_gaussian_variance
from gramercy.mechanisms.sampling.inverse_cdf_table import inverse_cdf_table
from gramercy.mechanisms.sampling.rounding import (
    LAPLACE,
    NORMAL,
    Law,
    resolve_exact,
    tail_midpoint,
)
from gramercy.schemas import families, wordings

__all__ = [
    "MAX_DISCRETE_SIGMA",
    "discrete_gaussian",
    "discrete_gaussian_variance",
    "gamma",
    "gaussian",
    "random_keys",
    "rounded_gaussian",
    "rounded_laplace",
    "self_test",
    "uniform_integers",
]

_CHUNK = 1 << 15  # draws of a thread at once: at most this many, and at least half as many
_LOW_63 = (1 << 63) - 1
_T = TypeVar("_T")


def rounded_gaussian(scale: float, size: int) -> NDArray[np.int64]:
    """Draw `size` independent samples of floor(scale Z + 1/2), Z standard normal.

    `scale`: standard deviation in lattice units; one exact double.

    Returns shape (size,).
    """
    return _rounded(NORMAL, scale, size)


def rounded_laplace(scale: float, size: int) -> NDArray[np.int64]:
    """Draw `size` independent samples of floor(scale L + 1/2), L of density exp(-|x|) / 2.

    `scale`: mean absolute value in lattice units; one exact double.

    Returns shape (size,).
    """
    return _rounded(LAPLACE, scale, size)


def discrete_gaussian(sigma: float, size: int) -> NDArray[np.int64]:
    """Draw `size` independent samples of the discrete Gaussian N_Z(0, sigma^2).

    `sigma`: from 1/16 to 16384; one exact double. The standard deviation is slightly smaller: see
    `discrete_gaussian_variance`.

    Returns shape (size,).
    """
    table = discrete.tail_table(sigma)

    def resolve(bits: NDArray[np.int64], drawn: NDArray[np.int64]) -> NDArray[np.intp]:
        j, certified = table.resolve_certified((bits & _LOW_63).view(np.uint64))
        drawn[:] = np.negative(j, out=j, where=bits < 0)
        return np.flatnonzero(~certified)

    return _signed_integers(size, resolve, table.resolve_exact)


def gaussian(size: int) -> NDArray[np.float64]:
    """Draw `size` independent standard normal doubles.

    Returns shape (size,).
    """
    drawn = np.empty(size)

    def fill(chunk: slice) -> None:
        bits = _bits(chunk)
        part = NORMAL.quantile(tail_midpoint(bits & _LOW_63))
        drawn[chunk] = np.negative(part, out=part, where=bits < 0)

    _map_chunks(fill, size)
    return drawn


def gamma(shape: float, size: int) -> NDArray[np.float64]:
    """Draw `size` independent doubles of density x^(shape-1) exp(-x) / Gamma(shape).

    `shape`: Positive, at most 2^50. A chi-squared variable with d degrees of freedom is twice a
    gamma variable of shape d/2.

    Returns shape (size,).

    One bit chooses the tail, and the others are its probability, so both tails are accurate. Where
    the shape is small, values below the smallest double are 0. scipy's lower tail is wrong for
    large shapes (by a tenth of a standard deviation at 10^9); so from 10^5 on five terms of the
    Cornish-Fisher expansion are used, which are accurate to 10^-11 standard deviations, or to the
    spacing of doubles.
    """
    if not 0 < shape <= 2.0**50:
        raise wordings.argument_out_of_range("shape", "greater than 0 and at most 2^50")
    if shape > 1e5:
        return _cornish_fisher_gamma(shape, gaussian(size))
    drawn = np.empty(size)

    def fill(chunk: slice) -> None:
        part, bits = drawn[chunk], _bits(chunk)
        low, probability = bits < 0, tail_midpoint(bits & _LOW_63)
        part[low] = gammaincinv(shape, probability[low])  # with `where=` scipy's ufuncs crash
        part[~low] = gammainccinv(shape, probability[~low])

    _map_chunks(fill, size)
    return drawn


@cache
def self_test() -> None:
    """Compare the fast with the exact path on fixed tails, once per process, before any charge."""
    tails = (_FRACTIONS * 2.0**64).astype(np.int64)
    for law in (NORMAL, LAPLACE):
        for scale in (37.5, 3.0e9):
            fast = np.zeros_like(tails)
            if inverse_cdf_table(law).resolve_certified(scale, tails, fast).size:
                raise families.SAMPLER(
                    "The noise sampler's fast path leaves too many draws undecided.",
                    "Install the pinned versions of requirements.lock.",
                )
            for k, j in zip(tails.tolist(), fast.tolist(), strict=True):
                if resolve_exact(law, scale, k, _no_next_bits) != j:
                    raise families.SAMPLER(
                        "The noise sampler's fast path and exact path disagree.",
                        "Install the pinned versions of requirements.lock.",
                    )


# Small and large tail probabilities, and both ends of a piece of the table.
_FRACTIONS = np.array([6e-7, 1e-5, 0.02, 0.125 * (1 - 1e-9), 0.125 * (1 + 1e-9), 0.3, 0.49999])


def _cornish_fisher_gamma(a: float, z: NDArray[np.float64]) -> NDArray[np.float64]:
    root = math.sqrt(a)
    third = (z**3 - 7 * z) / (36 * root) - (3 * z**4 + 7 * z**2 - 16) / (810 * a)
    last = (9 * z**5 + 256 * z**3 - 433 * z) / (38880 * a * root)
    return a + (root * z + (z**2 - 1) / 3 + third + last)


def _no_next_bits() -> int:
    raise families.SAMPLER(
        "The noise sampler's fast path decided a draw that 64 bits do not determine.",
        "Install the pinned versions of requirements.lock.",
    )


def uniform_integers(count: int, size: int) -> NDArray[np.int64]:
    """Draw `size` independent uniform integers from 0 to count - 1; shape (size,)."""
    if not 0 < count < 1 << 32:
        raise wordings.argument_out_of_range("count", "greater than 0 and less than 2^32")
    largest = (1 << 32) // count * count - 1  # larger draws are rejected, against bias
    drawn = np.zeros(0, dtype=np.uint32)
    while drawn.size < size:
        bits = np.frombuffer(os.urandom(4 * (size - drawn.size)), dtype="<u4")
        drawn = np.concatenate([drawn, bits[bits <= largest]])
    return (drawn % np.uint32(count)).astype(np.int64)


def random_keys(size: int) -> NDArray[np.uint64]:
    """Draw `size` independent uniform keys of 128 bits.

    Returns shape (2, size): the high and the low 64 bits of each key.
    """
    bits = np.frombuffer(os.urandom(16 * size), dtype="<u8").astype(np.uint64, copy=False)
    return bits.reshape(2, size)


def _next_bits() -> int:
    return int.from_bytes(os.urandom(8), "little")


def _rounded(law: Law, scale: float, size: int) -> NDArray[np.int64]:
    if not 0 < scale < 2.0**56:
        raise wordings.argument_out_of_range("scale", "greater than 0 and less than 2^56")
    resolve = partial(inverse_cdf_table(law).resolve_certified, scale)
    return _signed_integers(size, resolve, partial(resolve_exact, law, scale))


def _signed_integers(
    size: int,
    resolve: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.intp]],
    prove: Callable[[int, Callable[[], int]], int],
) -> NDArray[np.int64]:
    """Draw signs, and magnitudes from 63 bits, or from more where these are not enough.

    `resolve`: takes 64 bits per draw, writes the integers that these determine, and returns the
    indices of the other draws. `prove`: takes the 63 bits of one draw and a source of further bits,
    and returns its magnitude.
    """
    drawn = np.empty(size, dtype=np.int64)

    def fill(chunk: slice) -> list[tuple[int, int]]:
        bits = _bits(chunk)
        left = resolve(bits, drawn[chunk]).tolist()
        return [(chunk.start + i, int(bits[i])) for i in left]

    for left in _map_chunks(fill, size):
        for index, bits in left:
            j = prove(bits & _LOW_63, _next_bits)
            drawn[index] = -j if bits < 0 else j
    return drawn


def _bits(chunk: slice) -> NDArray[np.int64]:
    """64 new bits for every draw: a sign, and 63 bits of a tail probability."""
    return np.frombuffer(os.urandom(8 * (chunk.stop - chunk.start)), dtype="<i8")


def _map_chunks(fill: Callable[[slice], _T], size: int) -> list[_T]:
    """The results of `fill` for each chunk of the draws; several chunks run in threads."""
    ends = np.linspace(0, size, -(-size // _CHUNK) + 1).astype(int).tolist()
    chunks = [slice(*each) for each in pairwise(ends)]
    threads = min(cores(), len(chunks))
    if threads < 2:
        return list(map(fill, chunks))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(fill, chunks))
