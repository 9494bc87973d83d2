"""Repair each row with public constants, so that n and the sensitivity hold for any data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.column import Column, Levels


@dataclass
class Repairs:
    """Numbers of repaired cells. For the steward only: they are exact functions of private data.

    Parameters
    ----------
    filled
        Cells that were missing, not finite, not numbers or not levels; shape (columns,).
    clamped
        Cells outside their bounds; shape (columns,).
    """

    filled: NDArray[np.int64]
    clamped: NDArray[np.int64]

    @classmethod
    def zeros(cls, columns: int) -> Repairs:
        """Zero repairs in every column."""
        return cls(np.zeros(columns, np.int64), np.zeros(columns, np.int64))

    def __add__(self, other: Repairs) -> Repairs:
        return Repairs(self.filled + other.filled, self.clamped + other.clamped)


def repair(
    cells: NDArray[np.float64],
    columns: Sequence[Column | Levels],
    repairs: Repairs,
    *,
    intercept: bool = False,
) -> NDArray[np.float64]:
    """Fill, clamp, centre and scale numbers; spread levels over columns of zeros and ones.

    Parameters
    ----------
    cells
        Shape (columns, rows). NaN where missing; for levels, the index of the level.
    columns
        The declared columns.
    repairs
        Counts, updated in place.
    intercept
        Whether a column of ones comes first.

    Returns
    -------
    ndarray of float64, shape (p, rows), finite
        (cell - centre) / scale, or zeros and ones for levels.
    """
    parts = [np.ones((1, cells.shape[1]))] if intercept else []
    for i, column in enumerate(columns):
        missing = ~np.isfinite(cells[i])
        if isinstance(column, Levels):
            repairs.filled[i] += np.count_nonzero(missing)
            indices = np.arange(len(column.levels))
            parts.append((cells[i] == indices[:, None]).astype(np.float64))
            continue
        filled = np.where(missing, column.effective_centre, cells[i])
        clamped = np.clip(filled, *column.limits)
        repairs.filled[i] += np.count_nonzero(missing)
        repairs.clamped[i] += np.count_nonzero(clamped != filled)
        parts.append(((clamped - column.effective_centre) / column.effective_scale)[None])
    return np.concatenate(parts)
