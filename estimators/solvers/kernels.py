"""Inner loops of the solvers: plain functions, compiled by numba on first use.

They work on one block: S, penalties and T are symmetric, shape (p, p), T is positive definite, W is
its inverse. See `estimators.solvers.newton` for the mathematics, and `coordinate_descent` for
that of `lasso`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gramercy.common.machine import compiled as machine_code

Array = NDArray[np.float64]
Single = NDArray[np.float32]
Indices = NDArray[np.int64]
_GROUP = 16  # columns in a cache line, in single precision
# Fast arithmetic: sums in any order, without handling non-finite numbers; results are checked.
_FAST = {"descend"}
_LOOSELY = ("nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc")
_MAX_PASSES = 1000  # passes over the coefficients of one lasso problem
_MIN_CHANGE = 1e-15  # on a unit diagonal; smaller changes of a coefficient are rounding
_Function = TypeVar("_Function", bound=Callable[..., object])


def compiled(function: _Function) -> _Function:
    """Compile the function to machine code with numba."""
    return machine_code(function, *(_LOOSELY if function.__name__ in _FAST else ()))


def active_set(
    S: Array, penalties: Array, T: Array, W: Array, residual: Single, turn: int
) -> tuple[float, float, Indices, Indices]:
    """Violation of the optimality conditions by T, and the entries that may have to change.

    Writes to `residual` the gradient S - W of the smooth part for every entry; plus that of the
    penalty where T is not zero. It is computed in double precision, then rounded to single.

    Returns
    -------
    violation
        Largest violation of an optimality condition.
    squares
        Sum of the squares of all violations.
    starts, places
        The active pairs, the diagonal included: those of column j are (places[k], j) for k from
        starts[j] up to starts[j + 1]. A pair is listed in only one of its two columns, chosen by a
        hash of the pair and of `turn`.
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

    Parameters
    ----------
    matrices
        W, T, penalties, the residual of `active_set`; then D, symmetric, to which the step is
        written, and U = D W, by rows; shape (6, p, p). Zeros of T + D are exact in single
        precision.
    starts, places
        As returned by `active_set`.
    sweeps, enough, negligible
        It ends after `sweeps`, or with the first sweep that decreases the model by less than
        `negligible`, or by less than `enough` times the decrease of the first sweep.

    Returns
    -------
    int
        Number of sweeps.

    Notes
    -----
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


def lasso(W: Array, s: Array, penalties: Array, b: Array, j: int, share: float) -> Array:
    """Minimise b' W b / 2 - s' b + sum of penalties_k |b_k| over b with b_j = 0, in place.

    By coordinate descent from `b`; W has a unit diagonal. It ends when all changes are at most
    `share` times the largest change of the first pass, and b' W b < 1, or after many passes.

    Returns
    -------
    ndarray, shape (p,)
        W b.
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
