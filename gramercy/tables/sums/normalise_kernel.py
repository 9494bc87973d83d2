"""Repair, normalise and round a block of rows in one compiled pass, while it is in cache.

`repair`, `normalise` and `integers` explain the steps. This is the same
arithmetic, operation by operation, so the results are identical to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice
from gramercy.common.machine import compiled
from gramercy.schemas.column import Column, Levels
from gramercy.schemas.normalisation import Clip, Unit, Whole
from gramercy.tables.sums.integers import clamp_to_ball
from gramercy.tables.sums.normalise import LARGEST, LEAST, MAX_EXPONENT, MIN_EXPONENT
from gramercy.tables.sums.repair import Repairs, repair_constants

Array = NDArray[np.float64]

_BLOCK = 256  # rows
_INTERCEPT, _NUMBER = -1, -1
_UNIT, _CLIP, _WHOLE = 0, 1, 2


class NormaliseKernel:
    """From cells to integer rows; see `tables.sums.row_transform.RowTransform`."""

    def __init__(
        self,
        columns: Sequence[Column | Levels],
        intercept: bool,
        normalisation: Unit | Clip | Whole,
        lattice: Lattice,
    ) -> None:
        features = [(_INTERCEPT, _NUMBER)] if intercept else []
        for i, column in enumerate(columns):
            indices = range(len(column.levels)) if isinstance(column, Levels) else [_NUMBER]
            features += [(i, index) for index in indices]
        self._features = np.array(features, dtype=np.int64)
        self._constants = repair_constants(columns)
        self._kind, self._radius = _UNIT, 1.0
        if isinstance(normalisation, Whole):
            self._kind = _WHOLE
        elif isinstance(normalisation, Clip):
            self._kind, self._radius = _CLIP, normalisation.length
        self._lattice = lattice

    def __call__(self, cells: Array, repairs: Repairs) -> Array:
        """See `tables.sums.row_transform.RowTransform.integers`."""
        q = np.empty((len(self._features), cells.shape[1]))
        outside = self._is_outside(self._fill(q, cells, repairs))
        if outside.any():
            q[:, outside] = clamp_to_ball(q[:, outside], self._lattice)
        return q

    def squares(self, cells: Array, repairs: Repairs) -> Array:
        """See `tables.sums.row_transform.RowTransform.squares`."""
        one_block = np.empty((len(self._features), min(_BLOCK, cells.shape[1])))
        squares = self._fill(one_block, cells, repairs)
        outside = np.flatnonzero(self._is_outside(squares))
        if outside.size:
            q = self(cells[:, outside], Repairs.zeros(len(cells)))
            squares[outside] = (q * q).sum(axis=0)
        return squares

    def _fill(self, q: Array, cells: Array, repairs: Repairs) -> Array:
        squares: Array = compiled(normalise_kernel)(
            np.ascontiguousarray(cells),
            self._features,
            self._constants,
            self._kind,
            self._radius,
            self._lattice.unit_length,
            q,
            repairs.filled,
            repairs.clamped,
        )
        return squares

    def _is_outside(self, squares: Array) -> NDArray[np.bool_]:
        """Which rows are outside the ball, and must be clamped to it."""
        radius = np.inf if self._kind == _WHOLE else float(self._lattice.squared_radius)
        outside: NDArray[np.bool_] = ~(squares <= radius)
        return outside


def normalise_kernel(  # noqa: PLR0912, PLR0915  one loop over blocks
    cells: Array,
    features: NDArray[np.int64],
    constants: Array,
    kind: int,
    radius: float,
    unit_length: float,
    q: Array,
    filled: NDArray[np.int64],
    clamped: NDArray[np.int64],
) -> Array:
    """Transform cells to integer rows, a block of rows at a time, column by column; for numba.

    The rows fill q, of shape (p, rows). It may have fewer rows, and is then filled again by each
    block.

    Returns
    -------
    ndarray, shape (rows,)
        Sum of squares of every integer row, so that the caller can clamp those outside the ball.
    """
    p, rows = len(features), cells.shape[1]
    keeps_rows = q.shape[1] == rows
    row_squares = np.zeros(rows)
    squares, power, inverse = np.empty((3, _BLOCK))
    unscaled = kind == _WHOLE
    for start in range(0, rows, _BLOCK):
        m = min(_BLOCK, rows - start)
        first = start if keeps_rows else 0
        squares[:] = 0.0
        for f in range(p):
            i, level = features[f]
            out = q[f, first : first + m]
            if i == _INTERCEPT:
                for k in range(m):
                    out[k] = 1.0
                    squares[k] += 1.0
                continue
            column = cells[i, start : start + m]
            if level != _NUMBER:
                missing = 0
                for k in range(m):
                    out[k] = 1.0 if column[k] == level else 0.0
                    squares[k] += out[k]
                    missing += not math.isfinite(column[k])
                if level == 0:
                    filled[i] += missing
                continue
            lower, upper, centre, scale, lowest, highest = constants[i]
            missing, out_of_bounds = 0, 0
            for k in range(m):
                is_missing = not math.isfinite(column[k])
                value = centre if is_missing else column[k]
                within = min(max(value, lower), upper)
                missing += is_missing
                out_of_bounds += not is_missing and not lowest <= value <= highest
                x = (within - centre) / scale
                out[k] = x
                squares[k] += x * x
            filled[i] += missing
            clamped[i] += out_of_bounds
        if unscaled:
            for f in range(p):
                out = q[f, first : first + m]
                for k in range(m):
                    x = np.rint(out[k])
                    out[k] = x
                    row_squares[start + k] += x * x
            continue
        for k in range(m):
            power[k] = 1.0
            if LEAST <= squares[k] <= LARGEST:
                continue
            largest = 0.0
            for f in range(p):
                largest = max(largest, abs(q[f, first + k]))
            exponent = min(max(math.frexp(largest)[1], MIN_EXPONENT), MAX_EXPONENT)
            power[k] = math.ldexp(1.0, -exponent)
            squares[k] = 0.0
            for f in range(p):
                x = q[f, first + k] * power[k]
                squares[k] += x * x
        for k in range(m):
            length = math.sqrt(squares[k]) if squares[k] > 0 else 1.0
            inverse[k] = 1.0 / length
            # Zero marks a row within the clipping radius, which keeps its length.
            if kind == _CLIP and not length / power[k] > radius:
                inverse[k] = 0.0
            squares[k] = 0.0
        for f in range(p):
            out = q[f, first : first + m]
            if kind == _UNIT:
                for k in range(m):
                    x = np.rint(out[k] * power[k] * inverse[k] * unit_length)
                    out[k] = x
                    squares[k] += x * x
            else:
                for k in range(m):
                    short = inverse[k] == 0.0
                    unit = out[k] * power[k] * inverse[k]
                    x = np.rint((out[k] / radius if short else unit) * unit_length)
                    out[k] = x
                    squares[k] += x * x
        for k in range(m):
            row_squares[start + k] = squares[k]
    return row_squares
