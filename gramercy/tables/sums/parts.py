"""Disjoint parts of the rows, which are summed separately: groups, and folds within each group.

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

from gramercy.schemas.facts import LevelsFacts

Array = NDArray[np.float64]

PartNumbers = NDArray[np.int64]
_AT_ONCE = 1 << 16  # rows that are sorted at once: a column of them stays in the cache
AssignFolds = Callable[[int], PartNumbers]  # takes a number of rows, returns their folds


@dataclass(frozen=True)
class Parts:
    """The parts of a table: for every group in order, its folds.

    Parameters
    ----------
    folds
        Number of folds of each group.
    by
        The column of levels by which rows are grouped, if they are. Rows without one of its levels
        are the last group.
    """

    folds: int = 1
    by: LevelsFacts | None = None

    @property
    def groups(self) -> int:
        """Number of groups."""
        return 1 if self.by is None else len(self.by.levels) + 1

    @property
    def count(self) -> int:
        """Number of parts."""
        return self.groups * self.folds

    def group_numbers(self, cells: Array) -> PartNumbers:
        """The group of every row.

        Parameters
        ----------
        cells
            Index of the level of each row, shape (rows,); NaN for a row without a level.
        """
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
