"""The second moment of published noisy rows, without the bias of their noise.

Graph structure learning with privacy guarantees for open graph data (2025), equation 5: with
Y = X + Z and independent noise of variance v on every cell, E[Y^T Y / n] = X^T X / n + v I.

Where the noise is of whole numbers, v is the exact variance of what was added, and not the sigma^2
of its name: that of the discrete Gaussian lies below sigma^2, that of a rounded Gaussian above.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[np.float64]


def debiased(rows: Array, cell_variance: float) -> Array:
    """Y^T Y / n - v I, an unbiased estimate of the second moment X^T X / n of the true rows.

    Parameters
    ----------
    rows
        Y, the published noisy rows; shape (n, p).
    cell_variance
        v, variance of the noise on a cell, in squared units of the rows. Of noise of whole numbers
        times a step: step^2 times `discrete_variance` or `rounded_variance`.

    Returns
    -------
    ndarray, shape (p, p)
        Symmetric; may be indefinite.

    Raises
    ------
    ValueError
        If the rows are not a finite table of at least one row and column, or the variance is
        negative or not finite.
    """
    table = np.asarray(rows, dtype=np.float64)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise ValueError("the rows must be a finite table, with at least one row and column")
    if not 0 <= cell_variance < math.inf:
        raise ValueError("the variance of a cell must be finite, and not negative")
    moment: Array = table.T @ table / len(table)
    return (moment + moment.T) / 2 - cell_variance * np.eye(table.shape[1])


def discrete_variance(sigma: float) -> float:
    """Variance of the discrete Gaussian, P[j] proportional to exp(-j^2 / (2 sigma^2)).

    Parameters
    ----------
    sigma
        Positive, in whole numbers.

    Returns
    -------
    float
        Below sigma^2: by less than 1e-6 of it for sigma >= 1, by nearly all of it for a small one.

    Raises
    ------
    ValueError
        If sigma is not positive and finite.

    Notes
    -----
    Canonne, Kamath and Steinke (2020). The weights sum to a theta function f(t) = sum_j exp(-t j^2)
    at t = 1 / (2 sigma^2), and the variance is -f'/f. By Poisson's summation
    f(t) = sqrt(pi / t) (1 + 2 sum_k exp(-pi^2 k^2 / t)), so that, with q = exp(-2 pi^2 sigma^2),

    variance = sigma^2 - 8 pi^2 sigma^4 (sum_k k^2 q^(k^2)) / (1 + 2 sum_k q^(k^2)), k = 1, 2, ...

    That is short where sigma is 1 or more; below, the sum over the integers is.
    """
    _check(sigma)
    j = np.arange(1, 41, dtype=np.float64)
    if sigma >= 1:
        weights = np.exp(-2 * (math.pi * min(sigma, 100.0) * j) ** 2)
        share = float((j**2 * weights).sum() / (1 + 2 * weights.sum()))
        return sigma**2 * (1 - 8 * (math.pi * min(sigma, 100.0)) ** 2 * share)
    weights = np.exp(-0.5 * (j / sigma) ** 2) if sigma > 1e-3 else np.zeros_like(j)
    return float(2 * (j**2 * weights).sum() / (1 + 2 * weights.sum()))


def rounded_variance(sigma: float) -> float:
    """Variance of the rounded Gaussian floor(sigma Z + 1/2), Z standard normal.

    Parameters
    ----------
    sigma
        Positive, in whole numbers.

    Returns
    -------
    float
        sigma^2 + 1/12 to double precision for sigma >= 2; less for smaller ones.

    Raises
    ------
    ValueError
        If sigma is not positive and finite.

    Notes
    -----
    E X^2 = sum over j >= 1 of (2 j - 1) P[|X| >= j], and P[|X| >= j] = 2 Q((j - 1/2) / sigma). That
    differs from sigma^2 + 1/12 by terms of the order of sigma^2 exp(-2 pi^2 sigma^2).
    """
    _check(sigma)
    if sigma >= 2:
        return sigma**2 + 1 / 12
    j = np.arange(1, 81, dtype=np.float64)
    with np.errstate(over="ignore"):
        return float(2 * ((2 * j - 1) * ndtr((0.5 - j) / sigma)).sum())


def _check(sigma: float) -> None:
    if not 0 < sigma < math.inf:
        raise ValueError("sigma must be positive and finite")
