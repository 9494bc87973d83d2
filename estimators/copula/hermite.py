"""Correlations of monotone functions of correlated normal variables, by Hermite expansions.

With g(z) = sum a_k h_k(z) in normalised Hermite polynomials, E g_i(z_i) g_j(z_j) is
sum a_ik a_jk rho^k for normal z_i, z_j with correlation rho (Mehler's formula). It increases with
rho for nondecreasing functions.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_TERMS = 40
_GRID = np.linspace(-8.0, 8.0, 3201)
_STEPS = 30  # of bisection
_LARGEST = 0.999  # latent correlation


def _polynomials() -> Array:
    """Normalised Hermite polynomials on the grid, times normal weights; shape (terms + 1, grid)."""
    weights = np.exp(-(_GRID**2) / 2)
    polynomials = [np.ones_like(_GRID), _GRID]
    for k in range(1, _TERMS):
        following = _GRID * polynomials[k] - np.sqrt(k) * polynomials[k - 1]
        polynomials.append(following / np.sqrt(k + 1))
    weighted: Array = np.stack(polynomials) * (weights / weights.sum())
    return weighted


_WEIGHTED = _polynomials()


def hermite_coefficients(marginal: Marginal) -> Array:
    """Coefficients of h_0, h_1, ..., and the variance.

    Returns
    -------
    ndarray, shape (terms + 2,)
        The first one is the mean, and the last number is the variance of g(z).
    """
    values = marginal.values(_GRID)
    mean = float(_WEIGHTED[0] @ values)
    coefficients = _WEIGHTED @ (values - mean)  # a large mean would cost digits
    coefficients[0] = mean
    return np.append(coefficients, _WEIGHTED[0] @ (values - mean) ** 2)


def latent_correlations(expanded: Array, covariances: Array) -> Array:
    """Latent correlations that give the covariances, as far as any do.

    Parameters
    ----------
    expanded
        See `hermite_coefficients`; shape (q, terms + 2).
    covariances
        Of the columns; shape (q, q).

    Returns
    -------
    ndarray, shape (q, q)
        Between -0.999 and 0.999 off the diagonal; 1 on it.
    """
    a = expanded[:, 1:-1]
    low, high = (np.full(covariances.shape, end) for end in (-_LARGEST, _LARGEST))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        value = np.zeros_like(middle)
        for column in a.T[::-1]:
            value = (value + np.outer(column, column)) * middle
        below = value < covariances
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    latent: Array = (low + high) / 2
    constant = ~(expanded[:, -1] > 0)
    latent[constant, :] = latent[:, constant] = 0.0
    np.fill_diagonal(latent, 1.0)
    return latent


class Marginal(Protocol):
    """The distribution of a numeric column."""

    def values(self, latent: Array) -> Array:
        """Cells for standard normal values, nondecreasing; same shape."""
        ...
