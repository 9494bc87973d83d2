"""The result that the authors' solver most likely returned: an unconverged ADMM iterate."""

from __future__ import annotations

from benchmarks.arrays import Array
from benchmarks.papers.admm import plain

STEPS, RHO = 100, 1.0  # reproduce the printed Laplace row at r = 0.5 approximately


def iterate(matrix: Array, penalty: float, steps: int = STEPS) -> Array:
    """Return the sparse iterate after `steps` steps from zero, all entries penalised."""
    return plain(matrix, penalty, steps, RHO)
