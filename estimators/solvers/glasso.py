"""The graphical lasso, with a proven accuracy: one penalty, or a path of them.

Su, Guo and Zhang (2020), Algorithm 2; Friedman, Hastie and Tibshirani (2008):

minimise over positive definite T:  -log det T + tr(S T) + sum of penalty_ij |T_ij|

The sum is over i != j, or over all entries with ``penalize_diagonal``: the same problem with the
diagonal's penalties added to S. S may be indefinite; then a minimiser may not exist, and the error
carries a proof.

A problem is scaled, split into connected components, and solved by a solver for each or in closed
form: those of one or two columns, and without penalties.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from gramercy.common.machine import single_blas_thread
from gramercy.estimators.solvers.admm import admm
from gramercy.estimators.solvers.block import (
    ROUNDING,
    BlockSolver,
    Outcome,
    WarmStart,
    certificate,
    checked_symmetric,
    duality_gap,
    is_optimal,
    slope,
    submatrix,
)
from gramercy.estimators.solvers.coordinate_descent import coordinate_descent
from gramercy.estimators.solvers.glasso_problem import GlassoProblem, UnitScaling, no_minimiser
from gramercy.estimators.solvers.newton import newton
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import RequestError

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


class Path(list[Solution]):
    """Solutions in the order of their penalties in the call.

    Attributes
    ----------
    end
        The error that stopped the path: `NoMinimiser` for the largest penalty that has no
        minimiser, with its certificate and a feasible penalty, or the error of one that did not
        converge. Then there are solutions for the larger penalties only: use the `penalty` of a
        solution, not its index. None if every penalty has a solution, or if the path was stopped by
        `max_edges`.
    """

    end: RequestError | None = None


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
    down, and split into connected components
    (Witten, Friedman and Simon 2011; Mazumder and Hastie 2012: exact).
    """
    problem = GlassoProblem.checked(checked_symmetric(S), penalty, penalize_diagonal)
    with single_blas_thread():
        return _solve(problem, solver, tol)[0]


def graphical_lasso_path(
    S: Array,
    penalties: Sequence[float | Array],
    *,
    penalize_diagonal: bool = False,
    solver: Solver = "auto",
    tol: float = 1e-6,
    max_edges: int | None = None,
    conditions: bool = True,
) -> Path:
    """The minimisers at several penalties, down to the smallest that has one.

    Parameters
    ----------
    S
        Symmetric, shape (p, p); may be indefinite.
    penalties
        Numbers, or matrices, as in `graphical_lasso`; at least one, in any order. Of any two
        matrices, one must be at least the other in every entry.
    penalize_diagonal, solver, tol
        See `graphical_lasso`.
    max_edges
        The path stops after the first graph with more edges. For rules that use sparse graphs only:
        the dense graphs at small penalties take the longest.
    conditions
        Whether every solution must meet the optimality conditions, too, as in `graphical_lasso`
        (the default). Without, only the gap is certified, in half the steps: the objective is close
        to its minimum, and the graph is correct except for very small entries, but entries of the
        inverse may be off by as much as the square root of the gap.

    Raises
    ------
    ValueError
        As in `graphical_lasso`; or if two penalties cannot be ordered, or `penalties` is empty.
    NoMinimiser, RequestError
        As in `graphical_lasso`, if the largest penalty does not have a solution. Errors at smaller
        penalties are in the `end` of the path.

    Notes
    -----
    Penalties are solved in descending order. If a penalty does not have a minimiser,
    smaller ones do not either, because the dual's box shrinks; so the path stops there.
    """
    matrix = checked_symmetric(S)
    checked = [GlassoProblem.checked(matrix, each, penalize_diagonal) for each in penalties]
    if not checked:
        raise families.ESTIMATOR_SETTING("penalties must have at least one penalty.")

    def compare(a: int, b: int) -> int:
        """By descending penalties."""
        return checked[a].is_below(checked[b]) - checked[b].is_below(checked[a])

    order = sorted(range(len(checked)), key=cmp_to_key(compare))
    if any(checked[a].is_below(checked[b]) for a, b in pairwise(order)):
        raise families.ESTIMATOR_SETTING(
            "Of any two matrices in penalties, one must be at least the other in every entry.",
            "Multiply one matrix of penalties by several numbers.",
        )
    solutions: dict[int, Solution] = {}
    state: _PathState | None = None
    path = Path()
    with single_blas_thread():
        for k in order:
            try:
                solutions[k], state = _solve(checked[k], solver, tol, state, conditions)
            except RequestError as error:
                if not solutions:
                    raise
                path.end = error
                break
            edges = (int(np.count_nonzero(solutions[k].precision)) - len(matrix)) // 2
            if max_edges is not None and edges > max_edges:
                break
    path.extend(solutions[k] for k in sorted(solutions))
    return path


