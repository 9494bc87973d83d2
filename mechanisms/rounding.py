"""Exact inverse transform: floor(s X + 1/2) from the bits of a tail probability of X.

Rounding a continuous law to integers is post-processing, so integer noise keeps the whole
guarantee of the ideal law, and nothing of the floating-point numbers that computed it can be seen
in the output (Mironov 2012 shows what happens otherwise).

X is symmetric about zero: its sign is one bit, and |X| = Q^-1(U) for a tail probability U below
1/2, of which 63 bits k are given first, so that U lies in [k, k+1] 2^-64. Almost always that
already settles the integer: `fast` proves so with an error bound in double precision. Otherwise
`exact` appends bits to the same k, never drawing it anew, until interval arithmetic proves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpmath import MPContext, MPIntervalContext
from numpy.typing import NDArray
from scipy.special import ndtri


@dataclass(frozen=True)
class Law:
    """A law symmetric about zero, by its upper tail Q(x) = P[X > x] for x >= 0.

    Parameters
    ----------
    quantile
        Q^-1 in double precision, with a relative error below 2^-47.
    mills
        At least Q(x) / density(x): how far x moves when log U does.
    tail
        Q(x) as an interval that contains it, in a given interval context.
    inverse
        Q^-1 in a given context of mpmath, to the precision of that context; nothing rests on it.
    """

    quantile: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    mills: Callable[[NDArray[np.float64]], NDArray[np.float64] | float]
    tail: Callable[[Any, Any], Any]
    inverse: Callable[[Any, Any], Any]


def middle(tail: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Give the middle of [k, k+1] 2^-64 as a double, within a relative 2^-52 (two roundings)."""
    return (tail.astype(np.float64) + 0.5) * 2.0**-64


def fast(
    law: Law, scale: float, tail: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """|floor(scale X + 1/2)| in double precision, and where that is proven.

    Parameters
    ----------
    law
        The law of X.
    scale
        Its scale in lattice units.
    tail
        k with U in [k, k+1] 2^-64.

    Returns
    -------
    (ndarray of int64, ndarray of bool)
        The integers, and which of them are settled; 0 where they are not.

    Notes
    -----
    x = Q^-1 of the middle, y = scale x, and j = floor(y + 1/2). What separates y + 1/2 from the
    true scale |X| + 1/2 is at most the sum of

    - the width of U and the rounding of its double: log U is off by at most
      log((k + 1/2) / k) + 2^-52 <= 1/(2k) + 2^-52, which moves x by that times Q/density, for
      dx = -(Q/density) d(log U); .75 and 1.01 leave room for the ratio to change on the way;
    - the error of `quantile`, y 2^-47. No library proves one for ndtri or log: 2^-47 is over ten
      times the worst seen, versions are pinned, and `sampler.self_test` compares both paths;
    - the roundings of scale x and of y + 1/2: below 2^-51 (y + 1/2) together.

    The fraction and its distance to 1 are exact. So j is proven if both exceed that bound.
    """
    x = law.quantile(middle(tail))
    y = scale * x
    shifted = y + 0.5
    j = np.floor(shifted)
    fraction = shifted - j
    k = tail.astype(np.float64)
    relative = 2.0**-52 + 0.75 / np.maximum(k, 1.0)
    bound = scale * relative * law.mills(x) * 1.01 + y * 2.0**-47 + shifted * 2.0**-51
    settled = (k >= 2.0**20) & (y < 2.0**51) & (np.minimum(fraction, 1.0 - fraction) > bound)
    return np.where(settled, j, 0.0).astype(np.int64), settled


def exact(law: Law, scale: float, tail: int, more: Callable[[], int]) -> int:
    """|floor(scale X + 1/2)| for the tail probability whose first 63 bits are `tail`, proven.

    Parameters
    ----------
    law
        The law of X.
    scale
        Its scale in lattice units.
    tail
        k with U in [k, k+1] 2^-64.
    more
        Gives the next 64 bits of U.

    Returns
    -------
    int
    """
    bits = 64
    while True:
        j = _guess(law, scale, tail, bits)
        iv = MPIntervalContext()
        iv.prec = bits + 80
        unit = iv.mpf(2) ** -bits
        above = law.tail(iv, (iv.mpf(j) + iv.mpf(0.5)) / iv.mpf(scale))
        below = law.tail(iv, (iv.mpf(j) - iv.mpf(0.5)) / iv.mpf(scale)) if j else iv.mpf(0.5)
        if (tail * unit).a >= above.b and ((tail + 1) * unit).b <= below.a:
            return j
        tail, bits = (tail << 64) | more(), bits + 64


def _guess(law: Law, scale: float, tail: int, bits: int) -> int:
    """The integer at the middle of [tail, tail+1] 2^-bits, to be proven by the caller."""
    mp = MPContext()
    mp.prec = bits + 80
    x = law.inverse(mp, mp.ldexp(mp.mpf(2 * tail + 1), -bits - 1))
    return int(mp.floor(mp.mpf(scale) * x + 0.5))


def _normal_quantile(tail: NDArray[np.float64]) -> NDArray[np.float64]:
    x: NDArray[np.float64] = -ndtri(tail)
    return x


def _normal_mills(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """min(1/x, 1.2534): the ratio falls from sqrt(pi/2) at 0."""
    return 1.2534 / np.maximum(1.0, 1.2534 * x)


def _normal_tail(iv: Any, x: Any) -> Any:
    """(1 - erf z) / 2 for z = x / sqrt(2).

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


def _normal_inverse(mp: Any, tail: Any) -> Any:
    """Newton's method on a convex tail, from a double."""
    x = mp.mpf(-float(ndtri(max(float(tail), 1e-300))))
    for _ in range(8 + mp.prec.bit_length()):
        step = (mp.ncdf(-x) - tail) / mp.npdf(x)
        x += step
        if abs(step) < mp.ldexp(1, 40 - mp.prec):
            break
    return x


def _laplace_quantile(tail: NDArray[np.float64]) -> NDArray[np.float64]:
    return -np.log(2.0 * tail)


def _laplace_mills(_x: NDArray[np.float64]) -> float:
    """The density e^-x / 2 is its own tail."""
    return 1.0


def _laplace_tail(iv: Any, x: Any) -> Any:
    return iv.exp(-x) / 2


def _laplace_inverse(mp: Any, tail: Any) -> Any:
    return -mp.log(2 * tail)


NORMAL = Law(_normal_quantile, _normal_mills, _normal_tail, _normal_inverse)
LAPLACE = Law(_laplace_quantile, _laplace_mills, _laplace_tail, _laplace_inverse)
