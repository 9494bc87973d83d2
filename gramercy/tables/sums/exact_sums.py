"""Exact sums over rows, the same for any order, batch size and threads: Gram matrices, row counts.

A table may have several parts, which are summed separately: groups, and folds within each group.
The group of a row is the level in one of its own cells. Its fold is drawn at random: folds compose
in parallel (releasing all of them costs as much as releasing one) only if changing a row leaves
every other row in its fold, and a row's position does not ensure that. Where a value decides which
file a row is in, changing that value moves the rows that follow. So every row draws its fold
independently (`mechanisms.sampling.sampler.uniform_integers`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from gramercy.common.lattice import Lattice, UnscaledLattice
from gramercy.schemas.facts import LevelsFacts
from gramercy.tables.batches import cache_slices
from gramercy.tables.sums.row_transform import Repairs, RowTransform

# Columns from which the product takes nearly all of the time: one thread adds in place, with BLAS
# on all cores, and there is one matrix instead of one for each thread.
WIDE = 500


class ExactGram:
    """Adds up q q^T over integer rows.

    BLAS multiplies in double precision, over at most 2^53 / 2^(2K) rows: every partial sum is an
    integer below 2^53, and therefore exact in any order. Products are then added as 64-bit
    integers, and moved to Python integers before those could overflow.
    """

    def __init__(self, lattice: Lattice) -> None:
        self._block = max(1, (1 << 53) // lattice.squared_radius)
        self._max_int64_rows = (1 << 62) // lattice.squared_radius
        # NumPy multiplies while other threads run, which SciPy's `dsyrk` does not, but it needs
        # room for a product.
        self._product = np.empty((lattice.p, lattice.p)) if lattice.p < WIDE else None
        # Lower triangles: products in doubles, sums in int64, sums in Python integers.
        self._products = np.zeros((lattice.p, lattice.p), order="F")
        self._int64_sum = np.zeros((lattice.p, lattice.p), dtype=np.int64)
        self._python_sum: NDArray[Any] | None = None
        self._product_rows = self._int64_rows = 0
        self.rows = 0

    def add(self, q: NDArray[np.float64]) -> None:
        """Add integer rows, shape (p, rows)."""
        for start in range(0, q.shape[1], self._block):
            block = q[:, start : start + self._block]
            if self._product_rows + block.shape[1] > self._block:
                self._flush()
            if self._product is None:
                self._products = dsyrk(
                    1.0, block.T, 1.0, self._products, trans=1, lower=1, overwrite_c=1
                )
            else:
                self._products += np.matmul(block, block.T, out=self._product)
            self._product_rows += block.shape[1]
        self.rows += q.shape[1]

    def matrix(self) -> NDArray[Any]:
        """The symmetric sum, shape (p, p): int64, or Python integers beyond its range."""
        self._flush()
        lower = self._int64_sum if self._python_sum is None else self._python_sum + self._int64_sum
        return np.tril(lower) + np.tril(lower, -1).T

    def _flush(self) -> None:
        """Add the products to the integers, and those to Python integers before they overflow."""
        if self._int64_rows + self._product_rows > self._max_int64_rows:
            moved = self._int64_sum.astype(object)
            self._python_sum = moved if self._python_sum is None else self._python_sum + moved
            self._int64_sum[:] = 0
            self._int64_rows = 0
        self._int64_sum += self._products.astype(np.int64)
        self._int64_rows += self._product_rows
        self._products[:] = 0
        self._product_rows = 0


Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Sum:
    """The sum over the rows of a table or of one part of it. Private."""

    # Exact Gram matrix of the integer rows, shape (p, p). None for an `UnscaledLattice`, where
    # squares are unbounded and only rows are counted.
    gram: NDArray[Any] | None
    rows: int  # exact number of rows

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
    """Sums the rows that one thread receives, each part of the table separately."""

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
                q, gram = self._integers(own[:, rows]), self._grams[part]
                self._rows[part] += q.shape[1]
                if gram is not None:
                    gram.add(q)

    def _integers(self, cells: Array) -> Array:
        return self._transform.integers(cells, self.repairs)

    def sums(self) -> list[Sum]:
        """The sum of every part."""
        grams = [None if gram is None else gram.matrix() for gram in self._grams]
        return [Sum(gram, int(rows)) for gram, rows in zip(grams, self._rows, strict=True)]


PartNumbers = NDArray[np.int64]
_AT_ONCE = 1 << 16  # rows that are sorted at once: a column of them stays in the cache
AssignFolds = Callable[[int], PartNumbers]  # takes a number of rows, returns their folds


@dataclass(frozen=True)
class Parts:
    """The parts of a table: for every group in order, its folds."""

    folds: int = 1  # number of folds of each group
    # The column of levels by which rows are grouped, if they are. Rows without one of its levels
    # are the last group.
    by: LevelsFacts | None = None
    coding: Any = None  # of that column, if its cells are not levels as they are

    @property
    def column(self) -> tuple[str, Any] | None:
        """The name and the coding of the column by which rows are grouped, if they are."""
        return None if self.by is None else (self.by.name, self.coding or self.by.levels)

    @property
    def groups(self) -> int:
        """Number of groups."""
        return 1 if self.by is None else len(self.by.levels) + 1

    @property
    def count(self) -> int:
        """Number of parts."""
        return self.groups * self.folds

    def group_numbers(self, cells: Array) -> PartNumbers:
        """The group of every row, from the index of its level, NaN without one; shape (rows,)."""
        return np.where(np.isnan(cells), self.groups - 1, cells).astype(np.int64)

    def split(self, cells: Array, fold: PartNumbers | None = None) -> Iterator[tuple[int, Array]]:
        """The number of every part in a batch, and the cells of its rows, in several pieces.

        Parameters
        ----------
        cells
            Shape (columns, rows). Of a grouped table, the column of levels is last, and is left
            out of the result.
        fold
            The fold of each row, shape (rows,), if there are several.
        """
        if self.count == 1:
            yield 0, cells
            return
        part = np.zeros(cells.shape[1], np.int64) if fold is None else fold
        if self.by is not None:
            part = part + self.folds * self.group_numbers(cells[-1])
            cells = cells[:-1]
        short = part.astype(np.min_scalar_type(self.count))  # NumPy sorts short integers quickly
        for first in range(0, short.size, _AT_ONCE):
            rows = slice(first, first + _AT_ONCE)
            yield from self._split(cells[:, rows], short[rows])

    def _split(self, cells: Array, part: NDArray[Any]) -> Iterator[tuple[int, Array]]:
        order = np.argsort(part, kind="stable")
        ends = np.searchsorted(part[order], np.arange(self.count + 1))
        sorted_cells = np.take(cells, order, axis=1)
        for number, (start, end) in enumerate(itertools.pairwise(ends)):
            if start < end:
                yield number, sorted_cells[:, start:end]


ONE_PART = Parts()
