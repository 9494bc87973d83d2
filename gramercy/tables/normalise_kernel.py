"""Repair, normalisation and rounding of a block of rows in one pass, while it lies in cache.

`tables.repair`, `tables.normalise` and `tables.integers` say what is done and why; this is the same
arithmetic, operation by operation, so that it gives the same numbers to the last digit.
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
from gramercy.tables.integers import in_ball
from gramercy.tables.normalise import LEAST_POWER, MOST_POWER
from gramercy.tables.repair import Repairs

Array = NDArray[np.float64]

_BLOCK = 256  # rows
_INTERCEPT, _NUMBER = -1, -1
_UNIT, _CLIP, _WHOLE = 0, 1, 2


class Fused:
    """From cells to integer rows; see `tables.recipe.Recipe`."""

    def __init__(
        self,
        columns: Sequence[Column | Levels],
        intercept: bool,
        how: Unit | Clip | Whole,
        lattice: Lattice,
    ) -> None:
        features = [(_INTERCEPT, _NUMBER)] if intercept else []
        for i, column in enumerate(columns):
            places = range(len(column.levels)) if isinstance(column, Levels) else [_NUMBER]
            features += [(i, place) for place in places]
        self._features = np.array(features, dtype=np.int64)
        self._constants = np.array(
            [
                (0.0, 0.0, 0.0, 1.0)
                if isinstance(column, Levels)
                else (column.lower, column.upper, column.middle, column.spread)
                for column in columns
            ]
        )
        self._how = _WHOLE if isinstance(how, Whole) else _CLIP if isinstance(how, Clip) else _UNIT
        self._radius = how.radius if isinstance(how, Clip) else 1.0
        self._lattice = lattice

    def __call__(self, cells: Array, repairs: Repairs) -> Array:
        """See `tables.recipe.Recipe.integers`."""
        found: tuple[Array, NDArray[np.bool_]] = compiled(fused)(
            np.ascontiguousarray(cells),
            self._features,
            self._constants,
            self._how,
            self._radius,
            self._lattice.cell,
            float(self._lattice.ball),
            repairs.filled,
            repairs.clamped,
        )
        q, beyond = found
        if beyond.any():
            q[:, beyond] = in_ball(q[:, beyond], self._lattice)
        return q


def fused(  # noqa: PLR0912, PLR0915  one loop over blocks
    cells: Array,
    features: NDArray[np.int64],
    constants: Array,
    how: int,
    radius: float,
    cell: float,
    ball: float,
    filled: NDArray[np.int64],
    clamped: NDArray[np.int64],
) -> tuple[Array, NDArray[np.bool_]]:
    """Compiled; a block of rows at a time, column by column.

    Returns
    -------
    q
        Whole numbers, shape (p, rows).
    beyond
        Rows that are not in the ball, which are to be mended; shape (rows,).
    """
    p, rows = len(features), cells.shape[1]
    q = np.empty((p, rows))
    beyond = np.zeros(rows, np.bool_)
    largest, squares, power, inverse = np.empty((4, _BLOCK))
    whole = how == _WHOLE
    for start in range(0, rows, _BLOCK):
        m = min(_BLOCK, rows - start)
        for k in range(m):
            largest[k] = 0.0
            squares[k] = 0.0
        for f in range(p):
            i, place = features[f]
            out = q[f, start : start + m]
            if i == _INTERCEPT:
                for k in range(m):
                    out[k] = 1.0
                    largest[k] = max(largest[k], 1.0)
                continue
            column = cells[i, start : start + m]
            if place != _NUMBER:
                missing = 0
                for k in range(m):
                    out[k] = 1.0 if column[k] == place else 0.0
                    largest[k] = max(largest[k], out[k])
                    missing += not math.isfinite(column[k])
                if place == 0:
                    filled[i] += missing
                continue
            lower, upper, middle, spread = constants[i]
            missing, moved = 0, 0
            for k in range(m):
                bad = not math.isfinite(column[k])
                kept = middle if bad else column[k]
                inside = min(max(kept, lower), upper)
                missing += bad
                moved += inside != kept
                x = (inside - middle) / spread
                out[k] = x
                largest[k] = max(largest[k], abs(x))
            filled[i] += missing
            clamped[i] += moved
        if whole:
            for f in range(p):
                out = q[f, start : start + m]
                for k in range(m):
                    out[k] = np.rint(out[k])
            continue
        for k in range(m):
            exponent = min(max(math.frexp(largest[k])[1], LEAST_POWER), MOST_POWER)
            power[k] = math.ldexp(1.0, -exponent)
        for f in range(p):
            out = q[f, start : start + m]
            for k in range(m):
                x = out[k] * power[k]
                squares[k] += x * x
        for k in range(m):
            length = math.sqrt(squares[k]) if squares[k] > 0 else 1.0
            inverse[k] = 1.0 / length
            # Of clipped rows, those that stay as long as they are have no inverse.
            if how == _CLIP and not length / power[k] > radius:
                inverse[k] = 0.0
            squares[k] = 0.0
        for f in range(p):
            out = q[f, start : start + m]
            if how == _UNIT:
                for k in range(m):
                    x = np.rint(out[k] * power[k] * inverse[k] * cell)
                    out[k] = x
                    squares[k] += x * x
            else:
                for k in range(m):
                    short = inverse[k] == 0.0
                    unit = out[k] * power[k] * inverse[k]
                    x = np.rint((out[k] / radius if short else unit) * cell)
                    out[k] = x
                    squares[k] += x * x
        for k in range(m):
            beyond[start + k] = not squares[k] <= ball
    return q, beyond
