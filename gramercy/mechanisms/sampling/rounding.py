"""Exact inverse transform: floor(s X + 1/2) from the bits of a tail probability of X.

Rounding a continuous law to integers is post-processing, so integer noise has the full guarantee of
the ideal law, and its floating-point computation cannot be observed in the output. (Mironov 2012
attacks noise where it can.)

X is symmetric about zero. Its sign is one bit, and |X| = Q^-1(U) for a tail probability U below
1/2, whose first 63 bits k place it in [k, k+1] 2^-64. Almost always this determines the integer,
which sampling/inverse_cdf_table.py certifies by an error bound in double precision. Otherwise
`resolve_exact` appends bits to the same k, which is never drawn again, until interval arithmetic
proves the integer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpmath import MPContext, MPIntervalContext
from numpy.polynomial import Polynomial
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Array = NDArray[np.float64]
_TERMS = 7


@dataclass(frozen=True)
class Law:
    """A law symmetric about zero, by its upper tail Q(x) = P[X > x] for x >= 0."""

    # Q^-1 in double precision, as a starting point: no integer depends on its accuracy
    quantile: Callable[[Array], Array]
    # coefficients c_2 to c_7 of the series of Q^-1 around Q(x), in powers of d = (Q(x) - U) /
    # density(x); shape (6, size), not negative
    series: Callable[[Array], Array]
    # upper, density: Q(x), and minus its derivative, to the precision of a given mpmath context
    upper: Callable[[Any, Any], Any]
    density: Callable[[Any, Any], Any]
    # an interval that contains Q(x), in a given mpmath interval context
    tail: Callable[[Any, Any], Any]
    # Q^-1 to the precision of a given mpmath context; the result is proven afterwards
    inverse: Callable[[Any, Any], Any]


def tail_midpoint(tail: NDArray[np.int64]) -> Array:
    """The midpoint of [k, k+1] 2^-64 as a double, for k = `tail`; relative error below 2^-52."""
    return (tail.astype(np.float64) + 0.5) * 2.0**-64


def resolve_exact(law: Law, scale: float, tail: int, next_bits: Callable[[], int]) -> int:
    """|floor(scale X + 1/2)| for the tail probability whose first 63 bits are `tail`, with proof.

    `scale`: scale in lattice units.
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
        tail, bits = (tail << 64) | next_bits(), bits + 64


def _guess(law: Law, scale: float, tail: int, bits: int) -> int:
    """The integer that belongs to the midpoint of [tail, tail+1] 2^-bits; the caller proves it."""
    mp = MPContext()
    mp.prec = bits + 80
    x = law.inverse(mp, mp.ldexp(mp.mpf(2 * tail + 1), -bits - 1))
    return int(mp.floor(mp.mpf(scale) * x + 0.5))


def _normal_quantile(tail: Array) -> Array:
    x: Array = -ndtri(tail)
    return x


def _normal_series(x: Array) -> Array:
    """P_n(x) / n!, where P_1 = 1 and P_{n+1} = P_n' + n x P_n, since x' = 1 / density(x)."""
    coefficients, polynomial = [], Polynomial([1])
    for n in range(1, _TERMS):
        polynomial = polynomial.deriv() + n * Polynomial([0, 1]) * polynomial
        coefficients.append(polynomial(x) / math.factorial(n + 1))
    return np.array(coefficients)


def _normal_upper(mp: Any, x: Any) -> Any:
    return mp.erfc(x / mp.sqrt(2)) / 2


def _normal_density(mp: Any, x: Any) -> Any:
    return mp.npdf(x)


def _normal_tail(iv: Any, x: Any) -> Any:
    """(1 - erf z) / 2 for z = x / sqrt(2).

    erf z = 2/sqrt(pi) e^(-z^2) sum_n 2^n z^(2n+1) / (2n+1)!!. The terms are positive; once their
    ratio is below 1/2, the remainder is below the last term.
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
    """Q^-1 by Newton's method on the convex tail, starting from a double."""
    x = mp.mpf(-float(ndtri(max(float(tail), 1e-300))))
    for _ in range(8 + mp.prec.bit_length()):
        step = (mp.ncdf(-x) - tail) / mp.npdf(x)
        x += step
        if abs(step) < mp.ldexp(1, 40 - mp.prec):
            break
    return x


def _laplace_quantile(tail: Array) -> Array:
    return -np.log(2.0 * tail)


def _laplace_series(x: Array) -> Array:
    """The coefficients 1/n of -log(1 - d)."""
    return np.outer(1 / np.arange(2.0, _TERMS + 1), np.ones_like(x))


def _laplace_tail(context: Any, x: Any) -> Any:
    """e^-x / 2, which is also the density."""
    return context.exp(-x) / 2


def _laplace_inverse(mp: Any, tail: Any) -> Any:
    return -mp.log(2 * tail)


NORMAL = Law(
    _normal_quantile, _normal_series, _normal_upper, _normal_density, _normal_tail, _normal_inverse
)
LAPLACE = Law(
    _laplace_quantile, _laplace_series, _laplace_tail, _laplace_tail, _laplace_tail,
    _laplace_inverse,
)  # fmt: skip


def rounded_variance(scale: float) -> float:
    """Variance of floor(scale Z + 1/2), Z standard normal; about scale^2 + 1/12."""
    if scale > 10:
        return scale * scale + 1 / 12
    j = np.arange(1, 130)
    tails = ndtr(-(j - 0.5) / scale)  # P[X >= j]
    return float(2 * ((2 * j - 1) * tails).sum())
