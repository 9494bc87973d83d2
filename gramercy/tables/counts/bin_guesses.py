"""First guesses of bins: from the leading bits of a cell, where in the edges to look for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

MAGNITUDE = (1 << 63) - 1  # all bits of a double but its sign
SHIFT = 52 - 5  # 32 keys for each octave


class Guesses(NamedTuple):
    """For each column, a table of first guesses, and the edges among which the search goes on.

    The key of a cell is the exponent and the leading bits of its distance from a centre, and its
    side of it. It increases with the cell, also where the distance is rounded. So all edges with
    smaller keys are at most the cell, none with larger keys is, and only those with the same key
    are left: one or two, because bins are equal around a centre, and octaves far from it.

    Attributes
    ----------
    inner
        The edges between bins; of each column, followed by so many infinite ones that a search
        over 2^steps - 1 edges stays among its own.
    firsts
        Position of each column's edges in `inner`.
    steps
        Number of steps of a binary search among the edges that have one key.
    centres
        From where distances are measured.
    least
        Leading bits of the distances that have the key nearest to the centre, or less.
    reach
        Number of keys on each side of the centre.
    numbers
        For each key, the number of edges with smaller keys.
    tables
        Position of each column's keys in `numbers`.
    """

    inner: Array
    firsts: Integers
    steps: Integers
    centres: Array
    least: Integers
    reach: Integers
    numbers: NDArray[np.uint16]
    tables: Integers


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
