"""From cells to integer rows: repair, normalisation and rounding, with public constants only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice
from gramercy.common.machine import can_compile, is_loaded
from gramercy.schemas.column import Column, Levels
from gramercy.schemas.contract import Contract
from gramercy.schemas.normalisation import Clip, Unit, Whole
from gramercy.tables.sums.blocks import cache_slices
from gramercy.tables.sums.integers import integer_rows
from gramercy.tables.sums.normalise import normalise
from gramercy.tables.sums.normalise_kernel import NormaliseKernel, normalise_kernel
from gramercy.tables.sums.repair import Repairs, repair, repair_constants

_LARGE = 1 << 24  # cells; compiled code takes a third of a second to load: it pays from here on


def is_large(rows: int, columns: int) -> bool:
    """Whether compiled code pays off for a table, and there is a compiler; from public facts."""
    return rows * columns >= _LARGE and can_compile()


@dataclass(frozen=True)
class RowTransform:
    """From cells to integer rows.

    Parameters
    ----------
    columns
        The declared columns.
    intercept
        Whether a column of ones comes first.
    normalisation
        Normalisation of rows.
    lattice
        Lattice of the integer rows.
    kernel
        The three steps as one compiled function, for large tables, and where it is loaded. Its
        results are identical.
    """

    columns: tuple[Column | Levels, ...]
    intercept: bool
    normalisation: Unit | Clip | Whole
    lattice: Lattice
    kernel: NormaliseKernel | None = None

    @classmethod
    def of(
        cls, contract: Contract, normalisation: Unit | Clip | Whole, lattice: Lattice
    ) -> RowTransform:
        """The transform of a contract's rows."""
        columns = tuple(contract.columns.values())
        kernel = None
        if is_large(contract.rows, lattice.p) or is_loaded(normalise_kernel):
            kernel = NormaliseKernel(columns, contract.intercept, normalisation, lattice)
        return cls(columns, contract.intercept, normalisation, lattice, kernel)

    def integers(self, cells: NDArray[np.float64], repairs: Repairs) -> NDArray[np.float64]:
        """Integer rows, shape (p, rows).

        Parameters
        ----------
        cells
            See `tables.sums.repair.repair`.
        repairs
            Counts, updated in place.
        """
        if self.kernel is not None:
            return self.kernel(cells, repairs)
        blocks = list(cache_slices(self.lattice.p, cells.shape[1]))
        if len(blocks) == 1:
            return self._block(cells, repairs)
        made = np.empty((self._width, cells.shape[1]))
        for rows in blocks:
            made[:, rows] = self._block(cells[:, rows], repairs)
        return made

    def squares(self, cells: NDArray[np.float64], repairs: Repairs) -> NDArray[np.float64]:
        """Sum of squares of every integer row, shape (rows,); see `integers`."""
        if self.kernel is not None:
            return self.kernel.squares(cells, repairs)
        squares = np.empty(cells.shape[1])
        for rows in cache_slices(self.lattice.p, cells.shape[1]):
            q = self._block(cells[:, rows], repairs)
            squares[rows] = (q * q).sum(axis=0)
        return squares

    def _block(self, cells: NDArray[np.float64], repairs: Repairs) -> NDArray[np.float64]:
        scaled = repair(
            cells, self.columns, repairs, intercept=self.intercept, constants=self._constants
        )
        return integer_rows(normalise(scaled, self.normalisation), self.lattice)

    @cached_property
    def _constants(self) -> NDArray[np.float64]:
        return repair_constants(self.columns)

    @property
    def _width(self) -> int:
        """Number of columns of the integer rows."""
        widths = (len(each.levels) if isinstance(each, Levels) else 1 for each in self.columns)
        return self.intercept + sum(widths)
