"""Which of several disjoint parts a row belongs to.

Parts compose in parallel, one release of each costing what one costs, only where the change of one
row leaves every other row in its part. Where a row is replaced, its place does that. Where a row is
present or absent, places move, and every row is assigned by randomness of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Parts = NDArray[np.int64]
Assign = Callable[[int], Parts]  # so many rows, the next of the table: the part of each


@dataclass
class ByPlace:
    """In turn, by the place in the table: the i-th row, from 0, belongs to part i mod `parts`."""

    parts: int
    place: int = 0

    def __call__(self, rows: int) -> Parts:
        found: Parts = np.arange(self.place, self.place + rows, dtype=np.int64) % self.parts
        self.place += rows
        return found


def rows_by_place(rows: int, parts: int) -> list[int]:
    """How many of so many rows each part has, by place."""
    return [rows // parts + (part < rows % parts) for part in range(parts)]
