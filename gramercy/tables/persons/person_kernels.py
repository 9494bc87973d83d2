"""The arithmetic of `persons` in compiled code, a block of rows at a time, while in cache.

All numbers are integers that doubles and 64 bits hold exactly, except for the factors, by which
each entry is multiplied as before: the results are identical to the last bit.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_BLOCK = 256  # rows


def scale_rows(q: Array, indices: Array, factors: Array) -> Array:
    """Multiply the rows of q in place, by their person's factor or zero, and round; for numba.

    Returns
    -------
    ndarray, shape (rows,)
        Sum of squares of every scaled row.
    """
    p, rows = q.shape
    squares = np.zeros(rows)
    factor = np.empty(_BLOCK)
    for start in range(0, rows, _BLOCK):
        stop = min(rows, start + _BLOCK)
        total = squares[start:stop]
        for k in range(len(total)):
            index = indices[start + k]
            factor[k] = 0.0 if math.isnan(index) else factors[np.int64(index)]
        for f in range(p):
            entries = q[f, start:stop]
            for k in range(len(entries)):
                x = np.rint(entries[k] * factor[k])
                entries[k] = x
                total[k] += x * x
    return squares


def add_rows(
    indices: Array,
    squares: Array | NDArray[np.uint64],
    most: int,
    person_squares: NDArray[np.uint64],
    person_rows: NDArray[np.int64],
) -> int:
    """Add rows to the sums of their persons, which saturate at `most`; for numba.

    Returns
    -------
    int
        Number of rows without a person.
    """
    without, limit = 0, np.uint64(most)
    for k in range(len(indices)):
        if math.isnan(indices[k]):
            without += 1
            continue
        person = np.int64(indices[k])
        person_squares[person] = min(person_squares[person] + np.uint64(squares[k]), limit)
        person_rows[person] += 1
    return without
