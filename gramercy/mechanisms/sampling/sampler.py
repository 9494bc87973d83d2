"""The only source of noise: every draw is made here, from the operating system's generator.

Integer noise is exact: the law of what is drawn is the stated law, and no floating-point number
can be seen in it (mechanisms/rounding.py, mechanisms/discrete.py). `gaussian` and `gamma` are
doubles, for mechanisms whose noise is real-valued and who declare so.

Each draw takes 64 bits: one chooses the side, the others are the first 63 of a tail probability.
An integer that those do not settle has bits appended to them, and they are never drawn anew. Many
draws are made in threads; what is left to mpmath, which is not made for them, is done by one.
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
from gramercy.mechanisms.sampling.discrete import WIDEST_DISCRETE, discrete_gaussian_variance
from gramercy.mechanisms.sampling.inverse_cdf_table import pieces
from gramercy.mechanisms.sampling.rounding import LAPLACE, NORMAL, Law, exact, middle
from gramercy.schemas.errors import SamplerError

__all__ = [
    "WIDEST_DISCRETE",
    "discrete_gaussian",
    "discrete_gaussian_variance",
    "gamma",
    "gaussian",
    "parts",
    "rounded_gaussian",
    "rounded_laplace",
    "self_test",
]

_CHUNK = 1 << 15  # samples at most that a thread draws at once, and half of it at least
_LOW_63 = (1 << 63) - 1
_Found = TypeVar("_Found")


def rounded_gaussian(scale: float, size: int) -> NDArray[np.int64]:
    """Draw `size` independent samples of floor(scale Z + 1/2), Z standard normal.

    Parameters
    ----------
    scale
        Standard deviation in lattice units; one exact double.
    size
        Number of samples.

    Returns
    -------
    ndarray of int64, shape (size,)
    """
    return _rounded(NORMAL, scale, size)


def rounded_laplace(scale: float, size: int) -> NDArray[np.int64]:
    """Draw `size` independent samples of floor(scale L + 1/2), L of density exp(-|x|) / 2.

    Parameters
    ----------
    scale
        Mean absolute value in lattice units; one exact double.
    size
        Number of samples.

    Returns
    -------
    ndarray of int64, shape (size,)
    """
    return _rounded(LAPLACE, scale, size)


def discrete_gaussian(sigma: float, size: int) -> NDArray[np.int64]:
    """Draw `size` independent samples of the discrete Gaussian N_Z(0, sigma^2).

    Parameters
    ----------
    sigma
        From 1/16 to 16384; one exact double. The standard deviation is a little smaller:
        `discrete_gaussian_variance`.
    size
        Number of samples.

    Returns
    -------
    ndarray of int64, shape (size,)
    """
    table = discrete.table(sigma)

    def settle(bits: NDArray[np.int64], drawn: NDArray[np.int64]) -> NDArray[np.intp]:
        j, settled = table.fast((bits & _LOW_63).view(np.uint64))
        drawn[:] = np.negative(j, out=j, where=bits < 0)
        return np.flatnonzero(~settled)

    return _integers(size, settle, table.exact)


def gaussian(size: int) -> NDArray[np.float64]:
    """Draw `size` independent standard normal doubles.

    Parameters
    ----------
    size
        Number of samples.

    Returns
    -------
    ndarray of float64, shape (size,)
    """
    drawn = np.empty(size)

    def fill(chunk: slice) -> None:
        bits = _bits(chunk)
        part = NORMAL.quantile(middle(bits & _LOW_63))
        drawn[chunk] = np.negative(part, out=part, where=bits < 0)

    _each(fill, size)
    return drawn


def gamma(shape: float, size: int) -> NDArray[np.float64]:
    """Draw `size` independent doubles of density x^(shape-1) exp(-x) / Gamma(shape).

    Parameters
    ----------
    shape
        Positive, at most 2^50. A chi-square with d degrees of freedom is twice a gamma of shape
        d/2.
    size
        Number of samples.

    Returns
    -------
    ndarray of float64, shape (size,)

    Notes
    -----
    One bit chooses the tail of which the others are the probability, so both tails are accurate.
    Where the shape is small, what lies below the smallest double is 0. scipy's lower tail is wrong
    for large shapes (a tenth of a standard deviation at 10^9); from 10^5 on five terms of Cornish
    and Fisher's expansion are within 10^-11 standard deviations, or the spacing of doubles.
    """
    if not 0 < shape <= 2.0**50:
        raise ValueError("shape must lie in (0, 2^50]")
    if shape > 1e5:
        return _wide_gamma(shape, gaussian(size))
    drawn = np.empty(size)

    def fill(chunk: slice) -> None:
        part, bits = drawn[chunk], _bits(chunk)
        low, probability = bits < 0, middle(bits & _LOW_63)
        part[low] = gammaincinv(shape, probability[low])  # with `where=` scipy's ufuncs crash
        part[~low] = gammainccinv(shape, probability[~low])

    _each(fill, size)
    return drawn


@cache
def self_test() -> None:
    """Compare the fast with the exact path on fixed tails; once a process, before any charge.

    Raises
    ------
    SamplerError
        If this machine's libraries do not give the numbers that the error bound was proven on.
    """
    tails = (_FRACTIONS * 2.0**64).astype(np.int64)
    for law in (NORMAL, LAPLACE):
        for scale in (37.5, 3.0e9):
            quick = np.zeros_like(tails)
            if pieces(law).settle(scale, tails, quick).size:
                raise SamplerError("The noise sampler's fast path settles too little.", _REINSTALL)
            for k, j in zip(tails.tolist(), quick.tolist(), strict=True):
                if exact(law, scale, k, _no_more) != j:
                    raise SamplerError("The noise sampler's two paths disagree.", _REINSTALL)


# Deep and middling tails, and both ends of a piece.
_FRACTIONS = np.array([6e-7, 1e-5, 0.02, 0.125 * (1 - 1e-9), 0.125 * (1 + 1e-9), 0.3, 0.49999])
_REINSTALL = "Install the pinned versions of requirements.lock."


def _wide_gamma(a: float, z: NDArray[np.float64]) -> NDArray[np.float64]:
    root = math.sqrt(a)
    third = (z**3 - 7 * z) / (36 * root) - (3 * z**4 + 7 * z**2 - 16) / (810 * a)
    last = (9 * z**5 + 256 * z**3 - 433 * z) / (38880 * a * root)
    return a + (root * z + (z**2 - 1) / 3 + third + last)


def _no_more() -> int:
    raise SamplerError("The noise sampler's fast path settled what 64 bits do not.", _REINSTALL)


def parts(count: int, size: int) -> NDArray[np.int64]:
    """Draw `size` independent samples of 0, ..., count - 1, all alike; shape (size,)."""
    if not 0 < count < 1 << 32:
        raise ValueError("count must lie in (0, 2^32)")
    whole = np.uint64((1 << 64) // count * count - 1)  # the others are drawn anew
    drawn = np.zeros(0, dtype=np.uint64)
    while drawn.size < size:
        bits = np.frombuffer(os.urandom(8 * (size - drawn.size)), dtype="<u8")
        drawn = np.concatenate([drawn, bits[bits <= whole]])
    return (drawn % np.uint64(count)).astype(np.int64)


def _more_bits() -> int:
    return int.from_bytes(os.urandom(8), "little")


def _rounded(law: Law, scale: float, size: int) -> NDArray[np.int64]:
    if not 0 < scale < 2.0**56:
        raise ValueError("scale must lie in (0, 2^56) lattice units")
    return _integers(size, partial(pieces(law).settle, scale), partial(exact, law, scale))


def _integers(
    size: int,
    settle: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.intp]],
    proven: Callable[[int, Callable[[], int]], int],
) -> NDArray[np.int64]:
    """A sign, and a magnitude from 63 bits, or from more where they do not settle it."""
    drawn = np.empty(size, dtype=np.int64)

    def fill(chunk: slice) -> list[tuple[int, int]]:
        bits = _bits(chunk)
        left = settle(bits, drawn[chunk]).tolist()
        return [(chunk.start + i, int(bits[i])) for i in left]

    for left in _each(fill, size):
        for place, bits in left:
            j = proven(bits & _LOW_63, _more_bits)
            drawn[place] = -j if bits < 0 else j
    return drawn


def _bits(chunk: slice) -> NDArray[np.int64]:
    """64 fresh bits for every sample: a sign, and the 63 of a tail probability."""
    return np.frombuffer(os.urandom(8 * (chunk.stop - chunk.start)), dtype="<i8")


def _each(fill: Callable[[slice], _Found], size: int) -> list[_Found]:
    """What filling each chunk comes to, in threads where there are several."""
    ends = np.linspace(0, size, -(-size // _CHUNK) + 1).astype(int).tolist()
    chunks = [slice(*each) for each in pairwise(ends)]
    threads = min(cores(), len(chunks))
    if threads < 2:
        return list(map(fill, chunks))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(fill, chunks))
