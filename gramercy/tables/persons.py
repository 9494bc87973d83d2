"""Scale all rows of a person together, so that their squares sum to at most one.

Two passes. The first sums the squares of every person's integer rows; the second multiplies each
row by its person's factor, rounds again, and sums. For any rows, a person's contribution to the
Gram matrix is then positive semidefinite with a trace of at most 2^(2K), which is verified.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice
from gramercy.schemas.problems.table import person_column_type, table_changed
from gramercy.tables.folds import FoldNumbers
from gramercy.tables.lines import replace_invalid_utf8
from gramercy.tables.person_names import canonical
from gramercy.tables.repair import Repairs
from gramercy.tables.row_transform import RowTransform
from gramercy.tables.sums import SummingWorker, row_slices

Array = NDArray[np.float64]

_MAX_SQUARES = np.uint64(1 << 62)  # sums of squares saturate here, and count as overflow
_IS_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_MARGIN = 2.0**-40  # relative margin of a factor, far above its rounding errors


class Persons:
    """An index of persons, with each one's number of rows and sum of squares. Private.

    Parameters
    ----------
    names
        Canonical names of the persons known so far, in order.
    closed
        Whether a person who is not in `names` is an error.

    Attributes
    ----------
    rows_without_person
        Number of added rows that belong to no person.
    """

    def __init__(self, names: Iterable[str] = (), *, closed: bool = False) -> None:
        self._indices = {name: index for index, name in enumerate(names)}
        self._closed = closed
        self._squares = np.zeros(len(self._indices), np.uint64)
        self._rows = np.zeros(len(self._indices), np.int64)
        self._lock = Lock()
        self.rows_without_person = 0

    def __getstate__(self) -> dict[str, Any]:
        """Everything except the lock, which cannot be pickled."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=Lock())

    @property
    def names(self) -> list[str]:
        """Canonical names, in the order of their indices."""
        return list(self._indices)

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

    def __len__(self) -> int:
        return len(self._indices)

    def indices(self, column: pa.Array) -> Array:
        """The index of each row's person, shape (rows,); NaN for a row without a person.

        Parameters
        ----------
        column
            Whole numbers or text, dictionary-encoded or not.

        Raises
        ------
        TableError
            If a person is unknown to a closed index, or the column has another type.
        """
        if pa.types.is_null(column.type):
            return np.full(len(column), np.nan)
        if pa.types.is_dictionary(column.type):  # its dictionary may have names that no row uses
            column = column.dictionary.take(column.indices)
        column = column.dictionary_encode()
        entries = np.array([self._index(name) for name in _texts(column.dictionary)] + [np.nan])
        keys = pc.fill_null(column.indices.cast(pa.int64()), len(column.dictionary))
        indices: Array = entries[keys.to_numpy()]
        return indices

    def _index(self, text: str | None) -> float:
        index = None if text is None else self._indices.get(text)
        if index is not None:  # already in its canonical spelling
            return index
        name = None if text is None else canonical(text)
        if name is None:
            return np.nan
        if self._closed and name not in self._indices:
            raise table_changed()
        return self._indices.setdefault(name, len(self._indices))

    def add(self, indices: Array, squares: Array) -> None:
        """Add rows.

        Parameters
        ----------
        indices
            The result of `indices`, shape (rows,).
        squares
            Sum of squares of each row, shape (rows,); integers whose total is below 2^53.
        """
        owned = ~np.isnan(indices)
        persons, inverse = np.unique(indices[owned].astype(np.int64), return_inverse=True)
        totals = np.bincount(inverse, squares[owned], minlength=persons.size).astype(np.uint64)
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
        both = Persons(dict.fromkeys([*self._indices, *other._indices]))
        for part in (self, other):
            indices = [both._indices[name] for name in part._indices]
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


def _texts(names: pa.Array) -> Iterator[str | None]:
    """Names as text; text in a Parquet file may have bytes that are not UTF-8."""
    if pa.types.is_integer(names.type):
        yield from names.cast(pa.string()).to_pylist()
    elif any(is_text(names.type) for is_text in _IS_TEXT):
        for name in names.cast(pa.large_string()).cast(pa.large_binary()).to_pylist():
            yield None if name is None else replace_invalid_utf8(name).decode()
    else:
        raise person_column_type()


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
        for rows in row_slices(self._transform.lattice, cells.shape[1]):
            q = self._transform.integers(cells[1:, rows], self._repairs)
            self._persons.add(cells[0, rows], (q * q).sum(axis=0))


class ScalingWorker(SummingWorker):
    """The second pass, over the rows that one thread receives.

    Parameters
    ----------
    transform
        Turns cells into integer rows.
    factors
        Factor of every person; see `Persons.factors`.
    contributions
        Index to which the squares of scaled rows are added, for verification.
    """

    def __init__(self, transform: RowTransform, factors: Array, contributions: Persons) -> None:
        super().__init__(transform, 1)
        self._factors, self._contributions = np.append(factors, 0.0), contributions

    def add(self, cells: Array, fold: FoldNumbers | None = None) -> None:
        """Add rows; `cells` are the indices of persons, then cells; shape (1 + columns, rows)."""
        for rows in row_slices(self._transform.lattice, cells.shape[1]):
            q = self._transform.integers(cells[1:, rows], self.repairs)
            indices = cells[0, rows]
            own = np.where(np.isnan(indices), len(self._factors) - 1, indices).astype(np.int64)
            q = np.rint(q * self._factors[own])
            self._contributions.add(indices, (q * q).sum(axis=0))
            self._add_integers(q, fold)
