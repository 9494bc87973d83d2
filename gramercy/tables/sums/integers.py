"""Round rows to integers, so that sums are exact and leak nothing through floating point."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice, UnscaledLattice

_MAX_STEPS = 8
_SUM_ERROR = 2.0**-50  # relative, for every term of a sum of squares in doubles: above its bound


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
        On an `UnscaledLattice`, the rounded rows. On any other lattice, integers whose squares sum
        to at most 2^(2K) in every row, for any input: a row that floating point left slightly
        outside the ball loses units from its largest entry, and a row far outside becomes zero.
    """
    if isinstance(lattice, UnscaledLattice):
        return np.rint(rows)
    with np.errstate(invalid="ignore", over="ignore"):
        q = rows * lattice.unit_length
        return clamp_to_ball(np.rint(q, out=q), lattice)


def clamp_to_ball(q: NDArray[np.float64], lattice: Lattice) -> NDArray[np.float64]:
    """Rows in the ball, shape (p, rows), from integers or invalid numbers; see `integer_rows`.

    Doubles show which rows are certainly inside; the others, hardly any, are decided exactly.
    """
    certain = lattice.squared_radius * (1 - len(q) * _SUM_ERROR)
    with np.errstate(invalid="ignore", over="ignore"):
        doubtful = np.flatnonzero(~(np.einsum("ij,ij->j", q, q) <= certain))
    if doubtful.size:
        q[:, doubtful] = _clamp_exactly(q[:, doubtful], lattice)
    return q


def _clamp_exactly(q: NDArray[np.float64], lattice: Lattice) -> NDArray[np.float64]:
    valid = (np.isfinite(q) & (np.abs(q) <= 2.0**lattice.bits)).all(axis=0)
    q = np.where(valid, q, 0.0)
    for _ in range(_MAX_STEPS):
        outside = np.flatnonzero(_squares(q) > lattice.squared_radius)
        if outside.size == 0:
            return q
        largest = np.abs(q[:, outside]).argmax(axis=0)
        q[largest, outside] -= np.sign(q[largest, outside])
    q[:, _squares(q) > lattice.squared_radius] = 0.0
    return q


def _squares(q: NDArray[np.float64]) -> NDArray[np.int64]:
    """Exact sum of squares of each row, at most p 2^(2K) < 2^63."""
    total = np.zeros(q.shape[1], dtype=np.int64)
    for entries in q:
        units = entries.astype(np.int64)
        total += units * units
    return total
