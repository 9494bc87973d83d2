"""Lengths of scaled rows, as integers, for a histogram over fixed edges.

Squared lengths are rounded to multiples of 2^-20. So the squares of a person's rows have the same
sum in any order, and comparing a length with an edge is a comparison of integers, whose result does
not depend on a row's position.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gramercy.common.machine import compiled
from gramercy.schemas.column import ColumnKind
from gramercy.schemas.contract import Contract
from gramercy.tables.persons.person_index import MAX_ROW_SQUARES
from gramercy.tables.sums.row_transform import Repairs, is_large, repair, repair_constants

Array = NDArray[np.float64]

_UNITS = 1 << 20  # of a squared length of one


class RowLengths:
    """Computes the squared lengths of scaled rows, without clipping.

    Parameters
    ----------
    columns
        The declared columns, with the constants in use.
    intercept
        Whether a column of ones comes first.
    width
        Number of matrix columns.
    large
        Whether the table is large, so that compiled code pays off. The results are identical.
    """

    def __init__(
        self, columns: Sequence[ColumnKind], intercept: bool, width: int, *, large: bool
    ) -> None:
        self._columns, self._intercept = tuple(columns), intercept
        self.width, self.large = width, large
        self._are_levels = np.array([column.categories is not None for column in columns])
        self._constants = repair_constants(columns)

    @classmethod
    def of(cls, contract: Contract) -> RowLengths:
        """The lengths of a contract's rows."""
        width = contract.intercept + sum(column.width for column in contract.columns.values())
        large = is_large(contract.rows, width)
        return cls(tuple(contract.columns.values()), contract.intercept, width, large=large)

    def squares(self, cells: Array) -> NDArray[np.uint64]:
        """Squared length of every row in units of 2^-20, shape (rows,).

        Squared lengths above 2^26 become 2^26.

        Parameters
        ----------
        cells
            See `repair`.

        Notes
        -----
        Squares are summed in a fixed loop over columns; see `tables.sums.row_transform.normalise`.
        """
        if self.large:
            squares = compiled(squares_kernel)(
                np.ascontiguousarray(cells), self._are_levels, self._constants, self._intercept
            )
        else:
            squares = self._sum_of_squares(cells)
        with np.errstate(over="ignore"):
            return np.rint(np.minimum(squares * _UNITS, MAX_ROW_SQUARES)).astype(np.uint64)

    def _sum_of_squares(self, cells: Array) -> Array:
        repairs = Repairs.zeros(len(self._columns))  # the pass for the matrix counts repairs
        scaled = repair(
            cells, self._columns, repairs, intercept=self._intercept, constants=self._constants
        )
        squares = np.zeros(cells.shape[1])
        with np.errstate(over="ignore"):
            for column in scaled:
                squares += column * column
        return squares


def length_thresholds(edges: Array) -> NDArray[np.uint64]:
    """Squares of the edges of bins of lengths, rounded to units of 2^-20 as those of rows are.

    Parameters
    ----------
    edges
        Lower edges of the bins, increasing, not negative and below 2^13; shape (K,).

    Returns
    -------
    ndarray of uint64, shape (K,)
    """
    return np.rint(edges * edges * _UNITS).astype(np.uint64)


def length_histogram(
    squares: NDArray[np.uint64], thresholds: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Count lengths in bins.

    Parameters
    ----------
    squares
        Squared lengths in units of 2^-20, shape (units,).
    thresholds
        The result of `length_thresholds`, shape (K,).

    Returns
    -------
    ndarray of int64, shape (K,)
        Bin k counts lengths in [edges[k], edges[k + 1]). The last bin has no upper edge, and
        lengths below the first edge are in bin 0.
    """
    bins = np.searchsorted(thresholds, squares, side="right") - 1
    return np.bincount(bins.clip(0), minlength=thresholds.size)


def squares_kernel(
    cells: Array, are_levels: NDArray[np.bool_], constants: Array, intercept: bool
) -> Array:
    """Sum of squares of every scaled row, the arithmetic of `repair`; for numba."""
    columns, rows = cells.shape
    squares = np.full(rows, 1.0 if intercept else 0.0)
    for i in range(columns):
        if are_levels[i]:
            for k in range(rows):
                squares[k] += 1.0 if math.isfinite(cells[i, k]) else 0.0
            continue
        lower, upper, centre, scale = constants[i, :4]
        for k in range(rows):
            value = cells[i, k] if math.isfinite(cells[i, k]) else centre
            x = (min(max(value, lower), upper) - centre) / scale
            squares[k] += x * x
    return squares
