"""Repair row by row with public constants, so that n and the sensitivity hold whatever the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.column import Column, Levels


@dataclass
class Repairs:
    """What was mended, for the steward alone: these counts are exact functions of private data.

    Parameters
    ----------
    filled
        Cells that were missing, not finite or not numbers, or no level, by column.
    clamped
        Cells beyond their bounds, by column.
    """

    filled: NDArray[np.int64]
    clamped: NDArray[np.int64]

    @classmethod
    def none(cls, columns: int) -> Repairs:
        """Nothing mended yet."""
        return cls(np.zeros(columns, np.int64), np.zeros(columns, np.int64))

    def __add__(self, other: Repairs) -> Repairs:
        """Those of both."""
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
        Shape (columns, rows): one column of the table a row here. NaN where missing; for levels,
        the place of the level.
    columns
        The declared columns.
    repairs
        Counts, added to in place.
    intercept
        Whether a row of ones comes first.

    Returns
    -------
    ndarray of float64, shape (p, rows), finite
        (cell - centre) / scale, and zeros and ones.
    """
    parts = [np.ones((1, cells.shape[1]))] if intercept else []
    for i, column in enumerate(columns):
        bad = ~np.isfinite(cells[i])
        if isinstance(column, Levels):
            repairs.filled[i] += np.count_nonzero(bad)
            places = np.arange(len(column.levels))
            parts.append((cells[i] == places[:, None]).astype(np.float64))
            continue
        kept = np.where(bad, column.middle, cells[i])
        inside = np.clip(kept, column.lower, column.upper)
        repairs.filled[i] += np.count_nonzero(bad)
        repairs.clamped[i] += np.count_nonzero(inside != kept)
        parts.append(((inside - column.middle) / column.spread)[None])
    return np.concatenate(parts)
