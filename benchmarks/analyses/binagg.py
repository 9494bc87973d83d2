"""BinAgg: weighted least squares from noisy sums over private bins of the regressors.

Lin, Slavkovic and Bhoomireddy (2026), "Differentially private linear regression and synthetic data
generation with statistical guarantees", algorithms 1 and 2 and theorem 4.2, as the documentation of
the authors' package binagg states them, with its defaults: bins by PrivTree (Zhang, Xiao and Xie
2016) that halve the widest side while a noisy count is positive, budget 1 : 3 : 3 : 3 for bins,
counts, sums of x and sums of y, and bins with a noisy count below two left out. With bins k, noisy
counts c_k, sums s_k and t_k, and D_k the diagonal covariance of the noise in s_k,

b = M^-1 sum_k s_k t_k / c_k,   M = sum_k (s_k s_k^T - D_k) / c_k,
Var b = M^-1 [K / (K - d) sum_k q_k q_k^T] M^-1,   q_k = (s_k (t_k - s_k^T b) + D_k b) / c_k.

Noise has the size for mu under replace-one: PrivTree at half its epsilon, and Gaussian noise of the
largest change that one replaced row makes in counts, in sums of x and in sums of y, given the bins.
The package differs: its noise is for one row more or less and for one column of x at a time, and in
b, unlike in Var b, it subtracts a K-th of the correction D_k.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, ndtr

from benchmarks.analyses.noisy_statistics import Intervals

Array = NDArray[np.float64]
_SHARES = np.array([1.0, 3.0, 3.0, 3.0])  # of mu: bins, counts, sums of x, sums of y
_LEAST_COUNT = 2
_NORMAL = 1.959963984540054  # quantile of 95 % intervals


@dataclass(frozen=True)
class Bin:
    """A box of regressors, with its rows."""

    lower: Array
    upper: Array
    rows: NDArray[np.int64]

    @property
    def volume(self) -> float:
        """Logarithm of the product of the sides; sides of length zero are left out."""
        sides = self.upper - self.lower
        return float(np.log(sides[sides > 0]).sum())

    def halves(self, x: Array) -> tuple[Bin, Bin]:
        """The two halves across the widest side."""
        side = int(np.argmax(self.upper - self.lower))
        middle = (self.lower[side] + self.upper[side]) / 2
        below = x[self.rows, side] < middle
        lower, upper = self.lower.copy(), self.upper.copy()
        upper[side] = lower[side] = middle
        return Bin(self.lower, upper, self.rows[below]), Bin(lower, self.upper, self.rows[~below])


def private_tree(
    x: Array, lower: Array, upper: Array, epsilon: float, rng: np.random.Generator
) -> list[Bin]:
    """Bins by PrivTree, at least d + 1 of them.

    Parameters
    ----------
    x
        Regressors within the bounds, shape (n, d).
    lower, upper
        Public bounds, shape (d,).
    epsilon
        Of its pure guarantee, for one row more or less.
    rng
        Of the noise.
    """
    scale = 3 / epsilon  # of Laplace noise, for two children
    decay = scale * math.log(2)
    waiting, leaves = deque([(Bin(lower, upper, np.arange(len(x))), 0)]), []
    while waiting:
        box, depth = waiting.popleft()
        score = max(len(box.rows) - decay * depth, -decay)
        if score + rng.laplace(scale=scale) > 0:
            waiting.extend((half, depth + 1) for half in box.halves(x))
        else:
            leaves.append(box)
    while len(leaves) <= x.shape[1]:
        largest = max(range(len(leaves)), key=lambda k: leaves[k].volume)
        leaves.extend(leaves.pop(largest).halves(x))
    return leaves


def binagg(
    x: Array, y: Array, lower: Array, upper: Array, mu: float, rng: np.random.Generator
) -> Intervals:
    """Coefficients and intervals.

    Parameters
    ----------
    x, y
        Shapes (n, d) and (n,), within the bounds; outcomes within -1 and 1.
    lower, upper
        Public bounds of the regressors, shape (d,).
    mu
        Mu of the Gaussian guarantee of the whole, under replace-one.
    rng
        Of the noise.
    """
    d = x.shape[1]
    of_bins, of_counts, of_x, of_y = mu * _SHARES / np.linalg.norm(_SHARES)
    # Pure epsilon implies mu with ndtr(-mu / 2) = 1 / (1 + exp(epsilon)); a replaced row costs two.
    bins = private_tree(x, lower, upper, float(logit(ndtr(of_bins / 2))) / 2, rng)
    lows, highs = (np.array([getattr(box, end) for box in bins]) for end in ("lower", "upper"))
    largest = np.maximum(np.abs(lows), np.abs(highs))
    counts = np.array([float(len(box.rows)) for box in bins])
    sums = np.array([x[box.rows].sum(axis=0) for box in bins])
    totals = np.array([y[box.rows].sum() for box in bins])

    # In units of `largest`, a row that changes bins moves two sums by up to 1 in each column, and
    # one that does not moves one sum by up to a side of its bin.
    within = (((highs - lows) / largest) ** 2).sum(axis=1).max()
    sd = largest * math.sqrt(max(2 * d, within)) / of_x
    counts = np.rint(counts + rng.normal(size=len(bins)) * math.sqrt(2) / of_counts)
    sums = sums + rng.normal(size=sums.shape) * sd
    totals = totals + rng.normal(size=len(bins)) * 2 / of_y

    kept = counts >= _LEAST_COUNT
    counts = counts[kept] * (len(x) / counts[kept].sum())  # the number of rows is public
    return weighted_fit(counts, sums[kept], totals[kept], sd[kept] ** 2)


def weighted_fit(counts: Array, sums: Array, totals: Array, variances: Array) -> Intervals:
    """The estimate from noisy sums; `variances` are those of the noise in `sums`, shape (K, d)."""
    k, d = sums.shape
    weighted = sums / counts[:, None]
    moment = weighted.T @ sums - np.diag((variances / counts[:, None]).sum(axis=0))
    inverse = np.linalg.pinv(moment, hermitian=True)
    found = inverse @ (weighted.T @ totals)
    scores = weighted * (totals - sums @ found)[:, None] + variances * found / counts[:, None]
    covariance = inverse @ (scores.T @ scores * (k / max(k - d, 1))) @ inverse
    reach = _NORMAL * np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return Intervals(found, found - reach, found + reach)
