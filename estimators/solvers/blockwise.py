"""One graphical lasso, block by block: units, components, who solves each, and what that makes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.solvers.admm import admm
from gramercy.estimators.solvers.block import ROUNDING, BlockSolver, Outcome, Start, slope, within
from gramercy.estimators.solvers.coordinate_descent import coordinate_descent
from gramercy.estimators.solvers.feasible import no_minimiser
from gramercy.estimators.solvers.newton import newton
from gramercy.estimators.solvers.problem import Frame, Problem
from gramercy.estimators.solvers.screening import components, pair
from gramercy.schemas.errors import RequestError

Array = NDArray[np.float64]
Places = NDArray[np.intp]
Solver = Literal["auto", "newton", "admm", "coordinate-descent"]

_CLOSED = "closed-form"  # blocks of one or two columns
# A new solver is one line here and below, and in `Solver`.
_SOLVERS: Mapping[str, BlockSolver] = {
    "newton": newton,
    "admm": admm,
    "coordinate-descent": coordinate_descent,
}
_LIMITS = {"newton": 50, "admm": 20_000, "coordinate-descent": 1000}  # iterations
_LEAST = 1e-300  # on the diagonal
_SMALL = 32  # columns up to which ADMM takes less than it takes to load what is compiled


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
        The penalty in force: the number that was given, or a matrix, symmetric, with zeros on the
        diagonal unless that is penalised.
    solver
        Who found it: ``newton``, ``admm``, ``coordinate-descent``; several, with commas, where a
        block was left to another; ``closed-form`` where no block needed any.
    """

    precision: Array
    gap: float
    iterations: int
    penalty: float | Array
    solver: str


@dataclass(frozen=True)
class State:
    """Where the next problem of the same S may begin, if none of its penalties is larger.

    Parameters
    ----------
    frame
        The units of the rest.
    start
        The minimiser.
    connected
        Whether there was one component only: there is one for smaller penalties too.
    """

    frame: Frame
    start: Start
    connected: bool


def solve(
    problem: Problem,
    solver: Solver,
    tol: float,
    state: State | None = None,
    conditions: bool = True,
) -> tuple[Solution, State]:
    """See `estimators.solvers.glasso.graphical_lasso`; and where the next problem may begin."""
    if not 0 < tol < math.inf:
        raise ValueError("tol must be positive and finite")
    if solver != "auto" and solver not in _SOLVERS:
        raise ValueError(f"the solver must be one of auto, {', '.join(_SOLVERS)}")
    p, diagonal = len(problem.S), problem.diagonal()
    if diagonal.min() <= 0:
        least = diagonal == diagonal.min()
        raise no_minimiser(problem, np.diag(least / least.sum()))
    if diagonal.min() < _LEAST:
        raise _unsettled(problem)
    frame, start = _taken_up(state, problem.S, diagonal)
    if frame.is_hopeless:
        raise _unsettled(problem)
    penalties = frame.penalties(problem.penalty)
    every = [np.arange(p)]
    blocks = every if state and state.connected else components(frame.unit, penalties)
    if solver == "auto":
        solver = "admm" if p <= _SMALL else "newton"
    solved: list[tuple[Places, Outcome]] = []
    names = set()
    for block in blocks:
        whole = block.size == p
        found, name = _solved(
            frame.unit if whole else within(frame.unit, block),
            penalties if whole else within(penalties, block),
            solver,
            tol,
            start if whole or start is None else start.of(block),
            conditions,
        )
        if found.kind != "minimiser":
            raise _refusal(problem, frame, block, found)
        solved.append((block, found))
        names.add(name)
    end = _joined(p, solved)
    precision = end.matrix / frame.scale
    precision += 0.0  # no negative zeros
    solution = Solution(
        precision,
        sum(found.gap for _, found in solved) / p,
        max((found.iterations for _, found in solved), default=0),
        problem.penalty,
        ", ".join(sorted(names - {_CLOSED}, reverse=True)) or _CLOSED,
    )
    return solution, State(frame, end, len(blocks) == 1 and blocks[0].size == p)


def _taken_up(state: State | None, S: Array, diagonal: Array) -> tuple[Frame, Start | None]:
    """The units, and in them where to begin."""
    if state is None:
        return Frame(S, diagonal), None
    if (state.frame.diagonal == diagonal).all():
        return state.frame, state.start
    frame = Frame(S, diagonal)
    return frame, state.start.scaled(state.frame.scale / frame.scale)


def _solved(
    S: Array,
    penalties: Array,
    solver: Solver,
    tol: float,
    start: Start | None,
    conditions: bool,
) -> tuple[Outcome, str]:
    """One component of two columns or more, and who solved it."""
    if len(S) == 2:
        return pair(S, penalties), _CLOSED
    found = _SOLVERS[solver](S, penalties, tol, _LIMITS[solver], start, conditions)
    if found.kind != "unsettled":
        return found, solver
    # Of a matrix that is nearly singular coordinate descent gets there in the end; of one that is
    # indefinite there may be no minimiser, and ADMM finds the proof.
    definite = np.linalg.eigvalsh(S)[0] > -ROUNDING * len(S) ** 2
    others = ["coordinate-descent", "admm"] if definite else ["admm", "coordinate-descent"]
    name: str = solver
    for name in (each for each in others if each != solver):
        found = _SOLVERS[name](S, penalties, tol, _LIMITS[name], start, conditions)
        if found.kind != "unsettled":
            break
    return found, name


def _joined(p: int, solved: list[tuple[Places, Outcome]]) -> Start:
    """The blocks, and ones on the diagonal for columns that stand alone."""
    matrix, dual, logs = np.eye(p), np.eye(p), np.zeros(p)
    for block, found in solved:
        near = found.dual if found.inverse is None else found.inverse
        if block.size == p:
            assert near is not None  # a minimiser has one of them
            return Start(found.matrix, near, found.logs)
        for into, part in ((matrix, found.matrix), (dual, near)):
            rows = into[block]
            rows[:, block] = part
            into[block] = rows
        if found.logs is not None:
            logs[block] = found.logs
    exact = all(found.logs is not None for _, found in solved)
    return Start(matrix, dual, logs if exact else None)


def _refusal(problem: Problem, frame: Frame, block: Places, found: Outcome) -> RequestError:
    """Why there is no solution, by what a block has of it."""
    if found.kind == "unbounded":
        direction = np.zeros_like(problem.S)
        direction[np.ix_(block, block)] = found.matrix
        direction /= frame.scale
        direction /= np.trace(direction)
        S = problem.S.copy()
        np.fill_diagonal(S, problem.diagonal())
        # Once more, in the caller's units: a wrong refusal is worse than none.
        with np.errstate(over="ignore"):
            proven = slope(S, problem.penalties, direction) <= 0
        if proven:
            return no_minimiser(problem, direction)
    return _unsettled(problem)


def _unsettled(problem: Problem) -> RequestError:
    return RequestError(
        f"The graphical lasso did not settle at {problem.spoken}: too near to singular.",
        "Use a larger penalty."
        if isinstance(problem.penalty, float)
        else "Use larger penalties, also for pairs of like columns.",
    )
