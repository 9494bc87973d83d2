"""The graphical lasso by block coordinate descent.

Friedman, Hastie and Tibshirani (2008); Algorithm 1 of the debiased graphical lasso; Banerjee et al.
(2008) for the proof of convergence. For one column at a time, with W the inverse of T,

minimise over b:  b' W b / 2 - s' b + sum of penalties_k |b_k|,  and then  w = W b,

where row and column j of W are left out, s and w are the rest of column j of S and W,
T_kj = -b_k T_jj, and T_jj = 1 / (S_jj - w' b). Each step increases det W within the dual's box. So
it must start with a positive definite matrix in that box; if none is found, the result is
``unconverged``. For an indefinite S, that happens between the smallest penalty that has a minimiser
and the smallest at which soft-thresholding gives such a matrix.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.common.machine import compiled
from gramercy.estimators.solvers.block import (
    Outcome,
    WarmStart,
    duality_gap,
    is_optimal,
    is_positive_definite,
    soft_threshold,
)

Array = NDArray[np.float64]

_SHARE = 0.01  # accuracy of a column's lasso, as a share of its first change
_MAX_PASSES = 1000  # passes over the coefficients of one lasso problem
_MIN_CHANGE = 1e-15  # on a unit diagonal; smaller changes of a coefficient are rounding


def coordinate_descent(
    S: Array,
    penalties: Array,
    tol: float,
    limit: int,
    start: WarmStart | None = None,
    conditions: bool = True,
) -> Outcome:
    """Minimise -log det T + tr(S T) + sum of penalties_ij |T_ij| over positive definite T.

    See `estimators.solvers.block.BlockSolver`. Never ``unbounded``.

    The dual point is W, moved to the boundary of the box where T is not zero. The minimiser's dual
    is there, so the gap decreases with the square of the error.
    """
    p = len(S)
    # A positive definite matrix in the dual's box, or None if no candidate is one.
    off = np.abs(S - np.eye(len(S)))
    shares = np.divide(penalties, off, out=np.ones_like(S), where=off > penalties)
    share = float(shares.min(initial=1.0, where=~np.eye(len(S), dtype=bool)))
    candidates = [
        soft_threshold(S - np.eye(len(S)), penalties) + np.eye(len(S)),
        (1 - share) * S + share * np.eye(len(S)),  # works for every positive semidefinite S
    ]
    if start is not None:
        clipped = np.clip(start.dual, S - penalties, S + penalties)
        np.fill_diagonal(clipped, 1.0)
        candidates.insert(0, clipped)
    W = next((matrix for matrix in candidates if is_positive_definite(matrix)), None)
    if W is None:
        return Outcome("unconverged", S, np.inf, 0)
    B = np.zeros((p, p)) if start is None else -start.matrix / np.diagonal(start.matrix)
    np.fill_diagonal(B, 0.0)
    pivots = np.ones(p)
    for sweep in range(1, limit + 1):
        for j in range(p):
            b = B[:, j].copy()
            w = compiled(_lasso)(W, S[j], penalties[j], b, j, _SHARE)
            pivots[j] = 1 - float(w @ b)  # positive as long as W is positive definite
            if not pivots[j] > 0:
                return Outcome("unconverged", S, np.inf, sweep)
            w[j] = 1.0
            B[:, j], W[:, j], W[j] = b, w, w
        # The symmetric precision matrix; an entry is zero if it is zero in either column.
        T = -B / pivots
        T = np.where((T != 0) & (T.T != 0), (T + T.T) / 2, 0.0)
        np.fill_diagonal(T, 1 / pivots)
        boundary = S + penalties * np.sign(T)
        dual = np.where(T != 0, boundary, np.clip(W, S - penalties, S + penalties))
        gap = duality_gap(T, dual)
        if is_optimal(S, penalties, T, gap, tol, conditions):
            return Outcome("minimiser", T, gap, sweep, dual)
    return Outcome("unconverged", T, np.inf, limit)


def _lasso(W: Array, s: Array, penalties: Array, b: Array, j: int, share: float) -> Array:
    """Minimise b' W b / 2 - s' b + sum of penalties_k |b_k| over b with b_j = 0, in place.

    By coordinate descent from `b`; W has a unit diagonal. It ends when all changes are at most
    `share` times the largest change of the first pass, and b' W b < 1, or after many passes.
    Compiled by numba on first use.

    Returns shape (p,): W b.
    """
    p = len(s)
    rest = s - W @ b
    target = _MIN_CHANGE
    for turn in range(_MAX_PASSES):
        most, explained = 0.0, 0.0
        for k in range(p):
            here = rest[k] + b[k]
            new = max(here - penalties[k], 0.0) + min(here + penalties[k], 0.0)
            if k != j:
                most = max(most, abs(new - b[k]))
            explained += b[k] * (s[k] - rest[k])
        if turn == 0:
            target = max(target, share * most)
        if most <= target and explained < 1:
            break
        for k in range(p):
            here = rest[k] + b[k]
            new = max(here - penalties[k], 0.0) + min(here + penalties[k], 0.0)
            if new != b[k] and k != j:
                rest -= W[k] * (new - b[k])
                b[k] = new
    return s - rest
