"""Laws of simulated rows: Gaussian, heavy-tailed, or with published histograms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtr

Array = NDArray[np.float64]
# From correlated standard normal cells, shape (n, q), to cells of any mean and deviation.
Law = Callable[[Array], Array]

_GOLDEN = (math.sqrt(5) - 1) / 2
_POWERS, _BISECTIONS = (0.1, 40.0), 40
_EVERY = 4  # one of so many columns is heavy-tailed where tails differ between columns


@dataclass(frozen=True)
class Marginal:
    """A histogram of a column, in scaled units.

    Parameters
    ----------
    edges, weights
        Increasing, shape (k + 1,); not negative, with a positive sum, shape (k,).
    """

    edges: Array
    weights: Array

    def quantiles(self, levels: Array) -> Array:
        """Values at these levels from 0 to 1, linear within a bin."""
        sums = np.concatenate([[0.0], np.cumsum(self.weights)])
        values: Array = np.interp(levels * sums[-1], sums, self.edges)
        return values


def with_tails(edges: Array, weights: Array, hidden: float) -> Array:
    """Continue a histogram beyond its last bin that is not empty, on both sides of zero.

    Counts far out are lost in the noise, but much of the variance of a heavy-tailed column is
    there. The mass beyond a distance falls as a power of the distance; the power follows from the
    last bin and the bins from half its distance. Gaussian tails stay nearly empty.

    Parameters
    ----------
    edges, weights
        See `Marginal`; zero is the centre of the column.
    hidden
        Largest weight of a bin that the noise may hide.
    """
    above = _with_upper_tail(edges, weights, hidden)
    below = _with_upper_tail(-edges[::-1], weights[::-1], hidden)[::-1]
    continued: Array = np.maximum(above, below)
    return continued


def _with_upper_tail(edges: Array, weights: Array, hidden: float) -> Array:
    last = int(np.flatnonzero(weights)[-1])
    first = min(int(np.searchsorted(edges, edges[last] / 2)), last - 1)
    if last + 1 == len(weights) or first < 0 or edges[first] <= 0:
        return weights
    start = edges[last]
    power = _tail_power(
        float(weights[first:last].sum() / weights[last]),
        float(start / edges[first]),
        float(start / edges[last + 1]),
    )
    reached = (edges[last:] / start) ** -power
    mass = weights[last] / (1 - reached[1])  # beyond the start of that bin
    continued = weights.copy()
    continued[last + 1 :] = np.minimum(mass * -np.diff(reached[1:]), hidden)
    return continued


def _tail_power(ratio: float, inside: float, outside: float) -> float:
    """The a with (inside^a - 1) / (1 - outside^a) = ratio; inside > 1 > outside. By bisection."""
    low, high = _POWERS
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        too_low = inside**middle - 1 < ratio * (1 - outside**middle)
        low, high = (middle, high) if too_low else (low, middle)
    return high


def gaussian(cells: Array) -> Array:
    """The Gaussian law."""
    return cells


def student(degrees: float) -> Law:
    """A multivariate t law: rows that are long in all columns together."""
    return partial(_student, degrees)


def lognormal(shape: float) -> Law:
    """Lognormal columns: skewed, with tails of their own."""
    return partial(_lognormal, shape, 1)


def some_lognormal(shape: float) -> Law:
    """Every fourth column lognormal, the others Gaussian."""
    return partial(_lognormal, shape, _EVERY)


def copula(marginals: tuple[Marginal | None, ...], degrees: float | None = None) -> Law:
    """Columns with these histograms, and the dependence of a Gaussian or of a multivariate t law.

    A column without a histogram stays Gaussian.
    """
    return partial(_copula, marginals, degrees)


def _student(degrees: float, cells: Array) -> Array:
    levels = (np.arange(len(cells)) + 0.5) * _GOLDEN % 1.0  # evenly spread, in no order
    mixing = np.sqrt((degrees - 2) / (2 * gammaincinv(degrees / 2, levels)))  # of chi squared
    drawn: Array = cells * mixing[:, None]
    return drawn


def _lognormal(shape: float, every: int, cells: Array) -> Array:
    drawn = cells.copy()
    drawn[:, ::every] = np.exp(shape * cells[:, ::every]) / shape
    return drawn


def _copula(marginals: tuple[Marginal | None, ...], degrees: float | None, cells: Array) -> Array:
    if degrees is None:
        levels = ndtr(cells)
    else:
        ranks = _student(degrees, cells).argsort(axis=0).argsort(axis=0)
        levels = (ranks + 0.5) / len(cells)
    drawn = cells.copy()
    for j, marginal in enumerate(marginals):
        if marginal is not None:
            drawn[:, j] = marginal.quantiles(levels[:, j])
    return drawn
