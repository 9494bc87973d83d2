"""The nearest correlation matrix with given blocks of the identity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SMALLEST = 1e-8  # eigenvalue
_STEPS = 40
_TOLERANCE = 1e-6


def nearest_correlation(matrix: Array, fixed: NDArray[np.bool_]) -> Array:
    """A positive definite correlation matrix near a given one.

    Parameters
    ----------
    matrix
        Symmetric, shape (p, p).
    fixed
        Entries that are those of the identity in the result, the diagonal among them; shape (p, p).

    Returns
    -------
    ndarray, shape (p, p)
        The same matrix if it is one already.

    Notes
    -----
    Alternating projections with Dykstra's correction (Higham 2002), at most 40 of them; then the
    smallest step towards the identity that leaves no eigenvalue below 1e-8.
    """
    identity = np.eye(len(matrix))
    matrix = np.where(fixed, identity, matrix)
    values, vectors = np.linalg.eigh(matrix)
    correction = np.zeros_like(matrix)
    for _ in range(_STEPS):
        if values[0] >= -_TOLERANCE:
            break
        shifted = matrix - correction
        values, vectors = np.linalg.eigh(shifted)
        projected = (vectors * np.maximum(values, 0.0)) @ vectors.T
        correction = projected - shifted
        matrix = np.where(fixed, identity, (projected + projected.T) / 2)
        values = np.linalg.eigvalsh(matrix)
    missing = _SMALLEST - float(values[0])
    step = missing / (1 - values[0]) if missing > 0 else 0.0
    nearest: Array = (1 - step) * matrix + step * identity
    return nearest