@dataclass(frozen=True)
class _PathState:
    """Warm start for a problem with the same S, and penalties that are not larger."""

    scaling: UnitScaling  # the scaling of `start`
    start: WarmStart  # the minimiser
    connected: bool  # whether the graph was connected; then it also is at smaller penalties


def _solve(
    problem: GlassoProblem,
    solver: Solver,
    tol: float,
    state: _PathState | None = None,
    conditions: bool = True,
) -> tuple[Solution, _PathState]:
    """See `graphical_lasso`; also returns a warm start."""
    if not 0 < tol < math.inf:
        raise wordings.not_positive("tol")
    if solver != "auto" and solver not in _SOLVERS:
        raise families.ESTIMATOR_SETTING(
            "solver must be one of {known}.", known=("auto", *_SOLVERS)
        )
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
    return solution, _PathState(scaling, end, len(blocks) == 1 and blocks[0].size == p)


def _warm_start(
    state: _PathState | None, S: Array, diagonal: Array
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
        return families.NOT_CONVERGED(
            "The graphical lasso did not converge at penalty {penalty:g}: the problem "
            "is nearly singular.",
            "Use a larger penalty.",
            penalty=problem.penalty,
        )
    smallest, largest = problem.penalty_range
    return families.NOT_CONVERGED(
        "The graphical lasso did not converge at penalties from {smallest:g} to {largest:g}: the "
        "problem is nearly singular.",
        "Use larger penalties, also for pairs of nearly equal columns.",
        smallest=smallest,
        largest=largest,
    )


def components(S: Array, penalties: Array) -> list[Indices]:
    """The columns of each component of two columns or more; other columns are isolated.

    `S`, `penalties`: symmetric, shape (p, p).
    """
    linked = np.abs(S) > penalties
    np.fill_diagonal(linked, False)
    columns = np.flatnonzero(linked.any(axis=1))
    if not columns.size:
        return []
    links = linked[columns].take(columns, axis=1)
    row, column = np.divmod(np.flatnonzero(links), columns.size)
    ends = np.cumsum(np.bincount(row, minlength=columns.size))
    graph = csr_array((np.ones(row.size), column, np.append(0, ends)), shape=links.shape)
    labels = connected_components(graph, directed=False)[1]
    order = np.argsort(labels, kind="stable")
    return np.split(columns[order], np.cumsum(np.bincount(labels))[:-1])


def solve_pair(S: Array, penalties: Array) -> Outcome:
    """Solve two connected columns: W_12 is the point of its interval that is closest to zero.

    `S`, `penalties`: symmetric, S with a unit diagonal, shape (2, 2).
    """
    sign, w = math.copysign(1.0, S[0, 1]), abs(S[0, 1]) - penalties[0, 1]
    det = (1 - w) * (1 + w)
    # The second condition ensures that the matrix is also positive definite after rounding.
    if w < 1 and (1 / det) * (1 / det) > (w / det) * (w / det):
        T = np.array([[1.0, -sign * w], [-sign * w, 1.0]]) / det
        W = np.array([[1.0, sign * w], [sign * w, 1.0]])
        return Outcome("minimiser", T, 0.0, 0, W, W, np.array([-math.log(det), 0.0]))
    proof = certificate(S, penalties, np.array([[1.0, -sign], [-sign, 1.0]]))
    if proof is None:
        return Outcome("unconverged", S, math.inf, 0)
    return Outcome("unbounded", proof, math.inf, 0)


def solve_unpenalised(S: Array, tol: float, conditions: bool) -> Outcome:
    """Solve a problem without penalties: the minimiser is the inverse of S.

    ``unbounded`` if S is indefinite, and ``unconverged`` if it is singular to within rounding.

    `S`: symmetric, with a unit diagonal, shape (p, p).
    """
    penalties = np.zeros_like(S)
    values, vectors = np.linalg.eigh(S)
    if values[0] <= ROUNDING * len(S) * values[-1]:
        smallest = vectors[:, 0]
        proof = certificate(S, penalties, np.outer(smallest, smallest))
        if proof is None:
            return Outcome("unconverged", S, math.inf, 0)
        return Outcome("unbounded", proof, math.inf, 0)
    root = vectors / np.sqrt(values)
    T: Array = root @ root.T
    T = (T + T.T) / 2
    gap = duality_gap(T, S)
    if not is_optimal(S, penalties, T, gap, tol, conditions):
        return Outcome("unconverged", S, math.inf, 0)
    return Outcome("minimiser", T, gap, 0, S, S, -np.log(values))
