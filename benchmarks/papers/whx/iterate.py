"""What the authors' solver most likely returned: ADMM stopped after a number of steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.admm import plain

Array = NDArray[np.float64]
STEPS, RHO = 100, 1.0  # gives the Laplace row at r = 0.5 about its printed size


def iterate(matrix: Array, penalty: float, steps: int = STEPS) -> Array:
    """The sparse iterate after so many steps from zero, all entries penalised; shape (p, p)."""
    return plain(matrix, penalty, steps, RHO)
