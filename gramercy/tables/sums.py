"""Exact sums over rows: Gram matrices and row counts of folds, and repair counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice, UnscaledLattice
from gramercy.tables.blocks import cache_slices
from gramercy.tables.folds import FoldNumbers
from gramercy.tables.gram import ExactGram
from gramercy.tables.repair import Repairs
from gramercy.tables.row_transform import RowTransform

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Sum:
    """The sum over the rows of a table or of one fold. Private.

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
    folds
        Number of folds, which are summed separately.
    """

    def __init__(self, transform: RowTransform, folds: int) -> None:
        self._transform = transform
        unscaled = isinstance(transform.lattice, UnscaledLattice)
        self._grams = [None if unscaled else ExactGram(transform.lattice) for _ in range(folds)]
        self._rows = np.zeros(folds, dtype=np.int64)
        self.repairs = Repairs.zeros(len(transform.columns))

    def add(self, cells: Array, fold: FoldNumbers | None = None) -> None:
        """Add rows of cells, and the fold of each row if there are several.

        Parameters
        ----------
        cells
            Shape (columns, rows).
        fold
            Shape (rows,).
        """
        for rows in row_slices(self._transform.lattice, cells.shape[1]):
            q = self._transform.integers(cells[:, rows], self.repairs)
            self._add_integers(q, None if fold is None else fold[rows])

    def _add_integers(self, q: Array, fold: FoldNumbers | None) -> None:
        for k, gram in enumerate(self._grams):
            in_fold = q if fold is None else q[:, fold == k]
            self._rows[k] += in_fold.shape[1]
            if gram is not None:
                gram.add(in_fold)

    def sums(self) -> list[Sum]:
        """The sum of every fold."""
        grams = [None if gram is None else gram.matrix() for gram in self._grams]
        return [Sum(gram, int(rows)) for gram, rows in zip(grams, self._rows, strict=True)]
