"""The result that the authors' solver most likely returned: an unconverged ADMM iterate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.admm import plain

Array = NDArray[np.float64]
STEPS, RHO = 100, 1.0  # reproduce the printed Laplace row at r = 0.5 approximately


def iterate(matrix: Array, penalty: float, steps: int = STEPS) -> Array:
    """Return the sparse iterate after `steps` steps from zero, all entries penalised."""
    return plain(matrix, penalty, steps, RHO)
