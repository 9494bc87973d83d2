"""The sparse difference of two precision matrices, by the D-trace loss.

minimise over symmetric D:  tr(D A D B) / 2 - tr(D (B - A)) + penalty sum_ij |D_ij|

for the second moments A and B of two tables. Without a penalty, the minimiser is A^-1 - B^-1. The
paper writes the first term as its average with tr(D B D A) / 4, which is equal.

Yuan, Xi, Chen and Deng (2017), "Differential network analysis via lasso penalized D-trace loss",
Biometrika 104, (2.3). Beck and Teboulle (2009) with the restart of O'Donoghue and Candes (2015) in
place of the paper's ADMM.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.solvers.block import soft_threshold

Array = NDArray[np.float64]

_LIMIT = 20_000  # iterations
_MEASURE_EVERY = 50  # iterations
_TOLERANCE = 1e-10  # distance of zero from the subgradient, relative to the largest |B - A|


def dtrace(A: Array, B: Array, penalty: float) -> Array | None:
    """The minimiser D; symmetric, with exact zeros; shape (p, p).

    `A`, `B`: positive definite, near a unit diagonal; shape (p, p). None if the iteration did not
    converge: a matrix is nearly singular, and the penalty is small.
    """
    linear = B - A
    size = float(np.abs(linear).max(initial=0.0))
    D = np.zeros_like(A)
    if size <= penalty:
        return D
    steepness = float(np.linalg.eigvalsh(A)[-1] * np.linalg.eigvalsh(B)[-1])
    ahead, momentum = D, 1.0
    for iteration in range(1, _LIMIT + 1):
        new = soft_threshold(
            ahead - _gradient(A, B, ahead, linear) / steepness, penalty / steepness
        )
        if ((ahead - new) * (new - D)).sum() > 0:
            momentum = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        D, ahead = new, new + (momentum - 1) / following * (new - D)
        momentum = following
        if iteration % _MEASURE_EVERY == 0:
            # Distances of zero from the subgradients of all entries.
            gradient = _gradient(A, B, D, linear)
            distance = np.where(D != 0, gradient + penalty * np.sign(D), np.abs(gradient) - penalty)
            if np.where(D != 0, np.abs(distance), distance).max() <= _TOLERANCE * size:
                return D
    return None


def _gradient(A: Array, B: Array, D: Array, linear: Array) -> Array:
    product = A @ D @ B
    gradient: Array = (product + product.T) / 2 - linear
    return gradient
