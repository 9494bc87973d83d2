"""Which of several disjoint parts a row belongs to.

Parts compose in parallel, one release of each costing what one costs, only where the change of one
row leaves every other row in its part. Where a row is replaced, its place does that. Where a row is
present or absent, places move, and every row is assigned by randomness of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Parts = NDArray[np.int64]
Assign = Callable[[int], Parts]  # so many rows, the next of the table: the part of each


def by_place(parts: int) -> Assign:
    """In turn, by the place in the table: the i-th row, from 0, belongs to part i mod `parts`."""
    place = 0

    def assign(rows: int) -> Parts:
        nonlocal place
        found: Parts = np.arange(place, place + rows, dtype=np.int64) % parts
        place += rows
        return found

    return assign


def rows_by_place(rows: int, parts: int) -> list[int]:
    """How many of so many rows each part has, by place."""
    return [rows // parts + (part < rows % parts) for part in range(parts)]
