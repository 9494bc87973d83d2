"""The models of Li and Wang, and the interpretation that reproduces their numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rng = np.random.Generator
FREEDOM = 5
# The constants that reproduce the printed numbers; a function of n only.
CONSTANTS = {("lw", 200): 0.3, ("lw", 300): 0.9, ("wx", 200): 2.2, ("wx", 300): 2.6}

ABOUT = (
    "Rows are drawn and used as they are, with no normalisation, although the noise is for rows of "
    "length one; errors are of the covariance itself. Every entry is thresholded, those on the "
    "diagonal too, at c sqrt(log p / n) + 4 sd sqrt(log p). The paper says that c comes from "
    "ten-fold cross-validation; the printed numbers need a constant: "
    + "; ".join(
        f"{method.upper()} {constant:g} at n = {n}" for (method, n), constant in CONSTANTS.items()
    )
    + "."
)


def covariance(model: int, p: int) -> Array:
    """Covariance of Model 1, 0.6^|i-j|, or of Model 2, a band matrix with 1, 0.6 and 0.3."""
    apart = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    if model == 1:
        decaying: Array = 0.6**apart
        return decaying
    banded: Array = np.select([apart == 0, apart == 1, apart == 2], [1.0, 0.6, 0.3], 0.0)
    return banded


def drawn(covariance: Array, rows: str, n: int, rng: Rng) -> Array:
    """Draw normal rows, or t rows with that scale matrix; then the covariance is 5/3 of it."""
    made: Array = rng.standard_normal((n, len(covariance))) @ np.linalg.cholesky(covariance).T
    if rows == "t5":
        made /= np.sqrt(rng.chisquare(FREEDOM, (n, 1)) / FREEDOM)
    return made


def truths(covariance: Array, rows: str) -> list[Array]:
    """Possible targets of the printed errors: for t rows, the scale matrix or the covariance."""
    return [covariance, covariance * FREEDOM / (FREEDOM - 2)] if rows == "t5" else [covariance]
