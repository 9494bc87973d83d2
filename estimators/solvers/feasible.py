"""The error for a graphical lasso without a minimiser, and a penalty that has one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.solvers.block import is_positive_definite, soft_threshold
from gramercy.estimators.solvers.glasso_problem import GlassoProblem
from gramercy.schemas.errors import NoMinimiser
from gramercy.schemas.problems import estimation as problems

Array = NDArray[np.float64]

_MARGIN = 1e-3  # share of the diagonal by which a feasible matrix must be positive definite


def no_minimiser(problem: GlassoProblem, direction: Array) -> NoMinimiser:
    """The error with its certificate, `direction`, and a penalty that has a minimiser."""
    S, penalties = problem.S, problem.penalties
    feasible = feasible_multiple(S, penalties)
    if not feasible:
        of_diagonal = (np.diagonal(S) <= 0) & (np.diagonal(penalties) == 0)
        error = (
            problems.diagonal_not_penalised()
            if of_diagonal.any()
            else problems.entries_not_penalised()
        )
    elif isinstance(problem.penalty, float):
        feasible *= problem.penalty
        error = problems.no_minimiser(problem.penalty, feasible)
    else:
        error = problems.no_minimiser_of_penalties(*problem.penalty_range, feasible)
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
