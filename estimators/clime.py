"""Sparse precision matrix, column by column: CLIME.

Cai, Liu and Luo (2011), "A constrained l1 minimization approach to sparse precision matrix
estimation": for every column i, with e_i that of the identity,

minimise over b:  sum |b_j|  subject to  |S b - e_i|_inf <= bound

Each pair has two values then, and the one of smaller magnitude is kept.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from gramercy.estimators.neighbourhood import symmetrised
from gramercy.estimators.scio import ColumnwisePrecision, Penalty
from gramercy.schemas import families

Array = NDArray[np.float64]

_TOLERANCE = 1e-8  # of the certificate


class Clime(ColumnwisePrecision):
    """``clime``: a sparse precision matrix; its zeros are a graph's missing edges.

    See `estimators.scio.ColumnwisePrecision`.

    Parameters
    ----------
    bound
        A number between 0 and 1, without a unit; at 1 every column would be zero. ``auto``: the
        penalty of ``scio``. It shrinks the diagonal too: for a column without edges, by a factor
        of 1 - bound.
    """

    name: Literal["clime"] = "clime"
    key = "bound"  # not that of scio, so that forms tell them apart
    bound: Penalty = "auto"

    def columns(self, S: Array, penalty: float) -> Array:
        return clime(S, penalty)


def clime(S: Array, bound: float) -> Array:
    """The symmetrised solutions, not always positive definite.

    `S`: symmetric, positive definite, with a unit diagonal; shape (p, p). `bound`: between 0 and
    1, on the scale of S T. Returns shape (p, p): symmetric, with exact zeros and a positive
    diagonal. Raises ValueError if the bound is not between 0 and 1. Raises RequestError if a
    linear programme was not solved to 1e-8 (see `smallest_column`), or if the diagonal is not
    positive: with nearly collinear columns and a large bound, other columns may take the place
    of a column's own entry.
    """
    if not 0 < bound < 1:
        raise families.ESTIMATOR_SETTING("bound must be between 0 and 1.")
    columns = np.column_stack([smallest_column(S, unit, bound) for unit in np.eye(len(S))])
    if not np.diagonal(columns).min() > 0:
        raise families.ESTIMATE(
            "CLIME has no positive diagonal: columns are nearly collinear.",
            "Use a smaller bound, or 'scio'.",
        )
    return symmetrised(columns, "and") + np.diag(np.diagonal(columns))


def smallest_column(S: Array, c: Array, bound: float) -> Array:
    """The b of the smallest l1 norm with |S b - c|_inf <= bound; exact zeros; shape (p,).

    The dual point y, scaled to |S y|_inf <= 1, proves that its norm exceeds the minimum by at most
    sum |b_i| - c^T y + bound sum |y_i|. Raises RequestError if this, relative to the norm, or the
    excess of |S b - c|_inf over the bound is above 1e-8: S is nearly singular.
    """
    both = np.block([[S, -S], [-S, S]])
    limits = np.concatenate([bound + c, bound - c])
    exact = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    solved = scipy.optimize.linprog(
        np.ones(2 * len(S)), both, limits, method="highs-ds", options=exact
    )
    if solved.x is not None:
        b: Array = np.subtract(*np.split(solved.x, 2))
        y = np.subtract(*np.split(solved.ineqlin.marginals, 2))
        y /= max(1.0, float(np.abs(S @ y).max()))
        size = float(np.abs(b).sum())
        gap = (size - float(c @ y) + bound * float(np.abs(y).sum())) / max(size, 1.0)
        if max(gap, float(np.abs(S @ b - c).max()) - bound) <= _TOLERANCE:
            return b
    raise families.NOT_CONVERGED(
        "The linear programme of a column was not solved: the matrix is nearly singular.",
        "Use a larger bound.",
    )
