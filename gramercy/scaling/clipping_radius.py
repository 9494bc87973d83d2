"""The clipping radius and the cuts of further matrices, from published histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gramercy.scaling.column_constants import binary_logarithm
from gramercy.scaling.runs import SEEN, centred, seen_bins
from gramercy.schemas.evidence import Histogram

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

_ROOT = math.sqrt(math.sqrt(2.0))
# in units of the root of the number of columns
_EDGES = (
    0.0, 0.5, math.sqrt(0.5), 1 / _ROOT, 1.0, _ROOT, math.sqrt(2), math.sqrt(2) * _ROOT, 2.0,
    2 * math.sqrt(2), 4.0,
)  # fmt: skip
_LONGEST = 2.0**12  # lengths are counted up to twice this number; see `counting.count_lengths`
_BIAS, _STRENGTH = 0.035, 1200.0
_EIGHTH = math.sqrt(_ROOT)
_CUTS = tuple(2.0**k for k in range(-3, 4))
_LARGEST_RADIUS = 128.0  # the rows of a person may be many


def length_edges(q: int, longest: float = _LONGEST) -> Array:
    """Return the edges of the bins of row lengths: quarter octaves where a radius may be.

    Parameters
    ----------
    q
        Number of columns of the matrix.
    longest
        Length of the longest row that is possible: empty bins beyond would only add noise.

    Returns
    -------
    ndarray of float64, shape (K,)
        Bin k is [edges[k], edges[k + 1]); the last is unbounded. A length x is in bin
        ``searchsorted(edges, x, side="right") - 1``. Beyond four roots of q bins are octaves: the
        noise of a count is the same however wide a bin is.
    """
    edges, root = list(_EDGES), math.sqrt(q)
    while edges[-1] * root < min(longest, _LONGEST):
        edges.append(edges[-1] * 2)
    return root * np.array(edges)


@dataclass(frozen=True, eq=False)
class RowLengths:
    """What a noisy histogram says of the lengths of rows, or of persons' rows together."""

    counts: Counts  # shape (K,)
    sd: float  # standard deviation of the noise of a count
    edges: Array  # see `length_edges`
    rows: float  # number of rows or persons

    @classmethod
    def of(cls, published: Histogram, rows: float) -> RowLengths:
        """What a published histogram says of this number of rows or persons."""
        return cls(published.count, published.sd, published.lower, rows)

    @property
    def ends(self) -> tuple[Array, Array]:
        """Shortest and longest row of every bin, the latter up to twice the last edge."""
        high = np.append(self.edges[1:], 2 * self.edges[-1])
        return np.where(self.edges > 0, self.edges, high / 4), high

    def weights(self, least: float = SEEN, last: float = -math.inf) -> Array:
        """Shares of rows by bin: zero beyond the last run that exceeds the noise.

        `last`: evidence that the last bin of all runs needs. The lengths in it are the largest, so
        that a few weak bins together would say too much.
        """
        values = centred(self.counts, self.rows)
        most = int(np.argmax(values))
        evidence = values[most + 1 :] / self.sd
        seen = seen_bins(evidence, least)
        while seen and evidence[seen - 1] < last:
            seen -= 1
        values[most + 1 + seen :] = 0.0
        values = np.maximum(values, 0.0)
        result: Array = values / math.fsum(values)
        return result

    @cached_property
    def seen(self) -> Array:
        """See `weights`."""
        return self.weights()

    @cached_property
    def power(self) -> float:
        """Mean squared length, if the logarithm of a length is uniform in its bin."""
        low, high = self.ends
        squares = (high * high - low * low) / (2 * _natural_logarithm(high / low))
        return math.fsum(self.seen * squares)

    def lost(self, radius: float) -> Array:
        """What clipping takes away from the mean squared length of the rows in each bin."""
        low, high = self.ends
        start = np.minimum(np.maximum(low, radius), high)
        squares = (high * high - start * start) / 2
        squares = squares - radius * radius * _natural_logarithm(high / start)
        lost: Array = np.maximum(squares / _natural_logarithm(high / low), 0.0)
        return np.where(high > radius, lost, 0.0)

    def lost_share(self, radius: float) -> float:
        """The share of the sum of squared lengths that clipping removes."""
        return math.fsum(self.seen * self.lost(radius)) / self.power

    def kept_square(self, radius: float, q: int) -> float:
        """The mean square per column that clipping leaves; `q`: number of columns of the matrix."""
        return self.power * (1 - self.lost_share(radius)) / q


