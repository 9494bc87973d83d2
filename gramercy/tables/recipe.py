"""What is done to every row of a table, from public constants: repaired, normalised, rounded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice
from gramercy.schemas.column import Column, Levels
from gramercy.schemas.contract import Contract
from gramercy.schemas.normalisation import Clip, Unit, Whole
from gramercy.tables.integers import integer_rows
from gramercy.tables.normalise import normalise
from gramercy.tables.normalise_kernel import Fused
from gramercy.tables.repair import Repairs, repair

_LARGE = 1 << 24  # cells from which on machine code is worth the second that it takes to load


@dataclass(frozen=True)
class Recipe:
    """From cells to integer rows.

    Parameters
    ----------
    columns
        As declared.
    intercept
        Whether a column of ones comes first.
    how
        Normalisation.
    lattice
        Lattice of the integer rows.
    fused
        The three steps in one, as machine code, where there is much to do. The numbers are the
        same to the last digit.
    """

    columns: tuple[Column | Levels, ...]
    intercept: bool
    how: Unit | Clip | Whole
    lattice: Lattice
    fused: Fused | None = None

    @classmethod
    def of(cls, contract: Contract, how: Unit | Clip | Whole, lattice: Lattice) -> Recipe:
        """Of a contract with the constants in force."""
        columns = tuple(contract.columns.values())
        large = contract.rows * lattice.p >= _LARGE
        fused = Fused(columns, contract.intercept, how, lattice) if large else None
        return cls(columns, contract.intercept, how, lattice, fused)

    def integers(self, cells: NDArray[np.float64], repairs: Repairs) -> NDArray[np.float64]:
        """Integer rows, shape (p, rows).

        Parameters
        ----------
        cells
            See `tables.repair.repair`.
        repairs
            Counts, added to in place.
        """
        if self.fused is not None:
            return self.fused(cells, repairs)
        scaled = repair(cells, self.columns, repairs, intercept=self.intercept)
        return integer_rows(normalise(scaled, self.how), self.lattice)
