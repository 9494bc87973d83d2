"""Where the graphical lasso has no minimiser: the error, and the penalty that would do."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.solvers.block import is_positive_definite, soft_threshold
from gramercy.estimators.solvers.problem import Problem
from gramercy.schemas.errors import NoMinimiser

Array = NDArray[np.float64]

_SPARE = 1e-3  # share of the diagonal by which a feasible matrix stays clear of singular


def no_minimiser(problem: Problem, direction: Array) -> NoMinimiser:
    """The error, with `direction`, which proves it, and a penalty that has a minimiser."""
    S, penalties = problem.S, problem.penalties
    feasible = least_multiple(S, penalties)
    if not feasible:
        bare = (np.diagonal(S) <= 0) & (np.diagonal(penalties) == 0)
        mend = (
            "Penalise the diagonal too (penalize_diagonal: true), with a larger penalty"
            if bare.any()
            else "Penalise every entry off the diagonal"
        )
    elif isinstance(problem.penalty, float):
        feasible *= problem.penalty
        mend = f"Use a penalty of {feasible:.6g} or more"
    else:
        mend = f"Multiply the penalties by {feasible:.6g} or more"
    error = NoMinimiser(
        f"The graphical lasso has no minimiser at {problem.spoken}: the matrix is too far from "
        "positive definite.",
        f"{mend}, or the denoised matrix.",
    )
    error.certificate = direction
    error.feasible = feasible
    return error


def least_multiple(S: Array, penalties: Array) -> float:
    """The least multiple of the penalties at which soft-thresholded S is clearly definite.

    That matrix lies in the dual problem's box, so with it, and with more, there is a minimiser.
    Zero if there is no such multiple.
    """
    diagonal, added = np.diag(np.diagonal(S)), np.diag(np.diagonal(penalties))
    least = float(penalties.min(initial=math.inf, where=penalties > 0))
    below, above = 0.0, 2 * float(np.abs(S).max()) / least

    def works(multiple: float) -> bool:
        kept = (1 - _SPARE) * (diagonal + multiple * added)
        return is_positive_definite(soft_threshold(S - diagonal, multiple * penalties) + kept)

    if not math.isfinite(above) or not works(above):
        return 0.0
    for _ in range(60):
        middle = (below + above) / 2
        below, above = (below, middle) if works(middle) else (middle, above)
    return above
