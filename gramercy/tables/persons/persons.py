"""Scale all rows of a person together, so that their squares sum to at most one.

Two passes. The first sums the squares of every person's integer rows; the second multiplies each
row by its person's factor, rounds again, and sums. For any rows, a person's contribution to the
Gram matrix is then positive semidefinite with a trace of at most 2^(2K), which is verified.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice
from gramercy.common.machine import compiled
from gramercy.tables.persons.name_table import Names
from gramercy.tables.persons.person_index import IndexedPersons
from gramercy.tables.persons.person_kernels import add_rows, scale_rows
from gramercy.tables.persons.person_sample import Keys, PersonSample
from gramercy.tables.sums.parts import Parts
from gramercy.tables.sums.repair import Repairs
from gramercy.tables.sums.row_transform import RowTransform
from gramercy.tables.sums.sums import SummingWorker

Array = NDArray[np.float64]

# Limits of integers whose sums must fit into 64 bits.
MAX_ROW_SQUARES = 1 << 46
_MAX_ROWS = 1 << 16
_MAX_SQUARES = np.uint64(MAX_ROW_SQUARES * _MAX_ROWS)  # sums saturate here, and count as overflow

_MARGIN = 2.0**-40  # relative margin of a factor, far above its rounding errors


class Persons(IndexedPersons):
    """An index of persons, with each one's number of rows and sum of squares. Private.

    Parameters
    ----------
    known, closed, large
        See `IndexedPersons`.
    """

    def __init__(
        self, known: Names | None = None, *, closed: bool = False, large: bool = False
    ) -> None:
        super().__init__(known, closed=closed, large=large)
        self._squares = np.zeros(len(self), np.uint64)
        self._rows = np.zeros(len(self), np.int64)

    @property
    def squares(self) -> NDArray[np.uint64]:
        """Sum of squares over all rows of each person, shape (persons,)."""
        self._grow()
        return self._squares[: len(self)]

    @property
    def rows(self) -> NDArray[np.int64]:
        """Number of rows of each person, shape (persons,)."""
        self._grow()
        return self._rows[: len(self)]

    def add(self, indices: Array, squares: Array | NDArray[np.uint64]) -> None:
        """Add rows.

        Parameters
        ----------
        indices
            The result of `indices`, shape (rows,).
        squares
            Sum of squares of each row, shape (rows,); integers from 0 to `MAX_ROW_SQUARES`.

        Notes
        -----
        Integers are added, and sums saturate at 2^62: the result is the same for any order of the
        rows. Sums of doubles would depend on it.
        """
        if self.large:
            with self._lock:
                self._grow()
                self.rows_without_person += compiled(add_rows)(
                    indices, squares, int(_MAX_SQUARES), self._squares, self._rows
                )
            return
        for start in range(0, indices.size, _MAX_ROWS):
            rows = slice(start, start + _MAX_ROWS)
            self._add_rows(indices[rows], squares[rows].astype(np.uint64))

    def _add_rows(self, indices: Array, squares: NDArray[np.uint64]) -> None:
        owned = ~np.isnan(indices)
        persons, inverse = np.unique(indices[owned].astype(np.int64), return_inverse=True)
        totals = np.zeros(persons.size, np.uint64)
        np.add.at(totals, inverse, squares[owned])
        counts = np.bincount(inverse, minlength=persons.size)
        with self._lock:
            self._grow()
            self._squares[persons] = np.minimum(self._squares[persons] + totals, _MAX_SQUARES)
            self._rows[persons] += counts
            self.rows_without_person += int(indices.size - owned.sum())

    def _grow(self) -> None:
        if len(self) > self._rows.size:  # grow by half, so that copies are rare
            added = len(self) + len(self) // 2 - self._rows.size
            self._squares = np.concatenate([self._squares, np.zeros(added, np.uint64)])
            self._rows = np.concatenate([self._rows, np.zeros(added, np.int64)])

    def __add__(self, other: Persons) -> Persons:
        """The persons of both, with their rows added."""
        both = Persons(large=self.large)
        for part in (self, other):
            indices = both._indices_of(part)
            both._grow()
            both._squares[indices] = np.minimum(both._squares[indices] + part.squares, _MAX_SQUARES)
            both._rows[indices] += part.rows
        both.rows_without_person = self.rows_without_person + other.rows_without_person
        return both

    def factors(self, lattice: Lattice) -> Array:
        """The factor by which to multiply all rows of each person, shape (persons,).

        Notes
        -----
        The factor is 1 if the rows of a person together are no longer than one unit row. All others
        are scaled to that length, or to less where rounding needs more room: rounding moves m rows
        together by at most sqrt(m p) / 2. It is 0 where the sum of squares overflowed.
        """
        margin = np.sqrt(self.rows * float(lattice.p)) / 2 + 1
        length = np.clip(2.0**lattice.bits - margin, 0.0, lattice.unit_length) * (1 - _MARGIN)
        unit_squares = min(
            lattice.squared_radius,
            math.floor((lattice.unit_length + math.sqrt(lattice.p) / 2) ** 2) + 1,
        )
        squares = np.maximum(self.squares.astype(np.float64), 1.0)
        factors = np.where(self.squares <= unit_squares, 1.0, length / np.sqrt(squares))
        return np.where(self.squares >= _MAX_SQUARES, 0.0, factors)

    def are_in_ball(self, lattice: Lattice) -> bool:
        """Whether the rows of every person together are in the ball."""
        return bool((self.squares <= np.uint64(lattice.squared_radius)).all())


class MeasuringWorker:
    """The first pass, over the rows that one thread receives.

    Parameters
    ----------
    transform
        Turns cells into integer rows.
    persons
        Index to which the squares are added.
    """

    def __init__(self, transform: RowTransform, persons: Persons) -> None:
        self._transform, self._persons = transform, persons
        self._repairs = Repairs.zeros(len(transform.columns))  # the second pass counts repairs

    def add(self, cells: Array) -> None:
        """Add rows; `cells` are the indices of persons, then cells; shape (1 + columns, rows)."""
        self._persons.add(cells[0], self._transform.squares(cells[1:], self._repairs))


class ScalingWorker(SummingWorker):
    """The second pass, over the rows that one thread receives.

    Parameters
    ----------
    transform
        Turns cells into integer rows.
    parts
        The groups of rows, which are summed separately; there are no folds of persons.
    factors
        Factor of every person; see `Persons.factors`. It is that of all rows of a person, in
        whichever group.
    contributions
        Index to which the squares of scaled rows are added, for verification.
    sample
        Index of persons that keeps the group of one row of each, if rows are grouped.
    """

    def __init__(
        self,
        transform: RowTransform,
        parts: Parts,
        factors: Array,
        contributions: Persons,
        sample: PersonSample | None = None,
    ) -> None:
        super().__init__(transform, parts)
        self._factors, self._contributions = np.append(factors, 0.0), contributions
        self._sample = sample

    def add(self, cells: Array, keys: Keys | None = None) -> None:  # type: ignore[override]
        """Add rows.

        Parameters
        ----------
        cells
            The indices of persons, then cells, and last the levels of groups if there are any;
            shape (columns, rows).
        keys
            For groups, a fresh random key for each row; see `PersonSample.add`.
        """
        if self._sample is not None and keys is not None:
            groups = self._parts.group_numbers(cells[-1])
            self._sample.add(cells[0], groups[None].astype(np.uint16), keys)
        super().add(cells)

    def _integers(self, cells: Array) -> Array:
        q, indices = super()._integers(cells[1:]), cells[0]
        if self._contributions.large:
            self._contributions.add(indices, compiled(scale_rows)(q, indices, self._factors))
            return q
        own = np.where(np.isnan(indices), len(self._factors) - 1, indices).astype(np.int64)
        scaled: Array = np.rint(q * self._factors[own])
        self._contributions.add(indices, (scaled * scaled).sum(axis=0))
        return scaled
