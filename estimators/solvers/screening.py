"""Screening for the graphical lasso: independent blocks, and blocks with a closed form.

Rows and columns that no |S_ij| > penalty_ij connects are independent in the minimiser (Witten,
Friedman and Simon 2011; Mazumder and Hastie 2012: exact), so each connected component is a problem
of its own. Problems of one or two columns have a closed form, and without penalties the minimiser
is the inverse of S.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from gramercy.estimators.solvers.block import (
    ROUNDING,
    Outcome,
    certificate,
    duality_gap,
    is_optimal,
)

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


def components(S: Array, penalties: Array) -> list[Indices]:
    """The columns of each component of two columns or more; other columns are isolated.

    Parameters
    ----------
    S, penalties
        Symmetric, shape (p, p).
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

    Parameters
    ----------
    S, penalties
        Symmetric, S with a unit diagonal, shape (2, 2).
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

    Parameters
    ----------
    S
        Symmetric, with a unit diagonal, shape (p, p).
    tol, conditions
        See `estimators.solvers.block.is_optimal`.
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
