"""Find the bin of every cell, and count bins; each cell independently of the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gramercy.common.machine import compiled

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
        """The bin of every cell, shape (columns, rows).

        Cells are NaN where missing, and for levels, the index of the level.
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


Integers = NDArray[np.int64]

MAGNITUDE = (1 << 63) - 1  # all bits of a double but its sign
SHIFT = 52 - 5  # 32 keys for each octave


class Guesses(NamedTuple):
    """For each column, a table of first guesses, and the edges among which the search goes on.

    The key of a cell is the exponent and the leading bits of its distance from a centre, and its
    side of it. It increases with the cell, also where the distance is rounded. So all edges with
    smaller keys are at most the cell, none with larger keys is, and only those with the same key
    are left: one or two, because bins are equal around a centre, and octaves far from it.
    """

    # the edges between bins; of each column, followed by so many infinite ones that a search over
    # 2^steps - 1 edges stays among its own
    inner: Array
    firsts: Integers  # position of each column's edges in `inner`
    steps: Integers  # number of steps of a binary search among the edges that have one key
    centres: Array  # from where distances are measured
    # leading bits of the distances that have the key nearest to the centre, or less
    least: Integers
    reach: Integers  # number of keys on each side of the centre
    numbers: NDArray[np.uint16]  # for each key, the number of edges with smaller keys
    tables: Integers  # position of each column's keys in `numbers`


def first_guesses(edges: Sequence[Array]) -> Guesses:
    """Tables for the increasing, finite edges of each column's bins, shapes (bins,).

    The centre is zero or the edge in the middle, whichever leaves fewer edges with the same key.
    """
    zero, middle = np.zeros(len(edges)), np.array([column[len(column) // 2] for column in edges])
    around_zero, around_middle = (_Keys(edges, centres).most() for centres in (zero, middle))
    keys = _Keys(edges, np.where(around_middle < around_zero, middle, zero))
    steps = np.array([int(number).bit_length() for number in keys.most()])
    padded = [
        np.append(column[1:-1], np.full((1 << count) - 1, np.inf))
        for column, count in zip(edges, steps, strict=True)
    ]
    return Guesses(
        np.concatenate(padded),
        first_positions([len(column) for column in padded]),
        steps,
        keys.centres,
        keys.least,
        keys.reach,
        keys.numbers(),
        keys.tables,
    )


class _Keys:
    """From which key on each edge counts, and how many edges have the same key.

    For all columns together, with their tables joined, and their edges but the last ones, beyond
    which there is no bin. In the place of each first edge is the beginning of the column's table.
    """

    def __init__(self, edges: Sequence[Array], centres: Array) -> None:
        sizes, joined = np.array([len(column) for column in edges]), np.concatenate(edges)
        firsts = first_positions(sizes)
        with np.errstate(over="ignore"):  # an infinite distance has a key like any other
            distances = joined - np.repeat(centres, sizes)
        bits = (distances.view(np.int64) & MAGNITUDE) >> SHIFT
        self.centres = centres
        self.least = np.minimum.reduceat(np.where(distances == 0, MAGNITUDE, bits), firsts) - 1
        self.reach = np.maximum.reduceat(bits, firsts) - self.least + 1
        self.tables = first_positions(2 * self.reach)
        near = np.maximum(bits - np.repeat(self.least, sizes), 0)
        tables, reach = np.repeat(self.tables, sizes), np.repeat(self.reach, sizes)
        # A table begins with no edge, and an edge counts from the key behind its own.
        begins = tables + 1 + np.where(distances >= 0, reach + near, reach - 1 - near)
        begins[firsts] = self.tables
        used = np.delete(np.arange(len(joined)), firsts + sizes - 1)
        self._begins, self._numbers = begins[used], used - np.repeat(firsts, sizes - 1)
        self._firsts = first_positions(sizes - 1)

    def most(self) -> Integers:
        """The largest number of edges with the same key, for each column; at least one."""
        new = np.diff(self._begins, prepend=-1) > 0
        new[self._firsts] = True  # a table may end where the last edges of its column count
        starts = np.flatnonzero(new)
        lengths = np.diff(starts, append=len(new))
        return np.maximum.reduceat(lengths, np.searchsorted(starts, self._firsts))

    def numbers(self) -> NDArray[np.uint16]:
        """For each key, the number of inner edges of its column with smaller keys."""
        keys = np.diff(self._begins, append=2 * int(self.reach.sum()))
        return np.repeat(self._numbers.astype(np.uint16), keys)


def first_positions(sizes: Sequence[int] | Integers) -> Integers:
    """Position of each part, where parts of these sizes are joined."""
    return np.cumsum([0, *sizes])[:-1]
