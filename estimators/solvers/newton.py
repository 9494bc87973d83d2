"""The graphical lasso by proximal Newton steps.

Hsieh, Sustik, Dhillon and Ravikumar (2014), "QUIC: quadratic approximation for sparse inverse
covariance estimation". With W the inverse of T, the step D minimises the quadratic model

tr((S - W) D) + tr(W D W D) / 2 + sum of penalties_ij |T_ij + D_ij|

over the nonzero entries of T, and those whose |S_ij - W_ij| exceeds their penalty. The model is
minimised by coordinate descent in single precision, with the columns in random order (a fixed order
takes many times the steps), accurately enough that two or three Newton steps suffice on a path, and
no more accurately than the gap that was asked for. Double precision is used for T and its Cholesky
factorisation, the objective and the duality gap.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from gramercy.common.machine import can_compile
from gramercy.estimators.solvers import kernels, numpy_descent
from gramercy.estimators.solvers.block import (
    ROUNDING,
    Outcome,
    WarmStart,
    allowed_violation,
    certificate,
    duality_gap,
)
from gramercy.estimators.solvers.inverse import inverse
from gramercy.estimators.solvers.kernels import compiled

Array = NDArray[np.float64]

_MAX_SWEEPS = 20  # sweeps of one step
# Decrease by a sweep that ends the step, over that of the first sweep: from the first to the second
# with the active pairs per column, above the third, because sweeps of large dense graphs cost more
# than the Newton step that they save. (Measured with 100 to 2,000 columns.)
_LAST_DECREASE, _MOST_LAST_DECREASE, _FEW_PAIRS = 0.01, 0.1, 20
_NEGLIGIBLE = 0.3  # decrease by a sweep that ends the step, over the requested gap
_MAX_PENALTY = 1e30  # in single precision; far above any entry on a unit diagonal
_MIN_STEP = 2.0**-10  # smallest step of the line search
_MEASURE_BELOW = 2.0  # the gap is computed where its estimate is below this multiple of its limit
# W is in single precision if `tol` is at least this, for this many steps, and while the logarithms
# of the pivots of T span less than this. The gap does not depend on W.
_SINGLE_TOL, _SINGLE_STEPS, _SINGLE_SPAN = 1e-7, 4, 8.0


def newton(
    S: Array,
    penalties: Array,
    tol: float,
    limit: int,
    start: WarmStart | None = None,
    conditions: bool = True,
) -> Outcome:
    """Minimise -log det T + tr(S T) + sum of penalties_ij |T_ij| over positive definite T.

    See `estimators.solvers.block.BlockSolver`. Its iterations are Newton steps.

    Notes
    -----
    The gap is about tr(T E T E) / 2, with E the difference of W and the dual point. It costs a
    factorisation, so it is computed only where it may be small enough, judged by the norm of E and
    the ratio of the two at the last computation; the ratio starts at 1/2, as for T the identity.
    """
    p = len(S)
    if start is None or start.log_pivots is None:
        at = _Point.of(S, penalties, np.eye(p) if start is None else start.matrix)
        if at is None:
            return Outcome("unconverged", S, math.inf, 0)
        W = at.inverse()
    else:
        at, W = _Point(S, penalties, start.matrix, start.log_pivots), start.dual
    # One allocation: NumPy asks for large pages from 4 MB on, with which rows are found faster.
    matrices = np.empty((6, p, p), np.float32)
    single_W, single_T, single_penalties, residual, D, _ = matrices
    single_penalties[:] = np.minimum(penalties, _MAX_PENALTY)
    rate = 0.5
    for turn in range(limit + 1):
        violation, squares, starts, places = compiled(kernels.active_set)(
            S, penalties, at.T, W, residual, turn
        )
        allowed = allowed_violation(at.T, W, tol) if conditions else math.inf
        if violation <= allowed and rate * squares <= _MEASURE_BELOW * tol * p:
            dual, gap = _certified(S, penalties, at, W, tol)
            if gap <= tol * p:
                return Outcome("minimiser", at.T, gap, turn, dual, W, at.log_pivots)
            rate = gap / squares if squares > 0 and gap < math.inf else rate
        proof = certificate(S, penalties, at.T) if at.linear <= 0 else None
        if proof is not None:
            return Outcome("unbounded", proof, math.inf, turn)
        if turn == limit:
            break
        single_W[:], single_T[:] = W, at.T
        descend = compiled(kernels.descend) if can_compile() else numpy_descent.descend
        enough = min(_LAST_DECREASE * max(1, len(places) / p / _FEW_PAIRS), _MOST_LAST_DECREASE)
        negligible = 0.0 if conditions else _NEGLIGIBLE * tol * p
        descend(matrices, starts, places, _MAX_SWEEPS, enough, negligible)
        moved = at.line_search(S, penalties, single_T, D)
        if moved is None:
            break
        coarse = not conditions and tol >= _SINGLE_TOL and turn < _SINGLE_STEPS
        single_inverse = coarse and float(np.ptp(moved.log_pivots)) < _SINGLE_SPAN
        at, W = moved, moved.inverse(single_precision=single_inverse)
    return Outcome("unconverged", at.T, math.inf, turn)


class _Point:
    """A positive definite T, the logarithms of its pivots, and the objective at T."""

    def __init__(
        self, S: Array, penalties: Array, T: Array, log_pivots: Array, factor: Array | None = None
    ) -> None:
        self.T = T
        self.log_pivots = log_pivots
        self._factor = factor
        self.linear, size = compiled(kernels.linear)(S, penalties, T)
        self.value = self.linear - float(log_pivots.sum())
        self.rounding = 16 * ROUNDING * (size + float(np.abs(log_pivots).sum()) + len(T))

    @classmethod
    def of(cls, S: Array, penalties: Array, T: Array) -> _Point | None:
        """The point for T; None if T is not positive definite."""
        factor, failed = dpotrf(T.T, lower=1, clean=0)
        if failed:
            return None
        return cls(S, penalties, T, 2 * np.log(np.diagonal(factor)), factor)

    def inverse(self, *, single_precision: bool = False) -> Array:
        """Inverse of T, from its Cholesky factor, which is overwritten; shape (p, p)."""
        # Missing only if the inverse is known from the start.
        assert self._factor is not None  # noqa: S101  for mypy
        factor, self._factor = self._factor, None
        return inverse(factor, single_precision=single_precision)

    def line_search(
        self, S: Array, penalties: Array, single: NDArray[np.float32], D: NDArray[np.float32]
    ) -> _Point | None:
        """Return the first of T + D, T + D / 2, ... that does not increase the objective."""
        share = 1.0
        while share >= _MIN_STEP:
            T = compiled(kernels.step_from)(self.T, single, D, share)
            moved = _Point.of(S, penalties, T)
            if moved is not None and moved.value <= self.value + self.rounding:
                return moved
            share /= 2
        return None


def _certified(S: Array, penalties: Array, at: _Point, W: Array, tol: float) -> tuple[Array, float]:
    """A dual point and its duality gap, which is infinite if it is not positive definite."""
    dual = compiled(kernels.dual_point)(S, penalties, at.T, W)
    factor, failed = dpotrf(dual.T, lower=1, clean=0)
    if failed:
        return dual, math.inf
    gap = at.value - len(S) - 2 * float(np.log(np.diagonal(factor)).sum())
    if at.rounding > 0.01 * tol * len(S):  # cancellation
        gap = duality_gap(at.T, dual)
    return dual, gap
