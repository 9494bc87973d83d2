"""The graphical lasso by proximal Newton steps.

Hsieh, Sustik, Dhillon and Ravikumar (2014), "QUIC: quadratic approximation for sparse inverse
covariance estimation". With W the inverse of T, the step D minimises the quadratic model

tr((S - W) D) + tr(W D W D) / 2 + sum of penalties_ij |T_ij + D_ij|

over the entries that T has, and those whose |S_ij - W_ij| exceeds their penalty. The model is
minimised by coordinate descent in single precision, with the columns in random order (in one that
repeats it takes many times the steps), far enough that two or three steps do on a path. What is
believed is in double precision: T by its Cholesky factorisation, the objective, the duality gap.
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
    Start,
    allowed_violation,
    certificate,
    duality_gap,
)
from gramercy.estimators.solvers.inverse import inverse
from gramercy.estimators.solvers.kernels import compiled

Array = NDArray[np.float64]

_SWEEPS = 20  # at most, for one step
_ENOUGH = 0.01  # of what the first sweep gained
_FORBIDDING = 1e30  # a penalty in single precision; nothing of a unit diagonal comes near it
_SHORTEST = 2.0**-10  # share of a step
_WORTH_IT = 2.0  # times the gap wanted: where a better guess says so, the gap is measured
# W in single precision: where a gap so small is enough, for so many steps, and only while the
# pivots of T span less than this power of e. What the gap is does not depend on W.
_ROUGH, _ROUGHLY, _EVEN = 1e-7, 4, 8.0


def newton(
    S: Array,
    penalties: Array,
    tol: float,
    limit: int,
    start: Start | None = None,
    conditions: bool = True,
) -> Outcome:
    """Minimise -log det T + tr(S T) + sum of penalties_ij |T_ij| over positive definite T.

    See `estimators.solvers.block.BlockSolver`. Its iterations are Newton steps.

    Notes
    -----
    The gap is about tr(T E T E) / 2, with E the distance from W to the dual's point, and no less
    than half the square of E where T is the identity. It costs a factorisation, so it is measured
    only where E says that it may be small enough, by the ratio of the two when last measured.
    """
    p = len(S)
    if start is None or start.logs is None:
        at = _Point.of(S, penalties, np.eye(p) if start is None else start.matrix)
        if at is None:
            return Outcome("unsettled", S, math.inf, 0)
        W = at.inverse()
    else:
        at, W = _Point(S, penalties, start.matrix, start.logs), start.dual
    charged, rate = np.minimum(penalties, _FORBIDDING).astype(np.float32), 0.5
    for turn in range(limit + 1):
        found = compiled(kernels.survey)(S, penalties, at.T, W, turn)
        violation, squares, where = found[0], found[1], found[2:]
        wanted = allowed_violation(at.T, W, tol) if conditions else math.inf
        if violation <= wanted and rate * squares <= _WORTH_IT * tol * p:
            dual, gap = _certified(S, penalties, at, W, tol)
            if gap <= tol * p:
                return Outcome("minimiser", at.T, gap, turn, dual, W, at.logs)
            rate = gap / squares if squares > 0 and gap < math.inf else rate
        proof = certificate(S, penalties, at.T) if at.linear <= 0 else None
        if proof is not None:
            return Outcome("unbounded", proof, math.inf, turn)
        if turn == limit:
            break
        single = at.T.astype(np.float32)
        descend = compiled(kernels.descend) if can_compile() else numpy_descent.descend
        D, _ = descend(W.astype(np.float32), single, charged, *where, _SWEEPS, _ENOUGH)
        moved = at.line_search(S, penalties, single, D)
        if moved is None:
            break
        enough = not conditions and tol >= _ROUGH and turn < _ROUGHLY
        at, W = moved, moved.inverse(roughly=enough and float(np.ptp(moved.logs)) < _EVEN)
    return Outcome("unsettled", at.T, math.inf, turn)


class _Point:
    """A positive definite T, what its log-determinant is the sum of, and the objective there."""

    def __init__(
        self, S: Array, penalties: Array, T: Array, logs: Array, factor: Array | None = None
    ) -> None:
        self.T = T
        self.logs = logs
        self._factor = factor
        self.linear, size = compiled(kernels.linear)(S, penalties, T)
        self.value = self.linear - float(logs.sum())
        self.rounding = 16 * ROUNDING * (size + float(np.abs(logs).sum()) + len(T))

    @classmethod
    def of(cls, S: Array, penalties: Array, T: Array) -> _Point | None:
        """None if T is not positive definite."""
        factor, failed = dpotrf(T.T, lower=1, clean=0)
        if failed:
            return None
        return cls(S, penalties, T, 2 * np.log(np.diagonal(factor)), factor)

    def inverse(self, *, roughly: bool = False) -> Array:
        """Of T, from its Cholesky factor, which is used up; shape (p, p)."""
        assert self._factor is not None  # only one that was handed its inverse has none
        factor, self._factor = self._factor, None
        return inverse(factor, roughly=roughly)

    def line_search(
        self, S: Array, penalties: Array, single: NDArray[np.float32], D: NDArray[np.float32]
    ) -> _Point | None:
        """The first of T + D, T + D / 2, ... that lowers the objective, rounding aside."""
        share = 1.0
        while share >= _SHORTEST:
            T = compiled(kernels.stepped)(self.T, single, D, share)
            moved = _Point.of(S, penalties, T)
            if moved is not None and moved.value <= self.value + self.rounding:
                return moved
            share /= 2
        return None


def _certified(S: Array, penalties: Array, at: _Point, W: Array, tol: float) -> tuple[Array, float]:
    """A point of the dual's box, and the duality gap there; infinite if it is not definite."""
    dual = compiled(kernels.in_box)(S, penalties, at.T, W)
    factor, failed = dpotrf(dual.T, lower=1, clean=0)
    if failed:
        return dual, math.inf
    gap = at.value - len(S) - 2 * float(np.log(np.diagonal(factor)).sum())
    if at.rounding > 0.01 * tol * len(S):  # the difference has lost the digits that it needs
        gap = duality_gap(at.T, dual)
    return dual, gap
