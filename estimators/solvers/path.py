"""The graphical lasso at several penalties, each started from the previous solution."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gramercy.common.machine import single_blas_thread
from gramercy.estimators.solvers.blockwise import PathState, Solution, Solver, solve
from gramercy.estimators.solvers.glasso_problem import GlassoProblem, checked_symmetric
from gramercy.schemas.errors import RequestError
from gramercy.schemas.problems.estimation import no_penalties, penalties_not_ordered

Array = NDArray[np.float64]


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
    problems = [GlassoProblem.checked(matrix, each, penalize_diagonal) for each in penalties]
    if not problems:
        raise no_penalties()
    key = cmp_to_key(_compare)
    order = sorted(range(len(problems)), key=lambda k: key(problems[k]))
    if any(problems[a].is_below(problems[b]) for a, b in pairwise(order)):
        raise penalties_not_ordered()
    solutions: dict[int, Solution] = {}
    state: PathState | None = None
    path = Path()
    with single_blas_thread():
        for k in order:
            try:
                solutions[k], state = solve(problems[k], solver, tol, state, conditions)
            except RequestError as error:
                if not solutions:
                    raise
                path.end = error
                break
            if max_edges is not None and _edges(solutions[k].precision) > max_edges:
                break
    path.extend(solutions[k] for k in sorted(solutions))
    return path


def _compare(first: GlassoProblem, second: GlassoProblem) -> int:
    """Order by descending penalties."""
    return first.is_below(second) - second.is_below(first)


def _edges(precision: Array) -> int:
    return (int(np.count_nonzero(precision)) - len(precision)) // 2
