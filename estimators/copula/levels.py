"""Columns of levels as functions of standard normal variables.

An ordered choice cuts one variable at thresholds. It can give strong associations, but the same
order of levels to all of them.

A free choice has an independent variable for each level, and a row has the level with the largest
log(share_k) + g_k, where g_k = -log(-log Phi(y_k)) has a Gumbel distribution. Every level may have
its own covariances with other columns, but they cannot be as strong.

In both, every level has exactly its share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri

Array = NDArray[np.float64]

_GRID = np.linspace(-9.0, 9.0, 3601)


class LevelChoice(Protocol):
    """The way from latent variables to the levels of a column."""

    @property
    def shares(self) -> Array:
        """Of all levels, and of cells of no declared level; sum 1, shape (K,)."""
        ...

    @property
    def size(self) -> int:
        """Number of latent variables."""
        ...

    @property
    def slopes(self) -> Array:
        """Covariances of the indicators of levels with the latent variables; shape (K, size).

        A normal variable with the covariances c to the latent ones has the covariances `slopes` c
        to the indicators.
        """
        ...

    def chosen(self, latent: Array) -> NDArray[np.intp]:
        """Index of the level of every row; `latent` has shape (rows, size)."""
        ...


@dataclass(frozen=True)
class OrderedChoice:
    """Levels by thresholds of one variable; see `LevelChoice`.

    Parameters
    ----------
    shares
        Of all levels, and of cells of no declared level; sum 1, shape (K,).
    scores
        By which levels are sorted; shape (K,).
    """

    shares: Array
    scores: Array

    @property
    def size(self) -> int:
        """One variable; none if there is only one level."""
        return int(self._order.size > 1)

    @property
    def slopes(self) -> Array:
        """See `LevelChoice.slopes`."""
        slopes = np.zeros((self.shares.size, self.size))
        if self.size:
            density = np.exp(-(self._thresholds**2) / 2) / np.sqrt(2 * np.pi)
            slopes[self._order, 0] = -np.diff(density, prepend=0.0, append=0.0)
        return slopes

    def chosen(self, latent: Array) -> NDArray[np.intp]:
        """See `LevelChoice.chosen`."""
        if not self.size:
            return np.full(len(latent), self._order[0])
        indices: NDArray[np.intp] = self._order[np.searchsorted(self._thresholds, latent[:, 0])]
        return indices

    @property
    def _order(self) -> NDArray[np.intp]:
        order = np.argsort(self.scores, kind="stable")
        return order[self.shares[order] > 0]

    @property
    def _thresholds(self) -> Array:
        thresholds: Array = ndtri(np.minimum(np.cumsum(self.shares[self._order])[:-1], 1.0))
        return thresholds


@dataclass(frozen=True)
class FreeChoice:
    """Levels by the largest of several values; see `LevelChoice`.

    Parameters
    ----------
    shares
        Of all levels, and of cells of no declared level; sum 1, shape (K,).
    """

    shares: Array

    @property
    def possible(self) -> NDArray[np.intp]:
        """Indices of the levels with a positive share; shape (k,)."""
        return np.flatnonzero(self.shares > 0)

    @property
    def size(self) -> int:
        """One variable for each possible level; none if there is only one level."""
        return self.possible.size if self.possible.size > 1 else 0

    def chosen(self, latent: Array) -> NDArray[np.intp]:
        """See `LevelChoice.chosen`."""
        if not self.size:
            return np.full(len(latent), self.possible[0])
        # The largest log(share) + g belongs to the smallest of these exponential variables.
        arrival = -log_ndtr(latent) / self.shares[self.possible]
        indices: NDArray[np.intp] = self.possible[arrival.argmin(axis=1)]
        return indices

    @property
    def slopes(self) -> Array:
        """See `LevelChoice.slopes`.

        Notes
        -----
        Given that level k has the largest value, Phi(y_k) is V^share_k with V uniform. Which of the
        other levels is largest does not depend on y_k.
        """
        slopes = np.zeros((self.shares.size, self.size))
        for j, k in enumerate(self.possible[: self.size]):
            share = self.shares[k]
            own = share * _mean_of_largest(share)
            slopes[:, j] = -own * self.shares / (1 - share)
            slopes[k, j] = own
        return slopes


def _mean_of_largest(share: float) -> float:
    """E Phi^-1(V^share), V uniform: the mean of the largest of 1 / share normal variables."""
    log_density = (1 / share - 1) * log_ndtr(_GRID) - _GRID**2 / 2
    density = np.exp(log_density - log_density.max())
    return float(density @ _GRID / density.sum())
