"""The graphical lasso taken apart: the blocks that are independent, and those solved on paper.

Rows and columns that no |S_ij| > penalty_ij connects are independent in the minimiser (Witten,
Friedman and Simon 2011; Mazumder and Hastie 2012: exact), so each connected component is a problem
of its own, and those of one or two columns have a closed form.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from gramercy.estimators.solvers.block import Outcome, certificate

Array = NDArray[np.float64]
Places = NDArray[np.intp]


def components(S: Array, penalties: Array) -> list[Places]:
    """The columns of every component of two columns and more; the others stand alone.

    Parameters
    ----------
    S, penalties
        Symmetric, shape (p, p).
    """
    linked = np.abs(S) > penalties
    np.fill_diagonal(linked, False)
    rest = np.flatnonzero(linked.any(axis=1))
    if not rest.size:
        return []
    whole = linked[rest].take(rest, axis=1)
    row, column = np.divmod(np.flatnonzero(whole), rest.size)
    ends = np.cumsum(np.bincount(row, minlength=rest.size))
    graph = csr_array((np.ones(row.size), column, np.append(0, ends)), shape=whole.shape)
    labels = connected_components(graph, directed=False)[1]
    order = np.argsort(labels, kind="stable")
    return np.split(rest[order], np.cumsum(np.bincount(labels))[:-1])


def pair(S: Array, penalties: Array) -> Outcome:
    """Two columns, connected: W_12 is the point of its interval that is nearest to zero.

    Parameters
    ----------
    S, penalties
        Symmetric, S with a unit diagonal, shape (2, 2).
    """
    sign, w = math.copysign(1.0, S[0, 1]), abs(S[0, 1]) - penalties[0, 1]
    left = (1 - w) * (1 + w)
    # As stored it is positive definite: its entries are rounded, and so is their quotient.
    if w < 1 and (1 / left) * (1 / left) > (w / left) * (w / left):
        T = np.array([[1.0, -sign * w], [-sign * w, 1.0]]) / left
        W = np.array([[1.0, sign * w], [sign * w, 1.0]])
        return Outcome("minimiser", T, 0.0, 0, W, W, np.array([-math.log(left), 0.0]))
    proof = certificate(S, penalties, np.array([[1.0, -sign], [-sign, 1.0]]))
    if proof is None:
        return Outcome("unsettled", S, math.inf, 0)
    return Outcome("unbounded", proof, math.inf, 0)
