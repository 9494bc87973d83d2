"""Coordinate descent for a Newton step by NumPy, for installations without numba."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Single = NDArray[np.float32]
Indices = NDArray[np.int64]
_GROUP = 16


@np.errstate(all="ignore")  # non-finite numbers are detected later, as in compiled code
def descend(
    matrices: Single,
    starts: Indices,
    places: Indices,
    sweeps: int,
    enough: float,
    negligible: float,
) -> int:
    """The same steps as `kernels.descend`, in the same order; results differ by rounding only."""
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
            _column(W, T, penalties, residual, D, U, j, places[starts[j] : starts[j + 1]])
            for j in columns[columns < p].tolist()
        )
        first = first if sweep else decrease
        if decrease <= max(enough * first, negligible):
            break
    return sweep + 1


def _column(
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
