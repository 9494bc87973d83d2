"""The only source of noise: exact samples of floor(s Z + 1/2), Z standard normal.

Rounding a continuous Gaussian to integers is post-processing, so integer noise keeps the whole
guarantee of the ideal Gaussian, and nothing of the floating-point numbers that computed it can be
seen in the output (Mironov 2012 shows what happens otherwise).

A sample is a sign bit and a tail probability U, of which the operating system's generator gives 63
bits k first, so that U lies in [k, k+1] 2^-64. Almost always that already settles the integer: the
fast path proves so with an error bound in double precision. Otherwise bits are appended to the
same k, never redrawn, until interval arithmetic proves it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from mpmath import MPContext, MPIntervalContext
from numpy.typing import NDArray
from scipy.special import ndtri

from schemas.errors import SamplerError

_CHUNK = 1 << 15  # samples whose temporaries stay in cache
_LOW_63 = np.uint64((1 << 63) - 1)


def rounded_gaussian(scale: float, size: int) -> NDArray[np.int64]:
    """Draw `size` independent samples of floor(scale Z + 1/2).

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
    if not 0 < scale < 2.0**56:
        raise ValueError("scale must lie in (0, 2^56) lattice units")
    drawn = np.empty(size, dtype=np.int64)
    for start in range(0, size, _CHUNK):
        part = drawn[start : start + _CHUNK]
        bits = np.frombuffer(os.urandom(8 * part.size), dtype="<u8")
        tail = bits & _LOW_63
        part[:], settled = fast(scale, tail)
        for i in np.flatnonzero(~settled):
            part[i] = exact(scale, int(tail[i]), _more_bits)
        np.negative(part, out=part, where=bits > _LOW_63)
    return drawn


def fast(scale: float, tail: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """|floor(scale Z + 1/2)| in double precision, and where that is proven.

    The bound adds the width of U and the rounding of its double (through the Mills ratio, at most
    min(1/x, 1.2534)), the error of ndtri (2^-47, over ten times the worst seen) and that of the
    final product.
    """
    k = tail.astype(np.float64)
    x = -ndtri((k + 0.5) * 2.0**-64)
    y = scale * x
    shifted = y + 0.5
    j = np.floor(shifted)
    fraction = shifted - j
    mills = 1.2534 / np.maximum(1.0, 1.2534 * x)
    relative = 2.0**-52 + 0.75 / np.maximum(k, 1.0)
    bound = scale * relative * mills * 1.01 + y * 2.0**-47 + shifted * 2.0**-51
    settled = (k >= 2.0**20) & (y < 2.0**51) & (np.minimum(fraction, 1.0 - fraction) > bound)
    return np.where(settled, j, 0.0).astype(np.int64), settled


def exact(scale: float, tail: int, more: Callable[[], int]) -> int:
    """|floor(scale Z + 1/2)| for the tail probability whose first 63 bits are `tail`, proven.

    Parameters
    ----------
    scale
        Standard deviation in lattice units.
    tail
        k with U in [k, k+1] 2^-64.
    more
        Gives the next 64 bits of U.
    """
    bits = 64
    while True:
        j = _guess(scale, tail, bits)
        iv = MPIntervalContext()
        iv.prec = bits + 80
        unit = iv.mpf(2) ** -bits
        above = _tail_probability(iv, (iv.mpf(j) + iv.mpf(0.5)) / iv.mpf(scale))
        below = (
            _tail_probability(iv, (iv.mpf(j) - iv.mpf(0.5)) / iv.mpf(scale)) if j else iv.mpf(0.5)
        )
        if (tail * unit).a >= above.b and ((tail + 1) * unit).b <= below.a:
            return j
        tail, bits = (tail << 64) | more(), bits + 64


@cache
def self_test() -> None:
    """Compare the fast with the exact path on fixed tails; once a process, before any charge.

    Raises
    ------
    SamplerError
        If this machine's libraries do not give the numbers that the error bound was proven on.
    """
    tails = (_FRACTIONS * 2.0**64).astype(np.uint64)
    for scale in (37.5, 3.0e9):
        quick, settled = fast(scale, tails)
        if not settled.any():
            raise SamplerError("The noise sampler's fast path settles nothing.", _REINSTALL)
        for k, j in zip(tails[settled].tolist(), quick[settled].tolist(), strict=True):
            if exact(scale, k, _no_more) != j:
                raise SamplerError("The noise sampler's two paths disagree.", _REINSTALL)


# Deep and middling tails, and both sides of e^-2, where ndtri changes its formula.
_E2 = float(np.exp(-2.0))
_FRACTIONS = np.array([1e-12, 1e-5, 0.02, _E2 * (1 - 1e-9), _E2 * (1 + 1e-9), 0.3, 0.49999])
_REINSTALL = "Install the pinned versions of requirements.lock."


def _more_bits() -> int:
    return int.from_bytes(os.urandom(8), "little")


def _no_more() -> int:
    raise SamplerError("The noise sampler's fast path settled what 64 bits do not.", _REINSTALL)


def _guess(scale: float, tail: int, bits: int) -> int:
    """The integer at the middle of [tail, tail+1] 2^-bits, to be proven by the caller."""
    mp = MPContext()
    mp.prec = bits + 80
    middle = mp.ldexp(mp.mpf(2 * tail + 1), -bits - 1)
    x = mp.mpf(-float(ndtri(max(float(middle), 1e-300))))
    for _ in range(8 + bits.bit_length()):
        step = (mp.ncdf(-x) - middle) / mp.npdf(x)  # Newton on a convex tail
        x += step
        if abs(step) < mp.ldexp(1, -bits - 40):
            break
    return int(mp.floor(mp.mpf(scale) * x + 0.5))


def _tail_probability(iv: Any, x: Any) -> Any:
    """Q(x) = P[Z > x] for x >= 0 as an interval that contains it.

    erf z = 2/sqrt(pi) e^(-z^2) sum_n 2^n z^(2n+1) / (2n+1)!!: positive terms, and once their ratio
    is below 1/2 the remainder is below the last term.
    """
    square = x * x / 2
    term = iv.sqrt(square)
    total, n, small = term, 0, iv.mpf(2) ** -iv.prec
    while not ((4 * square).b < 2 * n + 3 and term.b < small.a):
        term = term * (2 * square) / (2 * n + 3)
        total, n = total + term, n + 1
    total += iv.mpf([0, term.b])
    erf = 2 / iv.sqrt(iv.pi) * iv.exp(-square) * total
    return (1 - erf) / 2
