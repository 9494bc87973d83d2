"""Laws of simulated rows: Gaussian, heavy-tailed, or with published histograms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtr

Array = NDArray[np.float64]
# From correlated standard normal cells, shape (n, q), to cells of any mean and deviation.
Law = Callable[[Array], Array]

_GOLDEN = (math.sqrt(5) - 1) / 2
_EVERY = 4  # one of so many columns is heavy-tailed where tails differ between columns


@dataclass(frozen=True)
class Marginal:
    """A histogram of a column, in scaled units.

    Parameters
    ----------
    edges
        Increasing, shape (k + 1,).
    weights
        Not negative, with a positive sum, shape (k,).
    tail
        Assumed in addition, where the noise hides the counts; shape (k,).
    """

    edges: Array
    weights: Array
    tail: Array

    def quantiles(self, levels: Array) -> Array:
        """Values at these levels from 0 to 1, linear within a bin."""
        sums = np.concatenate([[0.0], np.cumsum(self.weights + self.tail)])
        values: Array = np.interp(levels * sums[-1], sums, self.edges)
        return values

    def within(self, reach: float) -> Marginal:
        """The same without the bins of the tail that end farther than `reach` from zero."""
        outer = np.maximum(np.abs(self.edges[:-1]), np.abs(self.edges[1:]))
        return replace(self, tail=np.where(outer <= reach, self.tail, 0.0))


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
    drawn: Array = cells * _mixing(degrees, len(cells))[:, None]
    return drawn


@lru_cache(maxsize=8)
def _mixing(degrees: float, rows: int) -> Array:
    """Factors that turn normal rows into rows of a t law."""
    levels = (np.arange(rows) + 0.5) * _GOLDEN % 1.0  # evenly spread, in no order
    chi_squared = 2 * gammaincinv(degrees / 2, levels)
    mixing: Array = np.sqrt((degrees - 2) / chi_squared)
    mixing.flags.writeable = False
    return mixing


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
