"""The graphical lasso at many penalties, each begun where the one before ended."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gramercy.common.machine import one_blas_thread
from gramercy.estimators.solvers.blockwise import Solution, Solver, State, solve
from gramercy.estimators.solvers.problem import Problem, symmetric
from gramercy.schemas.errors import RequestError

Array = NDArray[np.float64]


class Path(list[Solution]):
    """Solutions in the order in which their penalties were asked for.

    Attributes
    ----------
    end
        What stopped the path: the `NoMinimiser` of the largest penalty that has no minimiser, with
        its certificate and a feasible penalty (or the error of one that did not settle). The
        solutions are then those of the larger penalties alone: read a solution's `penalty`, not
        its place. None where every penalty has its solution, or the path ended with a graph that
        has more edges than were asked for.
    """

    end: RequestError | None = None


def graphical_lasso_path(
    S: Array,
    penalties: Sequence[float | Array],
    *,
    penalize_diagonal: bool = False,
    solver: Solver = "auto",
    tol: float = 1e-6,
    most_edges: int | None = None,
    conditions: bool = False,
) -> Path:
    """The minimisers at several penalties, down to the smallest that has one.

    Parameters
    ----------
    S
        Symmetric, shape (p, p); may be indefinite.
    penalties
        Numbers, or matrices, as `graphical_lasso` takes them; at least one, in any order. Of any
        two, one may not be below the other in one entry and above it in another, since only then
        does the larger have a minimiser where the smaller has.
    penalize_diagonal, solver, tol
        See `graphical_lasso`.
    most_edges
        The path ends with the first graph of more edges. For rules that look at sparse graphs
        alone: the dense ones of the smallest penalties take the longest.
    conditions
        Whether every solution must meet the optimality conditions too, as a single one does: with
        twice the steps. A small gap alone is an objective that is as good as the least, and a graph
        that is right but for entries that hardly matter.

    Raises
    ------
    ValueError
        As `graphical_lasso`; or if two penalties cannot be compared, or there are none.
    NoMinimiser, RequestError
        As `graphical_lasso`, if not even the largest penalty has a minimiser. One further down
        does not lose the others: it is the path's `end`.

    Notes
    -----
    From the largest penalty down. Where a penalty has no minimiser no smaller one has, because the
    dual's box shrinks; so the path stops there.
    """
    matrix = symmetric(S)
    problems = [Problem.checked(matrix, each, penalize_diagonal) for each in penalties]
    if not problems:
        raise ValueError("a path needs at least one penalty")
    turn = cmp_to_key(_turn)
    order = sorted(range(len(problems)), key=lambda k: turn(problems[k]))
    if any(problems[a].is_below(problems[b]) for a, b in pairwise(order)):
        raise ValueError("of any two penalties, one must be no less than the other in every entry")
    found: dict[int, Solution] = {}
    state: State | None = None
    path = Path()
    with one_blas_thread():
        for k in order:
            try:
                found[k], state = solve(problems[k], solver, tol, state, conditions)
            except RequestError as error:
                if not found:
                    raise
                path.end = error
                break
            if most_edges is not None and _edges(found[k].precision) > most_edges:
                break
    path.extend(found[k] for k in sorted(found))
    return path


def _turn(one: Problem, other: Problem) -> int:
    """Which comes first: that with the larger penalties, where one has them."""
    return one.is_below(other) - other.is_below(one)


def _edges(precision: Array) -> int:
    return (int(np.count_nonzero(precision)) - len(precision)) // 2
