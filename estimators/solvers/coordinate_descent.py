"""The graphical lasso by block coordinate descent, as its authors solved it.

Friedman, Hastie and Tibshirani (2008); Algorithm 1 of the debiased graphical lasso; Banerjee et al.
(2008) for why it converges. Column by column, the others held: with W the inverse of T,

minimise over b:  b' W b / 2 - s' b + sum of penalties_k |b_k|,  and then  w = W b,

W without row and column j, s and w what is left of column j of S and W, T_kj = -b_k T_jj, and
T_jj = 1 / (S_jj - w' b). It raises det W over the dual's box, one column at a time. So it has to
begin at a positive definite matrix of that box: where none is at hand it says so, and proves
nothing. Of an indefinite S, that is the case between the least penalty that has a minimiser and
the least at which soft-thresholding finds one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.solvers import kernels
from gramercy.estimators.solvers.block import (
    Outcome,
    Start,
    duality_gap,
    is_optimal,
    is_positive_definite,
    soft_threshold,
)
from gramercy.estimators.solvers.kernels import compiled

Array = NDArray[np.float64]

_SHARE = 0.01  # of the column's violation that may be left when its turn ends


def coordinate_descent(
    S: Array,
    penalties: Array,
    tol: float,
    limit: int,
    start: Start | None = None,
    conditions: bool = True,
) -> Outcome:
    """Minimise -log det T + tr(S T) + sum of penalties_ij |T_ij| over positive definite T.

    See `estimators.solvers.block.BlockSolver`. Never ``unbounded``.

    Notes
    -----
    The gap is measured at a point of the box that is W, but on its border where T has an entry:
    there the minimiser's is, so the gap falls with the square of what is left to do.
    """
    p = len(S)
    W = _inside(S, penalties, start)
    if W is None:
        return Outcome("unsettled", S, np.inf, 0)
    B = np.zeros((p, p)) if start is None else -start.matrix / np.diagonal(start.matrix)
    np.fill_diagonal(B, 0.0)
    left = np.ones(p)
    for sweep in range(1, limit + 1):
        for j in range(p):
            b = B[:, j].copy()
            w = compiled(kernels.lasso)(W, S[j], penalties[j], b, j, _SHARE)
            left[j] = 1 - float(w @ b)  # positive as long as W is positive definite
            if not left[j] > 0:
                return Outcome("unsettled", S, np.inf, sweep)
            w[j] = 1.0
            B[:, j], W[:, j], W[j] = b, w, w
        T = _precision(B, left)
        border = S + penalties * np.sign(T)
        dual = np.where(T != 0, border, np.clip(W, S - penalties, S + penalties))
        gap = duality_gap(T, dual)
        if is_optimal(S, penalties, T, gap, tol, conditions):
            return Outcome("minimiser", T, gap, sweep, dual)
    return Outcome("unsettled", T, np.inf, limit)


def _inside(S: Array, penalties: Array, start: Start | None) -> Array | None:
    """A positive definite matrix of the dual's box, if one is at hand."""
    off = np.abs(S - np.eye(len(S)))
    shares = np.divide(penalties, off, out=np.ones_like(S), where=off > penalties)
    share = float(shares.min(initial=1.0, where=~np.eye(len(S), dtype=bool)))
    tried = [
        soft_threshold(S - np.eye(len(S)), penalties) + np.eye(len(S)),
        (1 - share) * S + share * np.eye(len(S)),  # of a positive semidefinite S, always
    ]
    if start is not None:
        near = np.clip(start.dual, S - penalties, S + penalties)
        np.fill_diagonal(near, 1.0)
        tried.insert(0, near)
    return next((each for each in tried if is_positive_definite(each)), None)


def _precision(B: Array, left: Array) -> Array:
    """Symmetric; an entry is zero where either of its columns says so."""
    T = -B / left
    T = np.where((T != 0) & (T.T != 0), (T + T.T) / 2, 0.0)
    np.fill_diagonal(T, 1 / left)
    return T
