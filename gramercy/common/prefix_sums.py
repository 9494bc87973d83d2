"""Prefix sums of the steps of a series, which fresh noise at every step makes private.

Step t publishes Y_t = sum over s <= t of W_ts G_s, plus noise, where G_s is the sum over the rows
of step s. Anybody decodes from Y_1 ... Y_t the sum over all steps so far, over one step or over the
last few, with noise of a known scale. No noise has to be kept secret between steps.

*Claim.* A row belongs to one step s for good, regardless of what was published, and moves the
integers of step t by at most W_ts Delta. With noise of standard deviation sigma, the whole series
is mu-GDP with mu = Delta max_s ||W_.s|| / sigma. The proof is in docs/privacy.md, "Cumulative
releases".

Sources: the factorisation of prefix sums by square roots is from Fichtenberger, Henzinger and
Upadhyay (2023), Theorem 1, after Denisov et al. (2022); here every row of the table has the same
guarantee, and weights are whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[Any]  # Python integers, which have any length

UNIT = 1 << 12  # weights are whole numbers in units of its inverse


@dataclass(frozen=True)
class PrefixSums:
    """The weights of a series of a fixed number of steps, and how its sums are decoded."""

    steps: int  # T

    @property
    def weights(self) -> NDArray[np.int64]:
        """W in units of 2^-12, lower triangular; shape (T, T)."""
        return _weights(self.steps)

    def squared_norm(self, draws: Sequence[int] | None = None) -> int:
        """The largest sum of squared weights of a row, in units of 2^-24.

        Parameters
        ----------
        draws
            How often each step is drawn; by default, once.
        """
        times = np.ones(self.steps, np.int64) if draws is None else np.asarray(draws, np.int64)
        return int((times @ (self.weights * self.weights)).max())

    def encode(self, sums: Sequence[Integers]) -> Integers:
        """The weighted sum over the steps so far, in units of 2^-12, without noise.

        `sums`: the sum over the rows of each step, whole numbers of one shape.
        """
        row = self.weights[len(sums) - 1]
        total = np.zeros(np.shape(sums[0]), dtype=object)
        for weight, each in zip(row[: len(sums)].tolist(), sums, strict=True):
            total = total + weight * np.asarray(each).astype(object)
        return total

    def decode(self, encoded: Sequence[Integers]) -> list[Array]:
        """The sum over each of the steps so far, with noise, from what they published.

        Entry by entry in one fixed order, so that the result is the same on all machines.
        """
        sums: list[Array] = []
        for row, each in zip(self.weights, encoded, strict=False):
            rest = np.asarray(each).astype(np.float64)
            for weight, earlier in zip(row.tolist(), sums, strict=False):
                rest = rest - weight * earlier
            sums.append(rest / float(row[len(sums)]))
        return sums

    def decode_so_far(self, encoded: Sequence[Integers]) -> Array:
        """The sum over all of the steps so far; see `decode`."""
        total, *others = self.decode(encoded)
        for each in others:
            total = total + each
        return total

    def spread(self, last: int, width: int | None = None) -> float:
        """Standard deviation of the sum over some steps, relative to that of what a step publishes.

        Parameters
        ----------
        last
            The last of the steps, from 1.
        width
            Their number; by default, all up to the last.
        """
        first = 0 if width is None else last - width
        return float(np.linalg.norm(self._decoding[first:last].sum(axis=0)))

    def covariance(self, first: tuple[int, int], second: tuple[int, int]) -> float:
        """Covariance of the sums over two ranges of steps, relative to a step's variance.

        `first`, `second`: half-open ranges of steps, from 0.
        """
        a, b = (self._decoding[start:end].sum(axis=0) for start, end in (first, second))
        return float(a @ b)

    def shares(self, step: int, first: int) -> Array:
        """The share of a row in the sum over the steps so far, after each step; shape (T,).

        A row that is there whenever it is read since its own step has a share of one. One that
        is deleted has one minus the share that it would have if it were added then.

        Parameters
        ----------
        step
            The step of the row, from 1.
        first
            The step from which on the row is in the table, from 1: late, if it is after `step`.
        """
        weights = self.weights[first - 1 :, step - 1]
        shares: Array = self._decoding.cumsum(axis=0)[:, first - 1 :] @ weights.astype(np.float64)
        return shares

    @property
    def _decoding(self) -> Array:
        return _decoding(self.steps)


@lru_cache(maxsize=8)  # of a series, they are asked for again and again
def _weights(steps: int) -> NDArray[np.int64]:
    """See `PrefixSums.weights`.

    Notes
    -----
    ``W_ts = c_(t-s) sqrt(h(T) / h(T-s+1))``, with c_k the coefficients of (1 - x)^(-1/2) and h(m)
    the sum of their first m squares: without rounding, all columns have one norm. Python's floats
    round products, sums and roots in the same way on all machines.
    """
    c, h = [1.0], [0.0]
    for k in range(1, steps + 1):
        h.append(h[-1] + c[-1] * c[-1])
        c.append(c[-1] * (2 * k - 1) / (2 * k))
    weights = np.zeros((steps, steps), np.int64)
    for s in range(steps):
        unit = UNIT * math.sqrt(h[steps] / h[steps - s])
        weights[s:, s] = [round(unit * each) for each in c[: steps - s]]
    weights.flags.writeable = False
    return weights


@lru_cache(maxsize=8)
def _decoding(steps: int) -> Array:
    """What maps published matrices to the sum of each step; shape (T, T)."""
    inverse: Array = np.linalg.inv(_weights(steps).astype(np.float64))
    inverse.flags.writeable = False
    return inverse
