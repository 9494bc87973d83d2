"""The discrete Gaussian N_Z(0, sigma^2) by exact inverse transform (Canonne, Kamath, Steinke 2020).

P[X = j] is proportional to w_j = exp(-j^2 / (2 sigma^2)) on the integers. The sign is one bit; |X|
is the number of tail probabilities T_m = P[|X| >= m], m >= 1, above a uniform V, of which 63 bits
k are given first, so that V lies in [k, k+1] 2^-63. Only where that meets some T_m (once in 1e13
draws, at the widest sigma) are bits appended to the same k, never drawing it anew, and compared
with a table whose precision, and whose length, grow with their number: no tail is cut off.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from operator import neg

import numpy as np
from mpmath import MPIntervalContext
from numpy.typing import NDArray

NARROWEST_DISCRETE, WIDEST_DISCRETE = 2.0**-4, 2.0**14
_FIRST = 63  # bits of V that are drawn at once
_GUARD = 128  # bits of a table beyond those that it is compared with


@dataclass(frozen=True)
class Sums:
    """Tail sums of the weights, T_m = sums_m / total, in units u = 2^-bits and from below.

    Parameters
    ----------
    sums
        For m = 1, 2, ..., M at index m - 1: at most 2 (w_m + w_{m+1} + ...), descending to 0.
    total
        At most w_0 + 2 (w_1 + w_2 + ...).
    slack
        By how much either may fall short.

    Notes
    -----
    w_{j+1} = w_j r_j and r_{j+1} = r_j q, with q = exp(-1 / sigma^2) and r_0 = sqrt(q), truncated
    to multiples of u at each step. q and r_0 come from an interval narrower than u, rounded down,
    so they fall short by less than 2u. All these numbers are at most 1, hence

    - r_j falls short by e_j <= e_{j-1} + 2u + u <= (3j + 2) u;
    - w_j by d_j <= d_{j-1} + e_{j-1} + u <= 1.5 j (j+1) u <= 2 (j+1)^2 u.

    The table ends at the first M whose w_M is truncated to 0, no later than where w_j < u:
    M < 2 + sigma sqrt(1.4 bits). Then w_M <= 2 (M+1)^2 u, far below exp(-1/2), so M > sigma. What
    it leaves out is w_M + w_{M+1} + ... <= w_M / (1 - r_M), and 1 / (1 - r_M) <= 1 +
    2 sigma^2 / (2M + 1) <= M + 1. So what is left out, and what the w_j before it fall short by
    together, are at most 2 (M+1)^3 u each; both sides of zero: 8 (M+1)^3 u.
    """

    sums: list[int]
    total: int
    slack: int


@dataclass(frozen=True)
class Table:
    """What 63 bits are compared with.

    Parameters
    ----------
    sigma
        One exact double.
    lower
        Ascending: l with T_m >= l 2^-63, for the m for which l is positive.
    upper
        Descending in m, one longer: h with T_m < (h + 1) 2^-63; nearly always the same number.
    """

    sigma: float
    lower: NDArray[np.uint64]
    upper: NDArray[np.uint64]

    def fast(self, tail: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Give |X| where 63 bits settle it, and where they do.

        k < l proves V <= T_m, and k > h proves V > T_m; one search finds the largest m of the
        former kind, and the next one has to be of the latter.
        """
        j = self.lower.size - np.searchsorted(self.lower, tail, side="right")
        return j, tail > self.upper[j]

    def exact(self, tail: int, more: Callable[[], int]) -> int:
        """|X| for the V whose first 63 bits are `tail`, proven.

        Parameters
        ----------
        tail
            k with V in [k, k+1] 2^-63.
        more
            Gives the next 64 bits of V.

        Returns
        -------
        int
        """
        bits = _FIRST
        while True:
            table = _sums(self.sigma, bits + _GUARD)
            most = (tail + 1) * (table.total + table.slack)
            j = bisect_right(table.sums, -most >> bits, key=neg)  # s 2^bits >= most: V <= T_j
            if (table.sums[j] + table.slack) << bits <= tail * table.total:
                return j
            tail, bits = (tail << 64) | more(), bits + 64


@lru_cache(maxsize=8)
def table(sigma: float) -> Table:
    """Tabulate the tail probabilities of N_Z(0, sigma^2).

    Parameters
    ----------
    sigma
        From 1/16 to 16384; one exact double.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        If sigma lies elsewhere. (A wider one has no use for it: there the rounded Gaussian is as
        good.)
    """
    made = _sums(sigma, _FIRST + _GUARD)
    most = made.total + made.slack
    lower = list(takewhile(bool, ((s << _FIRST) // most for s in made.sums)))
    upper = [((s + made.slack) << _FIRST) // made.total for s in made.sums[: len(lower) + 1]]
    return Table(sigma, np.array(lower[::-1], dtype=np.uint64), np.array(upper, dtype=np.uint64))


def discrete_gaussian_variance(sigma: float) -> float:
    """Variance of N_Z(0, sigma^2), to double precision; below sigma^2, by much where sigma < 1/2.

    Parameters
    ----------
    sigma
        From 1/16 to 16384.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If sigma lies elsewhere.

    Notes
    -----
    E X^2 is the sum of (2m - 1) T_m. With the bounds of `Sums` and (M + i)^2 <= M^2 (1 + i)^2 for
    what is left out, 2 (w_1 + 4 w_2 + ...) falls short by less than 16 (M+1)^7 u, under 2^-110 of
    it: u allows for 2^19 integers, and for a small sigma's w_1 = 2^(-.73 / sigma^2).
    """
    made = _sums(sigma, 256 + int(max(NARROWEST_DISCRETE, sigma) ** -2))
    return sum((2 * m + 1) * s for m, s in enumerate(made.sums)) / made.total


def _sums(sigma: float, bits: int) -> Sums:
    if not NARROWEST_DISCRETE <= sigma <= WIDEST_DISCRETE:
        raise ValueError("the sigma of a discrete Gaussian must lie in [2^-4, 2^14]")
    step, ratio = _exponential(sigma, 1, bits), _exponential(sigma, 2, bits)
    weights, weight = [], ratio  # w_1 = r_0
    while weight:
        weights.append(weight)
        ratio = ratio * step >> bits
        weight = weight * ratio >> bits
    sums = [0]
    for weight in reversed(weights):
        sums.append(sums[-1] + 2 * weight)
    return Sums(sums[::-1], (1 << bits) + sums[-1], 8 * (len(sums) + 1) ** 3)


def _exponential(sigma: float, halves: int, bits: int) -> int:
    """exp(-1 / (halves sigma^2)) in units of 2^-bits, rounded down."""
    iv = MPIntervalContext()
    iv.prec = bits + 64
    return int((iv.exp(-1 / (halves * iv.mpf(sigma) ** 2)) * iv.mpf(2) ** bits).a)
