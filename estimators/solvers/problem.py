"""What a graphical lasso is asked: a matrix, and what each of its entries costs, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """One graphical lasso.

    Parameters
    ----------
    S
        Symmetric, shape (p, p).
    penalties
        Of every entry, not negative; shape (p, p). Zero on the diagonal unless it is penalised.
    penalty
        The same, as the caller put it: one number, or a matrix.
    """

    S: Array
    penalties: Array
    penalty: float | Array

    @classmethod
    def checked(cls, S: ArrayLike, penalty: ArrayLike, penalize_diagonal: bool) -> Problem:
        """Raises ValueError where it makes no sense."""
        matrix = _symmetric(S, "matrix")
        given: float | Array
        if np.ndim(penalty) == 0:
            given = float(np.asarray(penalty, dtype=np.float64))
            if not 0 < given < math.inf:
                raise ValueError("the penalty must be positive and finite")
            penalties = np.full_like(matrix, given)
        else:
            given = np.array(penalty, dtype=np.float64)
            if given.shape != matrix.shape:
                raise ValueError("the matrix of penalties must have the shape of the matrix")
            penalties = given.copy()
        if not penalize_diagonal:
            np.fill_diagonal(penalties, 0.0)  # whatever it was
        penalties = _symmetric(penalties, "matrix of penalties")
        if penalties.min() < 0:
            raise ValueError("no penalty may be negative")
        return cls(matrix, penalties, given)

    @property
    def spoken(self) -> str:
        """The penalty, in an error's words."""
        if isinstance(self.penalty, float):
            return f"penalty {self.penalty:g}"
        off = self.penalties[~np.eye(len(self.S), dtype=bool)]
        return f"penalties of {off.min(initial=math.inf):g} to {off.max(initial=0.0):g}"


def _symmetric(given: ArrayLike, name: str) -> Array:
    matrix = np.array(given, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"the {name} must be square, with at least one column")
    if not np.isfinite(matrix).all():
        raise ValueError(f"the {name} must be finite")
    if np.abs(matrix - matrix.T).max() > 1e-10 * np.abs(matrix).max():
        raise ValueError(f"the {name} must be symmetric")
    halves: Array = matrix / 2 + matrix.T / 2
    return halves
