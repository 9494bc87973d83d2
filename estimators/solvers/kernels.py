"""The solvers' inner loops: plain functions, compiled by numba when first asked for.

They are about one block: S, penalties and T symmetric, shape (p, p), T positive definite, W its
inverse. `estimators.solvers.newton` has the mathematics, and of `lasso` `coordinate_descent`.
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
Places = NDArray[np.int64]
_GROUP = 16  # columns of single precision in a cache line
# Sums in any order, and no thought of what is not finite: what they give is checked later.
_FAST = {"descend"}
_LOOSELY = ("nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc")
_PASSES = 1000  # over the coefficients of one lasso
_LEAST = 1e-15  # of a unit diagonal: what a coefficient may still want to move by rounding
_Function = TypeVar("_Function", bound=Callable[..., object])


def compiled(function: _Function) -> _Function:
    """The same function as machine code."""
    return machine_code(function, *(_LOOSELY if function.__name__ in _FAST else ()))


def survey(
    S: Array, penalties: Array, T: Array, W: Array, turn: int
) -> tuple[float, float, Single, Places, Places]:
    """What is wrong with T, and where it may have to move.

    Returns
    -------
    violation
        Largest entry of what keeps T from being the minimiser, by size.
    squares
        The sum of the squares of all of them.
    residual
        Of every entry, its smooth gradient S - W, and where T has an entry, its whole one; shape
        (p, p). In single precision, but rounded only once it has been subtracted.
    starts, places
        The pairs that may move, the diagonal among them: those of column j are (places[k], j) for
        k from starts[j] up to starts[j + 1]. A pair is listed once, in one of its two columns:
        which is settled by a hash of it and of `turn`.
    """
    p = len(S)
    residual = np.empty((p, p), np.float32)
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
    return violation, squares, residual, starts, places


def descend(  # noqa: PLR0912, PLR0915  one loop: a call to another function would cost its speed
    W: Single,
    T: Single,
    penalties: Single,
    residual: Single,
    starts: Places,
    places: Places,
    sweeps: int,
    enough: float,
) -> tuple[Single, int]:
    """Where T should move: the least of the quadratic model, by coordinate descent.

    It ends after so many `sweeps`, or with the first that lowers the model by less than the share
    `enough` of what the first of all did.

    Returns
    -------
    D
        Symmetric, shape (p, p). Where T + D is zero, it is exactly zero in single precision.
    sweeps
        As many as it took.

    Notes
    -----
    Every sweep has its own random order of the columns, a group of neighbours at a time, which
    share cache lines. (A plain congruential generator: the order decides nothing but the speed.)

    U = D W is kept row by row, and u = U e_j gathered once a column. While entries of that column
    move, by m_i, W D W e_j is W u + W_jj z + c W e_j, with z = sum of m_i W e_i, and c = sum of
    m_i W_ij off the diagonal: so only z and c have to follow. Where T_ij is not zero and keeps its
    sign, D_ij is found from the whole residual, which is small near the minimiser: that keeps its
    digits in single precision.
    """
    p = len(W)
    D, U = np.zeros((p, p), np.float32), np.zeros((p, p), np.float32)
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
        if gained <= enough * first:
            break
    return D, sweep + 1


def stepped(T: Array, single: Single, D: Single, share: float) -> Array:
    """T + share D; a whole step leaves exact zeros where single-precision T + D has them."""
    p = len(T)
    X = np.empty((p, p))
    for i in range(p):
        for j in range(i + 1):
            gone = share == 1 and single[i, j] + D[i, j] == 0
            X[i, j] = X[j, i] = 0.0 if gone else T[i, j] + share * D[i, j]
    return X


def linear(S: Array, penalties: Array, T: Array) -> tuple[float, float]:
    """tr(S T) + sum of penalties_ij |T_ij|, and the sum of the sizes of its terms."""
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


def in_box(S: Array, penalties: Array, T: Array, W: Array) -> Array:
    """The point of the dual's box that is W where it can be, on the border where T has an entry."""
    p = len(S)
    V = np.empty((p, p))
    for i in range(p):
        for j in range(i):
            q, t = penalties[i, j], T[i, j]
            away = math.copysign(q, t) if t != 0 else min(max(W[i, j] - S[i, j], -q), q)
            V[i, j] = V[j, i] = S[i, j] + away
        V[i, i] = S[i, i]
    return V


def mirrored(upper: Array) -> None:
    """Copy what is above the diagonal to below it, in place."""
    for i in range(len(upper)):
        for j in range(i):
            upper[i, j] = upper[j, i]


def lasso(W: Array, s: Array, penalties: Array, b: Array, j: int, share: float) -> Array:
    """Minimise b' W b / 2 - s' b + sum of penalties_k |b_k| over b with b_j = 0, in place.

    By coordinate descent from `b` on; W has a unit diagonal. It ends when no coordinate wants to
    move by more than a `share` of what the first pass wanted, and b' W b < 1, or after many passes.

    Returns
    -------
    ndarray, shape (p,)
        W b.
    """
    p = len(s)
    rest = s - W @ b
    target = _LEAST
    for turn in range(_PASSES):
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
