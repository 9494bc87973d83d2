"""The discrete Gaussian N_Z(0, sigma^2) by exact inverse transform (Canonne, Kamath, Steinke 2020).

P[X = j] is proportional to w_j = exp(-j^2 / (2 sigma^2)) on the integers. The sign is one bit. |X|
is the number of tail probabilities T_m = P[|X| >= m], m >= 1, above a uniform V. The first 63 bits
k of V place it in [k, k+1] 2^-63. If some T_m is in that interval (once in 1e13 draws, at the
largest sigma), more bits are appended to the same k; they are never drawn again. They are compared
with a table whose precision and length grow with their number, so no tail is cut off.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import takewhile
from operator import neg

import numpy as np
from mpmath import MPIntervalContext
from numpy.typing import NDArray

from gramercy.schemas import wordings

MIN_DISCRETE_SIGMA, MAX_DISCRETE_SIGMA = 2.0**-4, 2.0**14
_FIRST_BITS = 63  # of V
_BUCKET_BITS = 16  # of a table that stays in the cache
_FEW = 1 << 12  # for so many numbers the table is not made
_GUARD_BITS = 128  # by which a table is more precise than the bits that it is compared with


@dataclass(frozen=True)
class TailSums:
    """Lower bounds on the tail sums of the weights, T_m = sums_m / total, in units u = 2^-bits.

    Notes
    -----
    w_{j+1} = w_j r_j and r_{j+1} = r_j q, with q = exp(-1 / sigma^2) and r_0 = sqrt(q), truncated
    to multiples of u at each step. q and r_0 come from an interval narrower than u, rounded down,
    so their errors are less than 2u. All these numbers are at most 1, hence

    - the error of r_j is e_j <= e_{j-1} + 2u + u <= (3j + 2) u;
    - the error of w_j is d_j <= d_{j-1} + e_{j-1} + u <= 1.5 j (j+1) u <= 2 (j+1)^2 u.

    The table ends at the first M whose w_M is truncated to 0, no later than where w_j < u:
    M < 2 + sigma sqrt(1.4 bits). Then w_M <= 2 (M+1)^2 u, far below exp(-1/2), so M > sigma. The
    omitted terms are w_M + w_{M+1} + ... <= w_M / (1 - r_M), and 1 / (1 - r_M) <= 1 +
    2 sigma^2 / (2M + 1) <= M + 1. So the omitted terms, and the errors of all earlier w_j together,
    are at most 2 (M+1)^3 u each; on both sides of zero: 8 (M+1)^3 u.
    """

    # at index m - 1, for m = 1, 2, ..., M: at most 2 (w_m + w_{m+1} + ...), descending to 0
    sums: list[int]
    total: int  # at most w_0 + 2 (w_1 + w_2 + ...)
    slack: int  # upper bound on the error of each


@dataclass(frozen=True)
class TailTable:
    """Bounds on the tail probabilities, which 63 bits are compared with."""

    sigma: float  # one exact double
    lower: NDArray[np.uint64]  # Ascending: l with T_m >= l 2^-63, for the m for which l is positive
    # descending in m, one entry longer: h with T_m < (h + 1) 2^-63; nearly always h = l
    upper: NDArray[np.uint64]

    def resolve_certified(
        self, tail: NDArray[np.uint64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """|X|, and whether 63 bits determine it.

        For an entry k of `tail`, k < l proves V <= T_m, and k > h proves V > T_m. One search finds
        the largest m of the first kind; the result is certain if the next m is of the second kind.
        """
        j = self.lower.size - self._not_above(tail)
        return j, tail > self.upper[j]

    def _not_above(self, tail: NDArray[np.uint64]) -> NDArray[np.int64]:
        """How many entries of `lower` are at most each entry of `tail`, as `searchsorted` finds.

        All numbers with the same first bits have the same answer, unless an entry is among them.
        """
        if tail.size < _FEW:
            return np.searchsorted(self.lower, tail, side="right")
        bucket = (tail >> np.uint64(_FIRST_BITS - _BUCKET_BITS)).view(np.int64)
        found = self._by_bucket[bucket]
        searched = np.flatnonzero(found < 0)
        found[searched] = np.searchsorted(self.lower, tail[searched], side="right")
        return found

    @cached_property
    def _by_bucket(self) -> NDArray[np.int64]:
        """The answer for every value of the first bits; -1 where it differs among them."""
        width = 1 << (_FIRST_BITS - _BUCKET_BITS)
        first = np.arange(1 << _BUCKET_BITS, dtype=np.uint64) * np.uint64(width)
        lowest, highest = (
            np.searchsorted(self.lower, each, side="right")
            for each in (first, first + np.uint64(width - 1))
        )
        return np.where(lowest == highest, lowest, -1)

    def resolve_exact(self, tail: int, next_bits: Callable[[], int]) -> int:
        """|X| for the V whose first 63 bits are `tail`, with proof.

        `tail`: k with V in [k, k+1] 2^-63. `next_bits`: returns the next 64 bits of V.
        """
        bits = _FIRST_BITS
        while True:
            table = _tail_sums(self.sigma, bits + _GUARD_BITS)
            threshold = (tail + 1) * (table.total + table.slack)
            j = bisect_right(table.sums, -threshold >> bits, key=neg)  # s 2^bits >= it: V <= T_j
            if (table.sums[j] + table.slack) << bits <= tail * table.total:
                return j
            tail, bits = (tail << 64) | next_bits(), bits + 64


@lru_cache(maxsize=8)
def tail_table(sigma: float) -> TailTable:
    """The tail probabilities of N_Z(0, sigma^2).

    `sigma`: from 1/16 to 16384; one exact double.

    Raises InvalidValue if sigma is outside this range. (For a larger sigma the rounded Gaussian is
    as good.)
    """
    table = _tail_sums(sigma, _FIRST_BITS + _GUARD_BITS)
    largest_total = table.total + table.slack
    lower = list(takewhile(bool, ((s << _FIRST_BITS) // largest_total for s in table.sums)))
    upper = [
        ((s + table.slack) << _FIRST_BITS) // table.total for s in table.sums[: len(lower) + 1]
    ]
    return TailTable(
        sigma, np.array(lower[::-1], dtype=np.uint64), np.array(upper, dtype=np.uint64)
    )


def discrete_gaussian_variance(sigma: float) -> float:
    """Variance of N_Z(0, sigma^2) to double precision: below sigma^2, far below for sigma < 1/2.

    `sigma`: from 1/16 to 16384.

    Raises InvalidValue if sigma is outside this range.

    E X^2 is the sum of (2m - 1) T_m. With the bounds of `TailSums`, and (M + i)^2 <= M^2 (1 + i)^2
    for the omitted terms, the error of 2 (w_1 + 4 w_2 + ...) is less than 16 (M+1)^7 u, a share of
    less than 2^-110: u allows for 2^19 integers, and for w_1 = 2^(-.73 / sigma^2) at a small sigma.
    """
    table = _tail_sums(sigma, 256 + int(max(MIN_DISCRETE_SIGMA, sigma) ** -2))
    return sum((2 * m + 1) * s for m, s in enumerate(table.sums)) / table.total


def _tail_sums(sigma: float, bits: int) -> TailSums:
    if not MIN_DISCRETE_SIGMA <= sigma <= MAX_DISCRETE_SIGMA:
        raise wordings.argument_out_of_range(
            "sigma", f"between {MIN_DISCRETE_SIGMA:g} and {MAX_DISCRETE_SIGMA:g}"
        )
    step, ratio = _exponential(sigma, 1, bits), _exponential(sigma, 2, bits)
    weights, weight = [], ratio  # w_1 = r_0
    while weight:
        weights.append(weight)
        ratio = ratio * step >> bits
        weight = weight * ratio >> bits
    sums = [0]
    for weight in reversed(weights):
        sums.append(sums[-1] + 2 * weight)
    return TailSums(sums[::-1], (1 << bits) + sums[-1], 8 * (len(sums) + 1) ** 3)


def _exponential(sigma: float, halves: int, bits: int) -> int:
    """exp(-1 / (halves sigma^2)) in units of 2^-bits, rounded down."""
    iv = MPIntervalContext()
    iv.prec = bits + 64
    return int((iv.exp(-1 / (halves * iv.mpf(sigma) ** 2)) * iv.mpf(2) ** bits).a)
