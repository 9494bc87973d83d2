"""What a pass over rows adds up: exact Gram matrices of parts, their numbers of rows, repairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice, WholeNumbers
from gramercy.tables.folds import Parts
from gramercy.tables.gram import ExactGram
from gramercy.tables.recipe import Recipe
from gramercy.tables.repair import Repairs

Array = NDArray[np.float64]

_CELLS = 1 << 16  # of a block that stays in cache
_ROWS = 256  # of a block at least, so that the matrix it is added to is not all there is to do


@dataclass(frozen=True, repr=False)
class Sum:
    """Rows of a table, or of one part of it, summed. Private.

    Parameters
    ----------
    gram
        Exact Gram matrix of the integer rows, shape (p, p). None of whole numbers, whose squares
        have no bound that fits: only their rows are counted.
    rows
        Exact number of rows.
    """

    gram: NDArray[Any] | None
    rows: int

    def __add__(self, other: Sum) -> Sum:
        """Of disjoint rows; exact in 64 bits where that fits, else in Python's integers."""
        one, two = self.gram, other.gram
        if one is None or two is None:
            return Sum(None, self.rows + other.rows)
        # No entry is larger than the largest of its diagonal.
        fits = int(np.diag(one).max()) + int(np.diag(two).max()) < 1 << 62
        return Sum(one + two if fits else one.astype(object) + two, self.rows + other.rows)


def slices(lattice: Lattice, rows: int) -> Iterator[slice]:
    """Rows that stay in cache, and whose squares are below 2^53 together."""
    step = max(1, min(max(_CELLS // lattice.p, _ROWS), (1 << 53) // lattice.ball))
    for start in range(0, rows, step):
        yield slice(start, start + step)


class Summing:
    """Sums of the rows that come to one thread.

    Parameters
    ----------
    recipe
        What is done to every row.
    parts
        How many disjoint parts are summed apart.
    """

    def __init__(self, recipe: Recipe, parts: int) -> None:
        self._recipe = recipe
        whole = isinstance(recipe.lattice, WholeNumbers)
        self._grams = [None if whole else ExactGram(recipe.lattice) for _ in range(parts)]
        self._rows = np.zeros(parts, dtype=np.int64)
        self.repairs = Repairs.none(len(recipe.columns))

    def add(self, cells: Array, part: Parts | None = None) -> None:
        """Add rows of cells, shape (columns, rows), and the part of each, if there are several."""
        for here in slices(self._recipe.lattice, cells.shape[1]):
            q = self._recipe.integers(cells[:, here], self.repairs)
            self._added(q, None if part is None else part[here])

    def _added(self, q: Array, part: Parts | None) -> None:
        for k, gram in enumerate(self._grams):
            mine = q if part is None else q[:, part == k]
            self._rows[k] += mine.shape[1]
            if gram is not None:
                gram.add(mine)

    def sums(self) -> list[Sum]:
        """Of every part."""
        grams = [None if gram is None else gram.matrix() for gram in self._grams]
        return [Sum(gram, int(rows)) for gram, rows in zip(grams, self._rows, strict=True)]
