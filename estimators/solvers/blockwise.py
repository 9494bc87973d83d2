"""Solve a graphical lasso block by block: scaling, components, choice of solver, assembly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.solvers.admm import admm
from gramercy.estimators.solvers.block import (
    ROUNDING,
    BlockSolver,
    Outcome,
    WarmStart,
    slope,
    submatrix,
)
from gramercy.estimators.solvers.coordinate_descent import coordinate_descent
from gramercy.estimators.solvers.feasible import no_minimiser
from gramercy.estimators.solvers.glasso_problem import GlassoProblem, UnitScaling
from gramercy.estimators.solvers.newton import newton
from gramercy.estimators.solvers.screening import components, solve_pair, solve_unpenalised
from gramercy.schemas.errors import RequestError
from gramercy.schemas.problems import estimation as problems

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Solver = Literal["auto", "newton", "admm", "coordinate-descent"]

_CLOSED = "closed-form"  # blocks of one or two columns, and blocks without penalties
# A new solver needs a line here, in `_LIMITS` and in `Solver`.
_SOLVERS: Mapping[str, BlockSolver] = {
    "newton": newton,
    "admm": admm,
    "coordinate-descent": coordinate_descent,
}
_LIMITS = {"newton": 50, "admm": 20_000, "coordinate-descent": 1000}  # iterations
_MIN_DIAGONAL = 1e-300
_SMALL = 32  # columns up to which ADMM is faster than loading compiled code


@dataclass(frozen=True)
class Solution:
    """A minimiser with a proven accuracy.

    Parameters
    ----------
    precision
        Symmetric, positive definite, with exact zeros, shape (p, p).
    gap
        Duality gap per column: the objective exceeds its minimum by at most p times this. Not
        negative, up to rounding.
    iterations
        Largest number of iterations of a block.
    penalty
        The penalty: a number, or a symmetric matrix with zeros on the diagonal unless that is
        penalised.
    solver
        ``newton``, ``admm`` or ``coordinate-descent``; several, separated by commas, if blocks were
        solved by different solvers; ``closed-form`` if no block needed one: one or two columns, or
        no penalties.
    """

    precision: Array
    gap: float
    iterations: int
    penalty: float | Array
    solver: str


@dataclass(frozen=True)
class PathState:
    """Warm start for a problem with the same S, and penalties that are not larger.

    Parameters
    ----------
    scaling
        The scaling of `start`.
    start
        The minimiser.
    connected
        Whether the graph was connected; then it also is at smaller penalties.
    """

    scaling: UnitScaling
    start: WarmStart
    connected: bool


def solve(
    problem: GlassoProblem,
    solver: Solver,
    tol: float,
    state: PathState | None = None,
    conditions: bool = True,
) -> tuple[Solution, PathState]:
    """See `estimators.solvers.glasso.graphical_lasso`; also returns a warm start."""
    if not 0 < tol < math.inf:
        raise problems.not_positive("tol")
    if solver != "auto" and solver not in _SOLVERS:
        raise problems.unknown_solver(("auto", *_SOLVERS))
    p, diagonal = len(problem.S), problem.diagonal()
    if diagonal.min() <= 0:
        smallest = diagonal == diagonal.min()
        raise no_minimiser(problem, np.diag(smallest / smallest.sum()))
    if diagonal.min() < _MIN_DIAGONAL:
        raise _not_converged(problem)
    scaling, start = _warm_start(state, problem.S, diagonal)
    if scaling.overflows:
        raise _not_converged(problem)
    penalties = scaling.penalties(problem.penalty)
    one_block = [np.arange(p)]
    blocks = one_block if state and state.connected else components(scaling.unit, penalties)
    if solver == "auto":
        solver = "admm" if p <= _SMALL else "newton"
    solved: list[tuple[Indices, Outcome]] = []
    names = set()
    for block in blocks:
        is_single = block.size == p
        outcome, name = _solve_block(
            scaling.unit if is_single else submatrix(scaling.unit, block),
            penalties if is_single else submatrix(penalties, block),
            solver,
            tol,
            start if is_single or start is None else start.restricted_to(block),
            conditions,
        )
        if outcome.kind != "minimiser":
            raise _failure(problem, scaling, block, outcome)
        solved.append((block, outcome))
        names.add(name)
    end = _assembled(p, solved)
    precision = end.matrix / scaling.scale
    precision += 0.0  # no negative zeros
    solution = Solution(
        precision,
        sum(outcome.gap for _, outcome in solved) / p,
        max((outcome.iterations for _, outcome in solved), default=0),
        problem.penalty,
        ", ".join(sorted(names - {_CLOSED}, reverse=True)) or _CLOSED,
    )
    return solution, PathState(scaling, end, len(blocks) == 1 and blocks[0].size == p)


def _warm_start(
    state: PathState | None, S: Array, diagonal: Array
) -> tuple[UnitScaling, WarmStart | None]:
    """The scaling, and the starting point in it."""
    if state is None:
        return UnitScaling(S, diagonal), None
    if (state.scaling.diagonal == diagonal).all():
        return state.scaling, state.start
    scaling = UnitScaling(S, diagonal)
    return scaling, state.start.scaled(state.scaling.scale / scaling.scale)


def _solve_block(
    S: Array,
    penalties: Array,
    solver: Solver,
    tol: float,
    start: WarmStart | None,
    conditions: bool,
) -> tuple[Outcome, str]:
    """The outcome for a component of two columns or more, and the name of its solver."""
    if len(S) == 2:
        return solve_pair(S, penalties), _CLOSED
    if not penalties.any():
        return solve_unpenalised(S, tol, conditions), _CLOSED
    outcome = _SOLVERS[solver](S, penalties, tol, _LIMITS[solver], start, conditions)
    if outcome.kind != "unconverged":
        return outcome, solver
    # For a nearly singular matrix coordinate descent is the most robust. An indefinite one may not
    # have a minimiser, and ADMM finds the certificate.
    definite = np.linalg.eigvalsh(S)[0] > -ROUNDING * len(S) ** 2
    fallbacks = ["coordinate-descent", "admm"] if definite else ["admm", "coordinate-descent"]
    name: str = solver
    for name in (fallback for fallback in fallbacks if fallback != solver):
        outcome = _SOLVERS[name](S, penalties, tol, _LIMITS[name], start, conditions)
        if outcome.kind != "unconverged":
            break
    return outcome, name


def _assembled(p: int, solved: list[tuple[Indices, Outcome]]) -> WarmStart:
    """Assemble the blocks, with ones on the diagonal for isolated columns."""
    matrix, dual, log_pivots = np.eye(p), np.eye(p), np.zeros(p)
    for block, outcome in solved:
        inverse = outcome.dual if outcome.inverse is None else outcome.inverse
        if block.size == p:
            assert inverse is not None  # noqa: S101  for mypy: a minimiser has one of them
            return WarmStart(outcome.matrix, inverse, outcome.log_pivots)
        for full, part in ((matrix, outcome.matrix), (dual, inverse)):
            rows = full[block]
            rows[:, block] = part
            full[block] = rows
        if outcome.log_pivots is not None:
            log_pivots[block] = outcome.log_pivots
    exact = all(outcome.log_pivots is not None for _, outcome in solved)
    return WarmStart(matrix, dual, log_pivots if exact else None)


def _failure(
    problem: GlassoProblem, scaling: UnitScaling, block: Indices, outcome: Outcome
) -> RequestError:
    """The error for a block that was not solved."""
    if outcome.kind == "unbounded":
        direction = np.zeros_like(problem.S)
        direction[np.ix_(block, block)] = outcome.matrix
        direction /= scaling.scale
        direction /= np.trace(direction)
        S = problem.S.copy()
        np.fill_diagonal(S, problem.diagonal())
        # Check the certificate again in the caller's units, to be sure of the refusal.
        with np.errstate(over="ignore"):
            proven = slope(S, problem.penalties, direction) <= 0
        if proven:
            return no_minimiser(problem, direction)
    return _not_converged(problem)


def _not_converged(problem: GlassoProblem) -> RequestError:
    if isinstance(problem.penalty, float):
        return problems.not_converged(problem.penalty)
    return problems.not_converged_at_penalties(*problem.penalty_range)
