"""The repaired matrix as estimators take it, and how much of the noise repair has left in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.errors import RequestError
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]

_FLOOR = 0.1  # of the noise's standard deviation on the diagonal
_LEAST_FLOOR = 1e-6  # of the average power
_LEAST_LEFT = 0.02


def floored(evidence: Evidence) -> Array:
    """The repaired matrix with a floor on its diagonal; positive definite, shape (p, p).

    Raises
    ------
    RequestError
        If there is neither a number in it nor noise.

    Notes
    -----
    The floor is a tenth of the noise's standard deviation on the diagonal, since repair leaves
    eigenvalues of zero; and at least a millionth of the average power, since a matrix without noise
    may be of fewer rows than columns.
    """
    p = len(evidence.repaired)
    average = max(float(np.trace(evidence.repaired)) / p, 0.0)
    floor = max(_FLOOR * evidence.law.sd_diagonal, _LEAST_FLOOR * average)
    if not floor > 0:
        raise RequestError(
            "The matrix is zero throughout, and tells nothing.", "Estimate from another release."
        )
    found: Array = evidence.repaired + floor * np.eye(p)
    return found


def correlations(evidence: Evidence) -> tuple[Array, Array]:
    """`floored` on the unit diagonal, and what brings it back.

    Returns
    -------
    correlation
        Positive definite, shape (p, p).
    root
        Square roots of the diagonal that it was divided by, shape (p,).
    """
    matrix = floored(evidence)
    root: Array = np.sqrt(np.diagonal(matrix))
    scaled: Array = matrix / np.outer(root, root)
    np.fill_diagonal(scaled, 1.0)
    return (scaled + scaled.T) / 2, root


def share_left(evidence: Evidence) -> float:
    """What repair leaves of the size of the off-diagonal entries, and so of their noise."""
    before, after = (_off_diagonal_norm(each) for each in (evidence.raw, evidence.repaired))
    return min(max(after / before, _LEAST_LEFT), 1.0) if before > 0 else 1.0


def _off_diagonal_norm(matrix: Array) -> float:
    return float(np.linalg.norm(matrix - np.diag(np.diagonal(matrix))))
