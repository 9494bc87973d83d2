"""A graphical lasso problem: validated and scaled; and the error for one without a minimiser."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramercy.estimators.solvers.block import (
    checked_symmetric,
    is_positive_definite,
    real_array,
    soft_threshold,
)
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import NoMinimiser

Array = NDArray[np.float64]

_MAX_PENALTY = 1e150  # forces an entry to zero; sums of larger penalties could overflow
_MARGIN = 1e-3  # share of the diagonal by which a feasible matrix must be positive definite
_MAX_ENTRY = 1e100  # larger entries, on a unit diagonal, would overflow when squared


@dataclass(frozen=True)
class GlassoProblem:
    """A graphical lasso problem."""

    S: Array  # symmetric, shape (p, p)
    penalty: float | Array  # one number, or a symmetric matrix
    penalize_diagonal: bool  # whether the penalty applies to the diagonal

    @classmethod
    def checked(cls, S: Array, penalty: ArrayLike, penalize_diagonal: bool) -> GlassoProblem:
        """The problem with a validated penalty; `S` is from `checked_symmetric`."""
        if np.ndim(penalty) == 0:
            number = float(real_array(penalty, "penalty"))
            if not math.isfinite(number):
                raise wordings.not_finite("penalty")
            if number < 0:
                raise wordings.negative_entries("penalty")
            return cls(S, number, penalize_diagonal)
        given = real_array(penalty, "penalty")
        if given.shape != S.shape:
            raise wordings.shapes_differ("penalty", "S")
        if not penalize_diagonal:
            np.fill_diagonal(given, 0.0)
        given = checked_symmetric(given, "penalty")
        if given.min() < 0:
            raise wordings.negative_entries("penalty")
        return cls(S, given, penalize_diagonal)

    @property
    def penalties(self) -> Array:
        """Penalties of all entries; zero on the diagonal unless it is penalised; shape (p, p)."""
        penalties = np.full_like(self.S, self.penalty)
        if not self.penalize_diagonal:
            np.fill_diagonal(penalties, 0.0)
        return penalties

    def is_below(self, other: GlassoProblem) -> bool:
        """Whether some entry has a smaller penalty than in another problem."""
        if isinstance(self.penalty, float) and isinstance(other.penalty, float):
            return self.penalty < other.penalty
        return bool((self.penalties < other.penalties).any())

    @property
    def penalty_range(self) -> tuple[float, float]:
        """The smallest and the largest penalty off the diagonal."""
        off = self.penalties[~np.eye(len(self.S), dtype=bool)]
        return float(off.min(initial=math.inf)), float(off.max(initial=0.0))

    def diagonal(self) -> Array:
        """Diagonal of S plus its penalties, shape (p,)."""
        diagonal: Array = np.diagonal(self.S).copy()
        if self.penalize_diagonal:
            is_number = isinstance(self.penalty, float)
            diagonal += self.penalty if is_number else np.diagonal(self.penalty)
        return diagonal


@dataclass(frozen=True)
class UnitScaling:
    """A matrix scaled to a unit diagonal."""

    matrix: Array  # symmetric, shape (p, p)
    diagonal: Array  # replaces the diagonal of the matrix and is scaled to 1; positive, shape (p,)

    @cached_property
    def scale(self) -> Array:
        """Divisors of the entries, and factors of those of the inverse; shape (p, p)."""
        root = np.sqrt(self.diagonal)
        scale: Array = np.outer(root, root)
        np.fill_diagonal(scale, self.diagonal)  # exact, without the rounding of the roots
        return scale

    @cached_property
    def penalty_scale(self) -> Array:
        """Factors that scale a penalty; zero on the diagonal, shape (p, p)."""
        factors: Array = 1 / self.scale
        np.fill_diagonal(factors, 0.0)
        return factors

    @cached_property
    def unit(self) -> Array:
        """The matrix with a unit diagonal, shape (p, p)."""
        with np.errstate(over="ignore"):  # see `overflows`
            unit: Array = self.matrix / self.scale
        np.fill_diagonal(unit, 1.0)
        return unit

    def penalties(self, penalty: float | Array) -> Array:
        """The scaled penalties; zero on the diagonal, shape (p, p)."""
        with np.errstate(over="ignore"):
            return np.minimum(penalty * self.penalty_scale, _MAX_PENALTY)

    @cached_property
    def overflows(self) -> bool:
        """Whether the solvers would overflow."""
        return not np.abs(self.unit).max() < _MAX_ENTRY


def no_minimiser(problem: GlassoProblem, direction: Array) -> NoMinimiser:
    """The error with its certificate, `direction`, and a penalty that has a minimiser."""
    S, penalties = problem.S, problem.penalties
    feasible = feasible_multiple(S, penalties)
    if not feasible:
        of_diagonal = (np.diagonal(S) <= 0) & (np.diagonal(penalties) == 0)
        error = (
            families.NO_MINIMISER(
                "The graphical lasso has no minimiser: a diagonal entry of the matrix "
                "is not positive and not penalised.",
                "Penalise the diagonal too (penalize_diagonal: true), with a larger "
                "penalty, or use the denoised matrix.",
            )
            if of_diagonal.any()
            else families.NO_MINIMISER(
                "The graphical lasso has no minimiser: the matrix is too far from "
                "positive definite, and some entries are not penalised.",
                "Penalise every entry off the diagonal, or use the denoised matrix.",
            )
        )
    elif isinstance(problem.penalty, float):
        feasible *= problem.penalty
        error = families.NO_MINIMISER(
            "The graphical lasso has no minimiser at penalty {penalty:g}: the matrix "
            "is too far from positive definite.",
            "Use a penalty of {feasible:.6g} or more, or the denoised matrix.",
            penalty=problem.penalty,
            feasible=feasible,
        )
    else:
        smallest, largest = problem.penalty_range
        error = families.NO_MINIMISER(
            "The graphical lasso has no minimiser at penalties from {smallest:g} to {largest:g}: "
            "the matrix is too far from positive definite.",
            "Multiply the penalties by {factor:.6g} or more, or use the denoised matrix.",
            smallest=smallest,
            largest=largest,
            factor=feasible,
        )
    error.certificate = direction
    error.feasible = feasible
    return error


def feasible_multiple(S: Array, penalties: Array) -> float:
    """The smallest multiple of the penalties at which soft-thresholded S is positive definite.

    That matrix is in the box of the dual problem, so this multiple and larger ones have a
    minimiser. Zero if such a multiple does not exist.
    """
    diagonal, added = np.diag(np.diagonal(S)), np.diag(np.diagonal(penalties))
    smallest = float(penalties.min(initial=math.inf, where=penalties > 0))
    below, above = 0.0, 2 * float(np.abs(S).max()) / smallest

    def is_feasible(multiple: float) -> bool:
        shrunk = (1 - _MARGIN) * (diagonal + multiple * added)
        return is_positive_definite(soft_threshold(S - diagonal, multiple * penalties) + shrunk)

    if not math.isfinite(above) or not is_feasible(above):
        return 0.0
    for _ in range(60):
        middle = (below + above) / 2
        below, above = (below, middle) if is_feasible(middle) else (middle, above)
    return above
