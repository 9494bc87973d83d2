"""The metric in which the noise of a second moment is spherical.

Noise that was drawn in the metric of the rows is large in directions in which they vary much, and
small in others. Seen in its own metric it has one size, so that a filter of directions that it
hides compares each with the noise that is there. For noise of one size in all directions the metric
is the identity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from gramercy.estimators.uncertainty.entry_covariance import EntryCovariance

Array = NDArray[np.float64]

_LEAST = 1e-12  # smallest squared size of the noise in a direction, relative to the largest


@dataclass(frozen=True, eq=False)
class NoiseMetric:
    """The shape P and the size t of noise B E B^T, where P = B B^T and E is spherical."""

    shape: Array  # P, positive definite with a mean square of its eigenvalues of 1; shape (k, k)
    size: float  # t, the standard deviation of E off the diagonal

    @classmethod
    def of(cls, noise: EntryCovariance, k: int) -> NoiseMetric:
        """The metric of the noise of k columns.

        The squares of P t of several independent parts add up. Independent entries of one scale
        count as spherical.
        """
        square = np.zeros((k, k))
        for left, right in noise.products:
            square += (left @ right + right @ left) / 2
        values, vectors = np.linalg.eigh(square)
        mean = float(values.mean()) if k else 0.0
        if not mean > 0:
            return cls(np.eye(k), 0.0)
        roots = np.sqrt(np.maximum(values, _LEAST * values.max()) / mean)
        shape = (vectors * roots) @ vectors.T
        return cls((shape + shape.T) / 2, float(np.sqrt(mean)))

    def among(self, columns: NDArray[np.bool_]) -> NoiseMetric:
        """That of some of the columns."""
        return NoiseMetric(self.shape[np.ix_(columns, columns)], self.size)

    def length(self, coefficients: Array) -> float:
        """The length of coefficients, which is the root of b^T P b."""
        return math.sqrt(max(float(coefficients @ self.shape @ coefficients), 0.0))

    @cached_property
    def back(self) -> Array:
        """The inverse of the Cholesky factor B."""
        root = np.linalg.cholesky(self.shape)
        identity = np.eye(len(root))
        inverse: Array = scipy.linalg.solve_triangular(root, identity, lower=True)
        return inverse
