"""The clipping radius from a noisy histogram of row lengths."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gramercy.scaling.column_constants import LARGEST_WINSOR

Array = NDArray[np.float64]

_BIAS = 0.04
_LEAST_POWER = 0.05
_PERSONS_ROOM = 16.0
_SURE = 3.0
_QUARTERS = np.array([1.0, math.sqrt(math.sqrt(2)), math.sqrt(2), math.sqrt(2 * math.sqrt(2))])


def length_edges(q: int) -> Array:
    """Return the edges of the bins of row lengths: quarter octaves from 1.

    Returns shape (K,): bin k is [edges[k], edges[k + 1]); the last is unbounded. A length x is in
    bin ``max(searchsorted(edges, x, side="right") - 1, 0)``. With an intercept only malformed lines
    are shorter than 1. The last edge is 16 times the length of the longest winsorised row, because
    the lengths of persons cover all their rows.
    """
    octaves = math.ceil(math.log2(LARGEST_WINSOR * _PERSONS_ROOM)) + (q.bit_length() + 1) // 2
    edges: Array = (np.ldexp(1.0, np.arange(octaves))[:, None] * _QUARTERS).ravel()
    return edges


def clipping_radius(counts: NDArray[np.int64], sd: float, n: float, q: int, noise: float) -> float:
    """Choose the clipping radius that balances noise and what clipping takes away.

    `counts`: noisy histogram over `length_edges`, shape (K,). `noise`: standard deviation of the
    noise off the diagonal of the sum of rows' outer products, for rows in the unit ball: 1/mu under
    replace-one.

    The result is in units of the scaled columns, rounded to three digits.

    Among all edges r, that with the least ``(.04)^2 lost(r) + (r^2 noise / (n v(r)))^2`` is
    chosen: lost(r) is the share of the sum of squared lengths that clipping removes, and v(r) the
    mean of what remains per column. The square root of lost(r) predicted the bias of correlations
    better than lost(r) itself, on tables of many kinds.
    """
    squares = length_edges(q) ** 2 * math.sqrt(math.sqrt(2))  # of a bin's geometric mean
    weights = _weights(counts, sd, n)
    squares = squares[: len(weights)]
    power = math.fsum(weights * squares)
    best, least = 1.0, math.inf
    for radius in length_edges(q).tolist():
        kept = math.fsum(weights * np.minimum(squares, radius * radius))
        lost = max(power - kept, 0.0) / power
        spread = radius * radius * noise / (n * max(kept / q, _LEAST_POWER))
        loss = _BIAS * _BIAS * lost + spread * spread
        if loss < least:
            best, least = radius, loss
    return float(f"{best:.2e}")


def _weights(counts: NDArray[np.int64], sd: float, n: float) -> Array:
    """Shares of rows in the bins of the shortest prefix that has nearly all rows."""
    values = counts.astype(np.float64)
    values += (n - float(counts.sum())) / len(values)
    # How far below n the sum of a prefix with all rows may be, in standard deviations of a count.
    bins = len(values)
    prefix = np.minimum(np.arange(1, bins + 1), bins // 2)
    reached = np.cumsum(values) >= n - sd * (_SURE * np.sqrt(prefix * (bins - prefix) / bins))
    support = int(np.argmax(reached)) + 1 if reached.any() else len(values)
    weights = np.maximum(values[:support], 0.0)
    total = math.fsum(weights)
    return weights / total if total > 0 else np.ones(1)