def radii(q: int) -> list[float]:
    """The radii that may be chosen: eighths of an octave from the root of q."""
    chosen = [math.sqrt(q)]
    while chosen[-1] * _EIGHTH <= _LARGEST_RADIUS * math.sqrt(q) * 1.0001:
        chosen.append(chosen[-1] * _EIGHTH)
    return chosen


def clipping_bias(strength: float) -> float:
    """b: the error of a correlation by clipping, per root of the share that is lost.

    `strength`: n / (noise sqrt(p)). With less noise b is smaller.
    """
    return float(f"{_BIAS * math.cbrt(math.sqrt(_STRENGTH / strength)):.3g}")


def clipping_radius(lengths: RowLengths, q: int, p: int, noise: float) -> float:
    """Choose the clipping radius that balances noise and what clipping takes away.

    Parameters
    ----------
    lengths
        The published lengths.
    q, p
        Number of columns of the matrix, and of the table.
    noise
        Standard deviation of the noise off the diagonal of the sum of rows' outer products, for
        rows in the unit ball: 1/mu under replace-one.

    The result is in units of the scaled columns, rounded to three digits.

    Notes
    -----
    Among eighths of an octave r from the root of q, that with the least ``b^2 lost(r) + (r^2 noise
    / (n v(r)))^2`` is chosen: lost(r) is the share of the sum of squared lengths that clipping
    removes, and v(r) the mean of what remains per column. With less noise b is smaller.
    """
    bias = clipping_bias(lengths.rows / (noise * math.sqrt(p)))
    best, least = 1.0, math.inf
    for radius in radii(q):
        spread = radius * radius * noise / (lengths.rows * lengths.kept_square(radius, q))
        loss = bias * bias * lengths.lost_share(radius) + spread * spread
        if loss < least:
            best, least = radius, loss
    return float(f"{best:.2e}")


def lost_cut(lengths: RowLengths, radius: float, p: int, noise: float) -> float:
    """Choose where what a row loses by clipping is cut off.

    Parameters
    ----------
    lengths
        The published lengths.
    radius
        See `clipping_radius`.
    p
        Number of columns of the table.
    noise
        Standard deviation of the noise off the diagonal of the sum of what rows lose, where no row
        loses more than the unit ball allows.

    Returns
    -------
    float
        The largest Frobenius norm of what a row loses, by the squared radius r^2.

    Notes
    -----
    Among 1/8, 1/4, ..., 8, the k with the least ``(beyond(k)/p)^2 + 2 s(k)^2``: beyond(k) is the
    mean loss of rows longer than r sqrt(1 + k), which lose more than k r^2, and s(k) = k r^2
    noise/n. Powers of two, so that the matrix keeps its lattice.
    """

    def error(cut: float) -> float:
        beyond = math.fsum(lengths.seen * lengths.lost(radius * math.sqrt(1 + cut)))
        spread = cut * radius * radius * noise / lengths.rows
        return (beyond / p) ** 2 + 2 * spread * spread

    return min(_CUTS, key=error)


def _natural_logarithm(values: Array) -> Array:
    """See `binary_logarithm`."""
    logarithm: Array = binary_logarithm(values) * math.log(2)
    return logarithm


def missing_cut(present: Sequence[float]) -> float | None:
    """The largest squared norm of the indicators of a row's missing cells.

    Parameters
    ----------
    present
        Published share of rows with a value, of each column: 1 where no missing cells are seen.

    Returns
    -------
    float or None
        The number of columns with missing cells, which cuts nothing; None without two of them, as
        nothing is missing together. A smaller cut has less noise, but spoils rows that lack a whole
        block of cells.
    """
    holes = sum(share < 1 for share in present)
    return float(holes) if holes > 1 else None
