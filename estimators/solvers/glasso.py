"""The graphical lasso as a function, with an honest answer.

Su, Guo and Zhang (2020), Algorithm 2; Friedman, Hastie and Tibshirani (2008):

minimise over positive definite T:  -log det T + tr(S T) + sum of penalty_ij |T_ij|

The sum is over i != j, or over all entries with ``penalize_diagonal``: the same problem with the
diagonal's penalties added to S. S may be indefinite; then there may be no minimiser, and that is
said, with a proof.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.common.machine import one_blas_thread
from gramercy.estimators.solvers.blockwise import Solution, Solver, solve
from gramercy.estimators.solvers.problem import Problem, symmetric

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
        Positive; or a symmetric matrix of penalties, not negative, shape (p, p). An entry whose
        penalty is zero is fitted exactly: the inverse of the minimiser has that of S.
    penalize_diagonal
        Whether the penalty covers the diagonal too; scikit-learn's does not. The diagonal of a
        matrix of penalties is used only then.
    solver
        ``newton``; ``admm``; ``coordinate-descent``, as in the papers: slower. Where the one that
        is named has no answer the others are asked. ``auto``: Newton, or ADMM where there are so
        few columns that nothing needs to be compiled.
    tol
        Largest duality gap per column.

    Raises
    ------
    ValueError
        If S is not a finite symmetric matrix, a penalty or `tol` makes no sense, or there is no
        such solver.
    NoMinimiser
        If there is none. Raised only with a certificate that has been checked. Its `feasible` is a
        penalty that has one, or, for a matrix of penalties, by what to multiply them; zero where
        none of either does.
    RequestError
        If neither a minimiser nor a certificate was found: the penalty is at the very edge, or so
        small that the minimiser is nearly singular.

    Notes
    -----
    Everything is scaled to a unit diagonal first, which makes columns of unlike size as quick as
    any, and taken apart into connected components: see `estimators.solvers.screening`.
    """
    problem = Problem.checked(symmetric(S), penalty, penalize_diagonal)
    with one_blas_thread():
        return solve(problem, solver, tol)[0]
