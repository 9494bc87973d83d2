"""The denoised matrix as input of estimators, and the share of noise that is left in it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.noise.nearest_metric import noise_metric
from gramercy.schemas import wordings
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]

_FLOOR = 0.1  # times the noise's standard deviation on the diagonal
_MIN_FLOOR = 1e-6  # times the average diagonal entry
_MIN_SHARE = 0.02


def with_diagonal_floor(evidence: Evidence) -> Array:
    """The denoised matrix plus a small multiple of the noise's metric; positive definite.

    Raises RequestError if the matrix is zero and the release has no noise.

    Shape (p, p). The floor is a tenth of the noise's standard deviation on the diagonal, since
    denoising leaves eigenvalues of zero; see `noise_metric` for noise that is not spherical. It is
    at least a millionth of the average diagonal entry, since a table without noise may have fewer
    rows than columns.
    """
    p, law = len(evidence.repaired), evidence.law
    least = _MIN_FLOOR * max(float(np.trace(evidence.repaired)) / p, 0.0)
    if not (law.has_noise or least > 0):
        raise wordings.matrix_is_zero()
    floor = _FLOOR * math.sqrt(2) * noise_metric(law, evidence.terms, p)
    return evidence.repaired + floor + max(least - float(np.trace(floor)) / p, 0.0) * np.eye(p)


def correlation_matrix(evidence: Evidence) -> tuple[Array, Array]:
    """`with_diagonal_floor`, scaled to a unit diagonal.

    `correlation`: positive definite, shape (p, p). `root`: square roots of the diagonal before
    scaling, shape (p,).
    """
    matrix = with_diagonal_floor(evidence)
    root: Array = np.sqrt(np.diagonal(matrix))
    scaled: Array = matrix / np.outer(root, root)
    np.fill_diagonal(scaled, 1.0)
    return (scaled + scaled.T) / 2, root


def retained_share(evidence: Evidence) -> float:
    """Off-diagonal norm after denoising over that before: the share of the noise that is left."""
    before, after = (
        float(np.linalg.norm(matrix - np.diag(np.diagonal(matrix))))
        for matrix in (evidence.raw, evidence.repaired)
    )
    return min(max(after / before, _MIN_SHARE), 1.0) if before > 0 else 1.0
