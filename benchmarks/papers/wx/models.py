"""The sparse covariance of Wang and Xu, and normal rows with this covariance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rng = np.random.Generator
LAMBDA = 50.0
C = 200.0
GAMMA = 1.0

ABOUT = (
    "The covariance is U = (U~ + 50 I) / 200, U~ symmetric with a share sr of entries that are not "
    "zero. The paper does not state the distribution: here uniform on [0, 1], off the diagonal. "
    "It names "
    f"no gamma: here {GAMMA:g}, for which its lemma holds with equality: entries off the diagonal "
    "have the deviation 0.25 / sqrt(n), and exceed gamma sqrt(log p / n) with probability p^-8. "
    "It prints curves and no numbers, so only its claims can be tested. Rows are used as they are "
    "drawn, and delta = 1/n. The paper thresholds "
    "every entry, those on the diagonal too."
)


def covariance(p: int, sr: float, rng: Rng) -> Array:
    """Draw a sparse covariance with about sr p^2 nonzero entries off the diagonal."""
    i, j = np.triu_indices(p, 1)
    chosen = rng.permutation(i.size)[: round(sr * p * p / 2)]
    sparse = np.zeros((p, p))
    sparse[i[chosen], j[chosen]] = rng.random(chosen.size)
    made: Array = (sparse + sparse.T + LAMBDA * np.eye(p)) / C
    return made


def moment(covariance: Array, n: int, rng: Rng) -> Array:
    """Draw X^T X / n of n normal rows, by Bartlett's decomposition if n >= p."""
    p = len(covariance)
    root = np.linalg.cholesky(covariance)
    if n < p:
        factor = rng.standard_normal((p, n))
    else:
        factor = np.tril(rng.standard_normal((p, p)), -1)
        np.fill_diagonal(factor, np.sqrt(rng.chisquare(n - np.arange(p))))
    half = root @ factor
    made: Array = half @ half.T / n
    return made
