"""The graphical lasso, with a proven accuracy.

Su, Guo and Zhang (2020), Algorithm 2; Friedman, Hastie and Tibshirani (2008):

minimise over positive definite T:  -log det T + tr(S T) + sum of penalty_ij |T_ij|

The sum is over i != j, or over all entries with ``penalize_diagonal``: the same problem with the
diagonal's penalties added to S. S may be indefinite; then a minimiser may not exist, and the error
carries a proof.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.common.machine import single_blas_thread
from gramercy.estimators.solvers.blockwise import Solution, Solver, solve
from gramercy.estimators.solvers.glasso_problem import GlassoProblem, checked_symmetric

Array = NDArray[np.float64]


def graphical_lasso(
    S: Array,
    penalty: float | Array,
    *,
    penalize_diagonal: bool = False,
    solver: Solver = "auto",
    tol: float = 1e-6,
) -> Solution:
    """The unique minimiser.

    Parameters
    ----------
    S
        Symmetric, shape (p, p); may be indefinite.
    penalty
        Not negative; or a symmetric matrix of such penalties, shape (p, p). An entry with penalty
        zero is fitted exactly: the inverse of the minimiser equals S there. If no entry of a
        connected component has a penalty, its minimiser is the inverse of S, computed directly.
    penalize_diagonal
        Whether the penalty applies to the diagonal, too; in scikit-learn it does not. The diagonal
        of a matrix of penalties is used only then.
    solver
        ``newton``, ``admm``, or ``coordinate-descent``, which is slower. If it does not converge,
        the others are tried. ``auto``: Newton, or ADMM for few columns, which needs no compilation.
    tol
        Upper bound on the duality gap per column. The optimality conditions hold, too: every entry
        of the inverse is within `tol`, or 1e-6 if that is larger, of where they require it, on a
        unit diagonal and up to rounding.

    Raises
    ------
    ValueError
        If S is not a finite symmetric matrix, or a penalty, `tol` or `solver` is invalid.
    NoMinimiser
        If a minimiser does not exist; always with a verified certificate. Its `feasible` is a
        penalty that has a minimiser, or for a matrix of penalties a factor; zero if none is known.
    RequestError
        If neither a minimiser nor a certificate was found: the penalty is at the limit of
        existence, or so small that the minimiser is nearly singular. At penalty zero, S is singular
        to within rounding.

    Notes
    -----
    The matrix is scaled to a unit diagonal first, so that columns of different size do not slow it
    down, and split into connected components; see `estimators.solvers.screening`.
    """
    problem = GlassoProblem.checked(checked_symmetric(S), penalty, penalize_diagonal)
    with single_blas_thread():
        return solve(problem, solver, tol)[0]
