"""The graphical lasso as a function: checks, blocks, solvers, and an honest answer.

Su, Guo and Zhang (2020), Algorithm 2; Friedman, Hastie and Tibshirani (2008):

minimise over positive definite T:  -log det T + tr(S T) + sum of penalty_ij |T_ij|

The sum is over i != j, or over all entries with ``penalize_diagonal``: the same problem with the
diagonal's penalties added to S. S may be indefinite; then there may be no minimiser, and that is
said, with a proof.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from estimators.solvers.admm import admm
from estimators.solvers.block import (
    BlockSolver,
    Outcome,
    Start,
    certificate,
    duality_gap,
    is_positive_definite,
    slope,
)
from estimators.solvers.coordinate_descent import coordinate_descent
from estimators.solvers.feasible import no_minimiser
from estimators.solvers.problem import Problem
from schemas.errors import RequestError

Array = NDArray[np.float64]
Solver = Literal["auto", "admm", "coordinate-descent"]

_CLOSED = "closed-form"  # blocks of one or two columns
# A new solver is one line here, and its place in the orders below.
_SOLVERS: Mapping[str, BlockSolver] = {"admm": admm, "coordinate-descent": coordinate_descent}
_LIMITS = {"admm": 20_000, "coordinate-descent": 200}  # iterations
# Who is tried, in turn, until one knows: the last has to be able to prove that there is nothing.
_ORDER: Mapping[Solver, tuple[str, ...]] = {
    "auto": ("admm",),
    "admm": ("admm",),
    "coordinate-descent": ("coordinate-descent", "admm"),
}


@dataclass(frozen=True)
class Solution:
    """A minimiser, and how near to the true one it is known to be.

    Parameters
    ----------
    precision
        Symmetric, positive definite, with exact zeros, shape (p, p).
    gap
        Duality gap per column: the objective exceeds its least value by at most p times this.
        Not below zero, but for rounding.
    iterations
        Of the block that took the most.
    penalty
        The penalty in force.
    solver
        Who found it: ``admm``, ``coordinate-descent``; both, with a comma, where a block was left
        to the other; ``closed-form`` where no block needed either.
    """

    precision: Array
    gap: float
    iterations: int
    penalty: float | Array
    solver: str


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
        ``admm``; ``coordinate-descent``, as in the papers: slower, and where it has no answer
        ADMM is asked; ``auto``: the quickest there is, now ADMM.
    tol
        Largest duality gap per column.

    Raises
    ------
    ValueError
        If S is not a finite symmetric matrix, a penalty or `tol` makes no sense, or there is no
        such solver.
    NoMinimiser
        If there is none. Raised only with a certificate that has been checked. Its `feasible` is a
        penalty that has one, or, for a matrix of penalties, by what to multiply them.
    RequestError
        If neither a minimiser nor a certificate was found: the penalty is at the very edge.

    Notes
    -----
    Rows and columns that no |S_ij| > penalty_ij connects are independent in the minimiser, so each
    connected component is solved alone (Witten et al. 2011; Mazumder and Hastie 2012: exact), and
    scaled to a unit diagonal first, which makes the penalty differ by entry and columns of
    unlike size as quick as any (2 to 20 times fewer iterations, for scales from 1 to 1/p).
    """
    return solve(Problem.checked(S, penalty, penalize_diagonal), solver, tol)[0]


def solve(
    problem: Problem, solver: Solver, tol: float, start: Start | None = None
) -> tuple[Solution, Start]:
    """See `graphical_lasso`; and where the next problem, if it is like this one, may begin."""
    if not 0 < tol < math.inf:
        raise ValueError("tol must be positive and finite")
    if solver not in _ORDER:
        raise ValueError(f"the solver must be one of {', '.join(_ORDER)}")
    added = np.diag(np.diagonal(problem.penalties))
    matrix, bounds = problem.S + added, problem.penalties - added
    precision, dual = np.zeros_like(matrix), np.zeros_like(matrix)
    gap, iterations, names = 0.0, 0, set[str]()
    for block in _components(np.abs(matrix) > bounds):
        here = np.ix_(block, block)
        begin = start and Start(start.matrix[here], start.dual[here])
        found, name = _solve(matrix[here], bounds[here], _ORDER[solver], tol, begin)
        if found.kind == "minimiser":
            precision[here], dual[here] = found.matrix, found.dual
            gap, iterations = gap + found.gap, max(iterations, found.iterations)
            names.add(name)
            continue
        if found.kind == "unbounded":
            direction = np.zeros_like(matrix)
            direction[here] = found.matrix / np.trace(found.matrix)
            # Once more, in the caller's units: a wrong refusal is worse than none.
            if slope(matrix, bounds, direction) <= 0:
                raise no_minimiser(problem, direction)
        raise RequestError(
            f"The graphical lasso did not settle at {problem.spoken}: too near to singular.",
            "Use a larger penalty.",
        )
    precision += 0.0  # no negative zeros
    told = ", ".join(sorted(names - {_CLOSED}, reverse=True)) or _CLOSED
    solution = Solution(precision, gap / len(matrix), iterations, problem.penalty, told)
    return solution, Start(precision, dual)


def _solve(
    block: Array, bounds: Array, order: tuple[str, ...], tol: float, start: Start | None
) -> tuple[Outcome, str]:
    """One connected component, in its own units, and who solved it."""
    diagonal = np.diagonal(block)
    if diagonal.min() <= 0:
        least = np.diag((diagonal == diagonal.min()) * 1.0)
        return Outcome("unbounded", least, math.inf, 0), _CLOSED
    if diagonal.min() < max(1e-300, 1e-100 * float(np.abs(block).max())):  # would overflow
        return Outcome("unsettled", block, math.inf, 0), _CLOSED
    if len(block) == 1:
        return Outcome("minimiser", 1 / block, 0.0, 0, block), _CLOSED
    root = np.sqrt(diagonal)
    scale = np.outer(root, root)
    unit, name = block / scale, _CLOSED
    np.fill_diagonal(unit, 1.0)
    if len(block) == 2:
        found = _pair(unit, bounds / scale)
    else:
        begin = start and Start(start.matrix * scale, start.dual / scale)
        for name in order:
            found = _SOLVERS[name](unit, bounds / scale, tol, _LIMITS[name], begin)
            if found.kind != "unsettled":
                break
    dual = None if found.dual is None else found.dual * scale
    return replace(found, matrix=found.matrix / scale, dual=dual), name


def _pair(S: Array, bounds: Array) -> Outcome:
    """Two columns, connected: W_12 is the point of its interval that is nearest to zero."""
    sign, w = math.copysign(1.0, S[0, 1]), abs(S[0, 1]) - bounds[0, 1]
    proof = certificate(S, bounds, np.array([[1.0, -sign], [-sign, 1.0]]))
    if proof is not None:
        return Outcome("unbounded", proof, math.inf, 0)
    if not w < 1:
        return Outcome("unsettled", S, math.inf, 0)
    T = np.array([[1.0, -sign * w], [-sign * w, 1.0]]) / ((1 - w) * (1 + w))
    if not is_positive_definite(T):
        return Outcome("unsettled", S, math.inf, 0)
    W = np.array([[1.0, sign * w], [sign * w, 1.0]])
    return Outcome("minimiser", T, duality_gap(T, W), 0, W)


def _components(linked: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    count, labels = connected_components(linked, directed=False)
    return [np.flatnonzero(labels == label) for label in range(count)]
