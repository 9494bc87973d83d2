"""What the authors' solver most likely returned: ADMM stopped after a number of steps.

It never says that a problem has no minimiser: its iterates grow by the noise's most negative
eigenvalues, step by step, and the last of them is what is printed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estimators.solvers.admm import proximal
from estimators.solvers.block import soft_threshold

Array = NDArray[np.float64]
STEPS, RHO = 100, 1.0  # gives the Laplace row at r = 0.5 about its printed size


def iterate(matrix: Array, penalty: float, steps: int = STEPS, rho: float = RHO) -> Array:
    """The sparse iterate after so many steps from zero, all entries penalised; shape (p, p)."""
    Z = np.zeros_like(matrix)
    U = np.zeros_like(matrix)
    for _ in range(steps):
        moved = proximal(Z - U - matrix / rho, rho) + U
        Z = soft_threshold(moved, penalty / rho)
        U = moved - Z
    return Z
