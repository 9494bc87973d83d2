"""Find the bin of every cell, and count bins; each cell independently of the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gramercy.common.machine import compiled
from gramercy.tables.counts.bin_guesses import (
    MAGNITUDE,
    SHIFT,
    Guesses,
    first_guesses,
    first_positions,
)

Array = NDArray[np.float64]
Bins = NDArray[np.uint16]
Counts = NDArray[np.int64]

_BLOCK = 256  # cells


@runtime_checkable
class NumberGrid(Protocol):
    """Bins of numbers: bin k is [edges[k], edges[k + 1]), and the last bin counts missing cells."""

    @property
    def edges(self) -> Array: ...


class LevelGrid(Protocol):
    """One bin for each level of a column, and a last one for all other cells."""

    @property
    def levels(self) -> int: ...


def bin_edges(grid: NumberGrid | LevelGrid) -> Array:
    """The edges of bins; those of levels are the integers, because cells are indices of levels."""
    return grid.edges if isinstance(grid, NumberGrid) else np.arange(grid.levels + 1.0)


class Binning:
    """Finds the bins of cells.

    Parameters
    ----------
    edges
        For each column, the increasing, finite edges of its bins; shapes (bins,). Bin k is
        [edges[k], edges[k + 1]). Cells outside are in the first or the last of these bins, and so
        is a cell that equals the last edge. One bin more, with index len(edges) - 1, counts cells
        that are missing or not finite.
    large
        Whether the table is large, so that compiled code pays off. The results are identical.

    Attributes
    ----------
    sizes
        Number of bins of each column.
    """

    def __init__(self, edges: Sequence[Array], *, large: bool = False) -> None:
        self.sizes = tuple(len(column) for column in edges)
        self.large = large
        # The bin of a cell is the number of inner edges that are at most the cell.
        self._inner = [column[1:-1] for column in edges]
        self._guesses = first_guesses(edges) if large else None
        self._missing = np.array(self.sizes) - 1
        self._firsts = first_positions(self.sizes)  # in joined histograms

    def bins(self, cells: Array) -> Bins:
        """The bin of every cell.

        Parameters
        ----------
        cells
            Shape (columns, rows); NaN where missing, and for levels, the index of the level.

        Returns
        -------
        ndarray of uint16, shape (columns, rows)
        """
        found = np.empty(cells.shape, np.uint16)
        if self._guesses is not None:
            cells = np.ascontiguousarray(cells)
            compiled(bins_kernel)(cells, self._guesses, self._missing, found)
            return found
        for column, inner, out in zip(cells, self._inner, found, strict=True):
            bins = np.searchsorted(inner, column, side="right")
            out[:] = np.where(np.isfinite(column), bins, len(inner) + 1)
        return found

    def zeros(self) -> Counts:
        """Empty histograms of all columns, joined; shape (sum of sizes,)."""
        return np.zeros(sum(self.sizes), np.int64)

    def count(self, bins: Bins, counts: Counts) -> None:
        """Add the bins of rows, shape (columns, rows), to joined histograms, in place."""
        if self.large:
            compiled(count_kernel)(bins, self._firsts, counts)
            return
        for column, first, size in zip(bins, self._firsts, self.sizes, strict=True):
            counts[first : first + size] += np.bincount(column, minlength=size)

    def split(self, counts: Counts) -> tuple[Counts, ...]:
        """A histogram for each column, from joined histograms."""
        return tuple(part.copy() for part in np.split(counts, self._firsts[1:]))


def bins_kernel(cells: Array, guesses: Guesses, missing: NDArray[np.int64], found: Bins) -> None:
    """Find bins by a first guess and a short binary search, without branches; for numba.

    A block of cells takes each step together, so that the processor works on several cells at once.
    Unsigned indices need no test for negative ones.
    """
    columns, rows = cells.shape
    distance, key, below = (
        np.empty(_BLOCK),
        np.empty(_BLOCK, np.uint32),
        np.empty(_BLOCK, np.uint32),
    )
    one, bits = np.uint32(1), distance.view(np.int64)
    for i in range(columns):
        inner, numbers = guesses.inner[guesses.firsts[i] :], guesses.numbers[guesses.tables[i] :]
        centre, least, reach = guesses.centres[i], guesses.least[i], guesses.reach[i]
        for start in range(0, rows, _BLOCK):
            m = min(_BLOCK, rows - start)
            column = cells[i, start : start + m]
            out = found[i, start : start + m]
            for k in range(m):
                distance[k] = column[k] - centre
            for k in range(m):
                near = min(max(((bits[k] & MAGNITUDE) >> SHIFT) - least, 0), reach - 1)
                key[k] = reach + near if distance[k] >= 0 else reach - 1 - near
            for k in range(m):
                below[k] = numbers[key[k]]  # of inner edges that are at most the cell
            for step in range(guesses.steps[i]):
                half = one << np.uint32(guesses.steps[i] - 1 - step)
                for k in range(m):
                    at_most = inner[below[k] + half - one] <= column[k]
                    below[k] += half if at_most else np.uint32(0)
            for k in range(m):
                out[k] = below[k] if math.isfinite(column[k]) else missing[i]


def count_kernel(bins: Bins, starts: NDArray[np.int64], counts: Counts) -> None:
    """Count the bins of every column; for numba."""
    columns, rows = bins.shape
    for i in range(columns):
        start = starts[i]
        for k in range(rows):
            counts[start + bins[i, k]] += 1
