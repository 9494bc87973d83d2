"""Integer rows: no floating-point number takes part in a sum, so none can leak through one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice, WholeNumbers

_STEPS = 8


def integer_rows(rows: NDArray[np.float64], lattice: Lattice) -> NDArray[np.float64]:
    """Round rows of the unit ball to the lattice: q = round(2^K c x).

    Parameters
    ----------
    rows
        Shape (p, rows), in the unit ball up to rounding.
    lattice
        K and c.

    Returns
    -------
    ndarray of float64, shape (p, rows)
        Whole numbers as they are; on any other lattice integers with sum of squares at most 2^(2K)
        in every row, whatever came in: a row that floating point left a hair outside loses units
        from its largest entry, and one that is not in the ball at all becomes the zero row.
    """
    if isinstance(lattice, WholeNumbers):
        return np.rint(rows)
    with np.errstate(invalid="ignore", over="ignore"):
        return in_ball(np.rint(rows * lattice.cell), lattice)


def in_ball(q: NDArray[np.float64], lattice: Lattice) -> NDArray[np.float64]:
    """See `integer_rows`: whole numbers, or nothing that makes sense, shape (p, rows)."""
    sound = (np.isfinite(q) & (np.abs(q) <= 2.0**lattice.bits)).all(axis=0)
    q = np.where(sound, q, 0.0)
    for _ in range(_STEPS):
        over = np.flatnonzero(_squares(q) > lattice.ball)
        if over.size == 0:
            return q
        largest = np.abs(q[:, over]).argmax(axis=0)
        q[largest, over] -= np.sign(q[largest, over])
    q[:, _squares(q) > lattice.ball] = 0.0
    return q


def _squares(q: NDArray[np.float64]) -> NDArray[np.int64]:
    """Sum of squares a row, exactly: at most p 2^(2K) < 2^63."""
    total = np.zeros(q.shape[1], dtype=np.int64)
    for entries in q:
        units = entries.astype(np.int64)
        total += units * units
    return total
