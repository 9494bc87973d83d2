"""Repair row by row with public constants, so that n and the sensitivity hold whatever the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schemas.contract import Column


@dataclass
class Repairs:
    """What was mended, for the steward alone: these counts are exact functions of private data.

    Parameters
    ----------
    filled
        Cells that were missing, not finite or not numbers, by column.
    clamped
        Cells beyond their bounds, by column.
    """

    filled: NDArray[np.int64]
    clamped: NDArray[np.int64]

    @classmethod
    def none(cls, p: int) -> Repairs:
        """Nothing mended yet, in p columns."""
        return cls(np.zeros(p, np.int64), np.zeros(p, np.int64))


def repair(
    cells: NDArray[np.float64], columns: Sequence[Column], repairs: Repairs
) -> NDArray[np.float64]:
    """Fill, clamp, centre and scale.

    Parameters
    ----------
    cells
        Shape (p, rows): one column of the table a row here. NaN where missing.
    columns
        The p declared columns.
    repairs
        Counts, added to in place.

    Returns
    -------
    ndarray of float64, shape (p, rows), finite
        (cell - centre) / scale.
    """
    scaled = np.empty_like(cells)
    for i, column in enumerate(columns):
        bad = ~np.isfinite(cells[i])
        kept = np.where(bad, column.middle, cells[i])
        inside = np.clip(kept, column.lower, column.upper)
        repairs.filled[i] += np.count_nonzero(bad)
        repairs.clamped[i] += np.count_nonzero(inside != kept)
        scaled[i] = (inside - column.middle) / column.spread
    return scaled
