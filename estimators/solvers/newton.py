"""The graphical lasso by proximal Newton steps.

Hsieh, Sustik, Dhillon and Ravikumar (2014), "QUIC: quadratic approximation for sparse inverse
covariance estimation". With W the inverse of T, the step D minimises the quadratic model

tr((S - W) D) + tr(W D W D) / 2 + sum of penalties_ij |T_ij + D_ij|

over the nonzero entries of T, and those whose |S_ij - W_ij| exceeds their penalty. The model is
minimised by coordinate descent in single precision, with the columns in random order (a fixed order
takes many times the steps), accurately enough that two or three Newton steps suffice on a path, and
no more accurately than the gap that was asked for. Double precision is used for T and its Cholesky
factorisation, the objective and the duality gap.

The loops over entries, at the end of this module, are plain functions that numba compiles on first
use. They work on one block: S, penalties and T are symmetric, shape (p, p), T is positive definite,
W is its inverse.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrmm, strmm
from scipy.linalg.lapack import dlauum, dpotrf, dtrtri, slauum, strtri

from gramercy.common.machine import can_compile, compiled
from gramercy.estimators.solvers.block import (
    ROUNDING,
    Outcome,
    WarmStart,
    allowed_violation,
    certificate,
    duality_gap,
)

Array = NDArray[np.float64]
Single = NDArray[np.float32]
Indices = NDArray[np.int64]

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
_GROUP = 16  # columns in a cache line, in single precision
_LEAF = 64  # columns whose triangle is inverted by LAPACK; see `inverse`
# Fast arithmetic of `descend`: sums in any order, without handling non-finite numbers; results are
# checked.
_LOOSELY = ("nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc")


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
        violation, squares, starts, places = compiled(active_set)(
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
        enough = min(_LAST_DECREASE * max(1, len(places) / p / _FEW_PAIRS), _MOST_LAST_DECREASE)
        negligible = 0.0 if conditions else _NEGLIGIBLE * tol * p
        steps = compiled(descend, *_LOOSELY) if can_compile() else numpy_descend
        steps(matrices, starts, places, _MAX_SWEEPS, enough, negligible)
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
        self.linear, size = compiled(linear)(S, penalties, T)
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
            T = compiled(step_from)(self.T, single, D, share)
            moved = _Point.of(S, penalties, T)
            if moved is not None and moved.value <= self.value + self.rounding:
                return moved
            share /= 2
        return None


def _certified(S: Array, penalties: Array, at: _Point, W: Array, tol: float) -> tuple[Array, float]:
    """A dual point and its duality gap, which is infinite if it is not positive definite."""
    dual = compiled(dual_point)(S, penalties, at.T, W)
    factor, failed = dpotrf(dual.T, lower=1, clean=0)
    if failed:
        return dual, math.inf
    gap = at.value - len(S) - 2 * float(np.log(np.diagonal(factor)).sum())
    if at.rounding > 0.01 * tol * len(S):  # cancellation
        gap = duality_gap(at.T, dual)
    return dual, gap


def inverse(factor: Array, *, single_precision: bool = False) -> Array:
    """Inverse of the matrix with this lower Cholesky factor; symmetric, shape (p, p).

    LAPACK inverts the triangle by block columns, at half the speed of matrix products or less.
    Divided recursively into halves, nearly all of the work is matrix products:

    inverse of (A 0; B C) = (a 0; -c B a, c), with a and c the inverses of A and C

    `factor`: Fortran order, shape (p, p). It is overwritten; entries above the diagonal are not
    read. `single_precision`: whether to use single precision, in half the time.
    """
    L = factor.astype(np.float32) if single_precision else factor
    _invert(L)
    squared = slauum if single_precision else dlauum
    W: Array = squared(L, lower=1, overwrite_c=1)[0].T.astype(np.float64, copy=False)
    compiled(mirror_upper)(W)
    return W


def _invert(L: NDArray[Any]) -> None:
    """Invert the lower triangle, in place."""
    p, single = len(L), L.dtype == np.float32
    trtri, trmm = (strtri, strmm) if single else (dtrtri, dtrmm)
    if p <= _LEAF:
        L[:] = trtri(L, lower=1)[0]
        return
    half = p // 2
    A, B, C = L[:half, :half], L[half:, :half], L[half:, half:]
    _invert(A)
    _invert(C)
    B[:] = trmm(-1.0, C, trmm(1.0, A, B, side=1, lower=1), lower=1, overwrite_b=1)


def active_set(
    S: Array, penalties: Array, T: Array, W: Array, residual: Single, turn: int
) -> tuple[float, float, Indices, Indices]:
    """Violation of the optimality conditions by T, and the entries that may have to change.

    Writes to `residual` the gradient S - W of the smooth part for every entry; plus that of the
    penalty where T is not zero. It is computed in double precision, then rounded to single.

    `violation`: largest violation of an optimality condition. `squares`: sum of the squares of all
    violations. `starts`, `places`: the active pairs, the diagonal included: those of column j are
    (places[k], j) for k from starts[j] up to starts[j + 1]. A pair is listed in only one of its two
    columns, chosen by a hash of the pair and of `turn`.
    """
    p = len(S)
    mine = np.zeros((p, p), np.bool_)
    starts = np.zeros(p + 1, np.int64)
    violation, squares = 0.0, 0.0
    for i in range(p):
        for j in range(i + 1):
            left, t = S[i, j] - W[i, j], T[i, j]
            if t == 0 and i != j:
                missed = abs(left) - penalties[i, j]
            else:
                left += math.copysign(penalties[i, j], t)
                missed = abs(left)
            residual[i, j] = residual[j, i] = left
            if missed > 0:
                violation = max(violation, missed)
                squares += missed * missed * (1 if i == j else 2)
            if t != 0 or missed > 0:
                if ((i * 40_503 + j * 30_011 + turn * 10_007) * 2_654_435_761 >> 15) & 1:
                    mine[i, j] = True
                    starts[i + 1] += 1
                else:
                    mine[j, i] = True
                    starts[j + 1] += 1
    for j in range(p):
        starts[j + 1] += starts[j]
    places = np.empty(starts[p], np.int64)
    k = 0
    for j in range(p):
        for i in range(p):
            if mine[j, i]:
                places[k] = i
                k += 1
    return violation, squares, starts, places


def descend(  # noqa: PLR0912, PLR0915  one loop: a call to another function would cost its speed
    matrices: Single,
    starts: Indices,
    places: Indices,
    sweeps: int,
    enough: float,
    negligible: float,
) -> int:
    """The Newton step: minimises the quadratic model by coordinate descent.

    `matrices`: W, T, penalties, the residual of `active_set`; then D, symmetric, to which the step
    is written, and U = D W, by rows; shape (6, p, p). Zeros of T + D are exact in single precision.
    `starts`, `places`: as returned by `active_set`. `sweeps`, `enough`, `negligible`: it ends after
    `sweeps`, or with the first sweep that decreases the model by less than `negligible`, or by less
    than `enough` times the decrease of the first sweep. Returns the number of sweeps.

    Every sweep has its own random order of the columns, in groups of neighbours, which share cache
    lines. (A linear congruential generator is enough: the order affects only the speed.)

    u = U e_j is gathered once for each column. While entries of that column change, by m_i,
    W D W e_j is W u + W_jj z + c W e_j, with z = sum of m_i W e_i, and c = sum of m_i W_ij off the
    diagonal. So only z and c have to be updated. Where T_ij is not zero and keeps its sign, D_ij is
    computed from the full residual, which is small near the minimiser, so that single precision
    suffices.
    """
    # One by one: numba takes what is unpacked from an array for strided, and the loops are slow.
    W, T, penalties = matrices[0], matrices[1], matrices[2]
    residual, D, U = matrices[3], matrices[4], matrices[5]
    p = len(W)
    D[:], U[:] = 0, 0
    u, z, g, moves = np.empty((4, p), np.float32)
    count = (p + _GROUP - 1) // _GROUP
    order = np.arange(count)
    state = 20_161
    first = 0.0
    sweep = 0
    for sweep in range(sweeps):
        gained = 0.0
        for k in range(count - 1, 0, -1):
            state = (state * 1_103_515_245 + 12_345) & 0x7FFFFFFF
            other = (state >> 8) % (k + 1)
            order[k], order[other] = order[other], order[k]
        for place in range(count * _GROUP):
            j = order[place // _GROUP] * _GROUP + place % _GROUP
            if j >= p:
                continue
            a = starts[j]
            m = starts[j + 1] - a
            w, own = W[j], W[j, j]
            for k in range(p):
                u[k] = U[k, j]
                z[k] = 0
            crossed = np.float32(0)
            for s in range(m):
                i = places[a + s]
                row, total = W[i], np.float32(0)
                for k in range(p):
                    total += row[k] * u[k]
                g[s] = residual[j, i] + total
                moves[s] = 0
            moved = False
            for _ in range(2):
                again = False
                for s in range(m):
                    i = places[a + s]
                    h = own * own if i == j else w[i] * w[i] + W[i, i] * own
                    t, d, q = T[j, i], D[j, i], penalties[j, i]
                    slope = g[s] + own * z[i] + crossed * w[i]
                    if t == 0 and i != j:
                        x = d - slope / h
                        new = max(x - q / h, np.float32(0)) + min(x + q / h, np.float32(0))
                    else:
                        sign = np.float32(1) if t > 0 else np.float32(-1)
                        new = d - slope / h
                        if sign * (t + new) <= 0:
                            new += np.float32(2) * sign * q / h
                            if sign * (t + new) >= 0:
                                new = -t
                    step = new - d
                    if step != 0:
                        gained += step * step * h
                        again = True
                        moves[s] += step
                        D[j, i] = new
                        if i != j:
                            crossed += step * w[i]
                        row = W[i]
                        for k in range(p):
                            z[k] += step * row[k]
                if not again:
                    break
                moved = True
            if moved:
                mine = U[j]
                for s in range(m):
                    i, step = places[a + s], moves[s]
                    if step != 0 and i != j:
                        D[i, j] = D[j, i]
                        theirs = U[i]
                        for k in range(p):
                            theirs[k] += step * w[k]
                for k in range(p):
                    mine[k] += z[k]
        if sweep == 0:
            first = gained
        if gained <= max(enough * first, negligible):
            break
    return sweep + 1


@np.errstate(all="ignore")  # non-finite numbers are detected later, as in compiled code
def numpy_descend(
    matrices: Single,
    starts: Indices,
    places: Indices,
    sweeps: int,
    enough: float,
    negligible: float,
) -> int:
    """`descend` without numba: the same steps; results differ by rounding only."""
    W, T, penalties, residual, D, U = matrices
    p = len(W)
    D[:], U[:] = 0, 0
    groups = np.arange((p + _GROUP - 1) // _GROUP)
    state, first, sweep = 20_161, 0.0, 0
    for sweep in range(sweeps):
        for k in range(len(groups) - 1, 0, -1):
            state = (state * 1_103_515_245 + 12_345) & 0x7FFFFFFF
            swap = (state >> 8) % (k + 1)
            groups[[k, swap]] = groups[[swap, k]]
        columns = (groups[:, None] * _GROUP + np.arange(_GROUP)).ravel()
        decrease = sum(
            _numpy_column(W, T, penalties, residual, D, U, j, places[starts[j] : starts[j + 1]])
            for j in columns[columns < p].tolist()
        )
        first = first if sweep else decrease
        if decrease <= max(enough * first, negligible):
            break
    return sweep + 1


def _numpy_column(
    W: Single,
    T: Single,
    penalties: Single,
    residual: Single,
    D: Single,
    U: Single,
    j: int,
    active: Indices,
) -> float:
    """Update the active entries of a column, D and U in place; returns the decrease."""
    w, own, rows = W[j], float(W[j, j]), W[active]
    among, pulls = rows[:, active], w[active]
    curvatures = np.where(active == j, own * own, pulls**2 + np.diagonal(among) * own)
    slopes = residual[j, active] + rows @ U[:, j]
    facts = (active, T[j, active], penalties[j, active], curvatures, slopes, pulls)
    entries = list(zip(*(each.tolist() for each in facts), strict=True))
    found, z = D[j, active].tolist(), np.zeros(len(active), np.float32)
    moves, crossed, gained = np.zeros(len(active), np.float32), 0.0, 0.0
    for _ in range(2):
        again = False
        for s, (i, t, q, h, slope, pull) in enumerate(entries):
            least = found[s] - (slope + own * float(z[s]) + crossed * pull) / h
            if t == 0 and i != j:
                new = max(least - q / h, 0.0) + min(least + q / h, 0.0)
            else:
                sign = 1.0 if t > 0 else -1.0
                new = least
                if sign * (t + new) <= 0:
                    new += 2 * sign * q / h
                    if sign * (t + new) >= 0:
                        new = -t
            step = new - found[s]
            if step != 0:
                again = True
                gained += step * step * h
                found[s] = new
                moves[s] += step
                crossed += step * pull if i != j else 0.0
                z += np.float32(step) * among[s]
        if not again:
            break
    if moves.any():
        D[j, active] = D[active, j] = found
        others = active != j
        U[active[others]] += np.outer(moves[others], w)
        U[j] += moves @ rows
    return gained


def step_from(T: Array, single: Single, D: Single, share: float) -> Array:
    """T + share D; a full step has exact zeros where T + D is zero in single precision."""
    p = len(T)
    X = np.empty((p, p))
    for i in range(p):
        for j in range(i + 1):
            gone = share == 1 and single[i, j] + D[i, j] == 0
            X[i, j] = X[j, i] = 0.0 if gone else T[i, j] + share * D[i, j]
    return X


def linear(S: Array, penalties: Array, T: Array) -> tuple[float, float]:
    """tr(S T) + sum of penalties_ij |T_ij|, and the sum of the absolute values of its terms."""
    p = len(S)
    total, size = 0.0, 0.0
    for i in range(p):
        row, sizes = S[i, i] * T[i, i] / 2, abs(S[i, i] * T[i, i]) / 2
        for j in range(i):
            smooth, paid = S[i, j] * T[i, j], penalties[i, j] * abs(T[i, j])
            row += smooth + paid
            sizes += abs(smooth) + paid
        total += row
        size += sizes
    return 2 * total, 2 * size


def dual_point(S: Array, penalties: Array, T: Array, W: Array) -> Array:
    """W projected onto the dual's box, and on its boundary where T is not zero."""
    p = len(S)
    V = np.empty((p, p))
    for i in range(p):
        for j in range(i):
            q, t = penalties[i, j], T[i, j]
            away = math.copysign(q, t) if t != 0 else min(max(W[i, j] - S[i, j], -q), q)
            V[i, j] = V[j, i] = S[i, j] + away
        V[i, i] = S[i, i]
    return V


def mirror_upper(upper: Array) -> None:
    """Copy the upper triangle to the lower one, in place."""
    for i in range(len(upper)):
        for j in range(i):
            upper[i, j] = upper[j, i]
