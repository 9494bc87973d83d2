"""What a graphical lasso is asked: a matrix, and what each of its entries costs, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

_FORBIDDING = 1e150  # a penalty that no entry can pay; of larger ones no sum would be finite
_HOPELESS = 1e100  # an entry so large, on a unit diagonal, would overflow when it is squared


def symmetric(given: ArrayLike, name: str = "matrix") -> Array:
    """It, symmetric to the last digit; raises ValueError unless it is so but for rounding."""
    matrix = _real(given, name)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"the {name} must be square, with at least one column")
    if not np.isfinite(matrix).all():
        raise ValueError(f"the {name} must be finite")
    if np.abs(matrix - matrix.T).max() > 1e-10 * np.abs(matrix).max():
        raise ValueError(f"the {name} must be symmetric")
    halves: Array = matrix / 2 + matrix.T / 2
    return halves


def _real(given: ArrayLike, name: str) -> Array:
    if np.iscomplexobj(given):
        raise ValueError(f"the {name} must be real")
    return np.array(given, dtype=np.float64)


@dataclass(frozen=True)
class Problem:
    """One graphical lasso.

    Parameters
    ----------
    S
        Symmetric, shape (p, p).
    penalty
        As the caller put it: one number, or a matrix, symmetric.
    penalize_diagonal
        Whether it covers the diagonal.
    """

    S: Array
    penalty: float | Array
    penalize_diagonal: bool

    @classmethod
    def checked(cls, S: Array, penalty: ArrayLike, penalize_diagonal: bool) -> Problem:
        """Of a matrix that is `symmetric`. Raises ValueError if the penalty makes no sense."""
        if np.ndim(penalty) == 0:
            number = float(_real(penalty, "penalty"))
            if not 0 < number < math.inf:
                raise ValueError("the penalty must be positive and finite")
            return cls(S, number, penalize_diagonal)
        given = _real(penalty, "matrix of penalties")
        if given.shape != S.shape:
            raise ValueError("the matrix of penalties must have the shape of the matrix")
        if not penalize_diagonal:
            np.fill_diagonal(given, 0.0)  # whatever it was
        given = symmetric(given, "matrix of penalties")
        if given.min() < 0:
            raise ValueError("no penalty may be negative")
        return cls(S, given, penalize_diagonal)

    @property
    def penalties(self) -> Array:
        """Of every entry, not negative, zero on the diagonal unless it is penalised; (p, p)."""
        every = np.full_like(self.S, self.penalty)
        if not self.penalize_diagonal:
            np.fill_diagonal(every, 0.0)
        return every

    def is_below(self, other: Problem) -> bool:
        """Whether some entry is cheaper than in another problem."""
        if isinstance(self.penalty, float) and isinstance(other.penalty, float):
            return self.penalty < other.penalty
        return bool((self.penalties < other.penalties).any())

    @property
    def spoken(self) -> str:
        """The penalty, in an error's words."""
        if isinstance(self.penalty, float):
            return f"penalty {self.penalty:g}"
        off = self.penalties[~np.eye(len(self.S), dtype=bool)]
        return f"penalties of {off.min(initial=math.inf):g} to {off.max(initial=0.0):g}"

    def diagonal(self) -> Array:
        """Of S, with its penalties, since entries on it are positive; shape (p,)."""
        diagonal: Array = np.diagonal(self.S).copy()
        if self.penalize_diagonal:
            number = isinstance(self.penalty, float)
            diagonal += self.penalty if number else np.diagonal(self.penalty)
        return diagonal


@dataclass(frozen=True)
class Frame:
    """A matrix scaled to a unit diagonal: columns of unlike size then are as quick as any.

    Parameters
    ----------
    matrix
        Symmetric, shape (p, p).
    diagonal
        What is to be one, positive, shape (p,); it replaces the diagonal of the matrix.
    """

    matrix: Array
    diagonal: Array

    @cached_property
    def scale(self) -> Array:
        """What entries are divided by, and those of the inverse are multiplied by; (p, p)."""
        root = np.sqrt(self.diagonal)
        found: Array = np.outer(root, root)
        np.fill_diagonal(found, self.diagonal)  # to the last digit
        return found

    @cached_property
    def per_unit(self) -> Array:
        """What one unit of penalty is; zero on the diagonal, shape (p, p)."""
        found: Array = 1 / self.scale
        np.fill_diagonal(found, 0.0)
        return found

    @cached_property
    def unit(self) -> Array:
        """The matrix with a unit diagonal, shape (p, p)."""
        with np.errstate(over="ignore"):  # what is infinite is hopeless
            unit: Array = self.matrix / self.scale
        np.fill_diagonal(unit, 1.0)
        return unit

    def penalties(self, penalty: float | Array) -> Array:
        """In its units; zero on the diagonal, shape (p, p)."""
        with np.errstate(over="ignore"):
            return np.minimum(penalty * self.per_unit, _FORBIDDING)

    @cached_property
    def is_hopeless(self) -> bool:
        """Whether numbers would overflow."""
        return not np.abs(self.unit).max() < _HOPELESS
