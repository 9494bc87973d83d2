"""Exact sums over rows: Gram matrices and row counts of parts, and repair counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice, UnscaledLattice
from gramercy.tables.sums.blocks import cache_slices
from gramercy.tables.sums.gram import ExactGram
from gramercy.tables.sums.parts import PartNumbers, Parts
from gramercy.tables.sums.repair import Repairs
from gramercy.tables.sums.row_transform import RowTransform

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Sum:
    """The sum over the rows of a table or of one part of it. Private.

    Parameters
    ----------
    gram
        Exact Gram matrix of the integer rows, shape (p, p). None for an `UnscaledLattice`, where
        squares are unbounded and only rows are counted.
    rows
        Exact number of rows.
    """

    gram: NDArray[Any] | None
    rows: int

    def __add__(self, other: Sum) -> Sum:
        """The sum over disjoint rows, in 64-bit integers if it fits, else in Python integers."""
        first, second = self.gram, other.gram
        if first is None or second is None:
            return Sum(None, self.rows + other.rows)
        # No entry of a Gram matrix exceeds its largest diagonal entry.
        fits = int(np.diag(first).max()) + int(np.diag(second).max()) < 1 << 62
        gram = first + second if fits else first.astype(object) + second
        return Sum(gram, self.rows + other.rows)


def row_slices(lattice: Lattice, rows: int) -> Iterator[slice]:
    """Slices of the rows, small enough for the cache and for squares that sum to at most 2^53."""
    return cache_slices(lattice.p, rows, (1 << 53) // lattice.squared_radius)


class SummingWorker:
    """Sums the rows that one thread receives.

    Parameters
    ----------
    transform
        Turns cells into integer rows.
    parts
        The parts of the table, which are summed separately.
    """

    def __init__(self, transform: RowTransform, parts: Parts) -> None:
        self._transform, self._parts = transform, parts
        unscaled, lattice = isinstance(transform.lattice, UnscaledLattice), transform.lattice
        self._grams = [None if unscaled else ExactGram(lattice) for _ in range(parts.count)]
        self._rows = np.zeros(parts.count, dtype=np.int64)
        self.repairs = Repairs.zeros(len(transform.columns))

    def add(self, cells: Array, fold: PartNumbers | None = None) -> None:
        """Add rows of cells; see `Parts.split`."""
        for part, own in self._parts.split(cells, fold):
            for rows in row_slices(self._transform.lattice, own.shape[1]):
                self._add_integers(part, self._integers(own[:, rows]))

    def _integers(self, cells: Array) -> Array:
        return self._transform.integers(cells, self.repairs)

    def _add_integers(self, part: int, q: Array) -> None:
        self._rows[part] += q.shape[1]
        gram = self._grams[part]
        if gram is not None:
            gram.add(q)

    def sums(self) -> list[Sum]:
        """The sum of every part."""
        grams = [None if gram is None else gram.matrix() for gram in self._grams]
        return [Sum(gram, int(rows)) for gram, rows in zip(grams, self._rows, strict=True)]
