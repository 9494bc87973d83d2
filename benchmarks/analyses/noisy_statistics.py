"""Least squares from three noisy sufficient statistics, with standard errors: dp-statsmodels.

The procedure of Ghenis (2024), "Differentially private regression with valid statistical
inference", and of the package dp-statsmodels that it describes: noise on X^T X, X^T y and y^T y, a
shift of X^T X where it is indefinite, and standard errors by sampling and by both noises to first
order. Its shares of the budget are .4, .4 and .2. Here they are shares of mu, and noise has the
exact size of the Gaussian mechanism under replace-one; published is noise of
sqrt(2 log(3.75 / delta)) / epsilon per unit of sensitivities that are two to four times as large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from benchmarks.statistics.correlations import noisy

Array = NDArray[np.float64]
_SHARES = np.array([0.4, 0.4, 0.2])
_SHIFT = 1e-6  # beyond the smallest eigenvalue, where it is negative
_LEVEL = 0.95


@dataclass(frozen=True)
class Intervals:
    """Coefficients and their 95 % intervals, shape (d,) each."""

    coefficients: Array
    lower: Array
    upper: Array


def noisy_statistics(
    x: Array, y: Array, longest: float, largest: float, mu: float, rng: np.random.Generator
) -> Intervals:
    """Coefficients and intervals.

    Parameters
    ----------
    x, y
        Shapes (n, d) and (n,).
    longest, largest
        Public bounds on the lengths of rows, and on outcomes; no row exceeds them.
    mu
        Mu of the Gaussian guarantee of the whole, under replace-one.
    rng
        Of the noise.
    """
    n, d = x.shape
    of_x, of_cross, of_y = mu * _SHARES / np.linalg.norm(_SHARES)
    sd, cross_sd = longest**2 / of_x, 2 * longest * largest / of_cross
    gram = noisy(x.T @ x, sd, rng)
    cross = x.T @ y + cross_sd * rng.normal(size=d)
    square = float(y @ y) + largest**2 / of_y * rng.normal()
    least = float(np.linalg.eigvalsh(gram)[0])
    if least <= 0:
        gram = gram + (abs(least) + _SHIFT) * np.eye(d)
    inverse = np.linalg.inv(gram)
    found = inverse @ cross
    spread = max((square - found @ cross) / (n - d), 0.0)
    by_noise = (cross_sd**2 + sd**2 * (found @ found)) * (inverse**2).sum(axis=1)
    error = np.sqrt(np.maximum(spread * np.diag(inverse) + by_noise, 0.0))
    reach = float(stdtrit(n - d, (1 + _LEVEL) / 2)) * error
    return Intervals(found, found - reach, found + reach)
