"""All rows of a person scaled together, so that their squares sum to one at most.

Two passes. The first adds up the squares of every person's integer rows; the second multiplies
each row by its person's factor, rounds again, and sums. Whatever the rows are, what a person adds
to the Gram matrix is then positive semidefinite with a trace of at most 2^(2K), which is checked.
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
from gramercy.schemas.errors import TableError
from gramercy.tables.folds import Parts
from gramercy.tables.lines import valid_utf8
from gramercy.tables.person_names import canonical
from gramercy.tables.recipe import Recipe
from gramercy.tables.repair import Repairs
from gramercy.tables.sums import Summing, slices

Array = NDArray[np.float64]

_MOST = np.uint64(1 << 62)  # to which squares are added up: who has more is left out
_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_MARGIN = 2.0**-40  # of a factor: far more than the roundings on its way


class Persons:
    """Whose the rows are, and what the rows of each come to. Private.

    Parameters
    ----------
    names
        Of those who are known already, in order.
    closed
        Whether nobody else may come.
    """

    def __init__(self, names: Iterable[str] = (), *, closed: bool = False) -> None:
        self._places = {name: place for place, name in enumerate(names)}
        self._closed = closed
        self._squares = np.zeros(len(self._places), np.uint64)
        self._rows = np.zeros(len(self._places), np.int64)
        self._alone = Lock()
        self.nobodys = 0

    def __getstate__(self) -> dict[str, Any]:
        """Without the lock, which stays where it is."""
        return {name: value for name, value in vars(self).items() if name != "_alone"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _alone=Lock())

    @property
    def names(self) -> list[str]:
        """Of everybody, in the order of their places."""
        return list(self._places)

    @property
    def squares(self) -> NDArray[np.uint64]:
        """Of all rows of each, added up; shape (persons,)."""
        self._grow()
        return self._squares[: len(self)]

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows of each, shape (persons,)."""
        self._grow()
        return self._rows[: len(self)]

    def __len__(self) -> int:
        return len(self._places)

    def places(self, column: pa.Array) -> Array:
        """The place of whoever each row belongs to; NaN where it is nobody.

        Parameters
        ----------
        column
            Whole numbers or texts, in a dictionary or not.

        Raises
        ------
        TableError
            If somebody came who must not, or the column is of another kind.
        """
        if pa.types.is_null(column.type):
            return np.full(len(column), np.nan)
        if pa.types.is_dictionary(column.type):  # it may hold names that no row has
            column = column.dictionary.take(column.indices)
        column = column.dictionary_encode()
        places = np.array([self._place(name) for name in _texts(column.dictionary)] + [np.nan])
        indices = pc.fill_null(column.indices.cast(pa.int64()), len(column.dictionary))
        found: Array = places[indices.to_numpy()]
        return found

    def _place(self, text: str | None) -> float:
        known = None if text is None else self._places.get(text)
        if known is not None:  # it is spelled as it should be
            return known
        name = None if text is None else canonical(text)
        if name is None:
            return np.nan
        if self._closed and name not in self._places:
            raise changed()
        return self._places.setdefault(name, len(self._places))

    def add(self, places: Array, squares: Array) -> None:
        """Add rows, by the place of their person and their sums of squares, each shape (rows,).

        Parameters
        ----------
        places
            As from `places`.
        squares
            Whole, and below 2^53 together.
        """
        owned = ~np.isnan(places)
        who, back = np.unique(places[owned].astype(np.int64), return_inverse=True)
        total = np.bincount(back, squares[owned], minlength=who.size).astype(np.uint64)
        count = np.bincount(back, minlength=who.size)
        with self._alone:
            self._grow()
            self._squares[who] = np.minimum(self._squares[who] + total, _MOST)
            self._rows[who] += count
            self.nobodys += int(places.size - owned.sum())

    def _grow(self) -> None:
        if len(self) > self._rows.size:  # by half, so that it is seldom
            more = len(self) + len(self) // 2 - self._rows.size
            self._squares = np.concatenate([self._squares, np.zeros(more, np.uint64)])
            self._rows = np.concatenate([self._rows, np.zeros(more, np.int64)])

    def __add__(self, other: Persons) -> Persons:
        """Those of both, whoever they are."""
        both = Persons(dict.fromkeys([*self._places, *other._places]))
        for each in (self, other):
            where = [both._places[name] for name in each._places]
            both._squares[where] = np.minimum(both._squares[where] + each.squares, _MOST)
            both._rows[where] += each.rows
        both.nobodys = self.nobodys + other.nobodys
        return both

    def factors(self, lattice: Lattice) -> Array:
        """What the rows of each are to be multiplied by, shape (persons,).

        Notes
        -----
        One for those whose rows are no longer together than a row of length one may be. Others
        become as long as that; rounding moves m rows together by at most sqrt(m p) / 2, for which
        the lattice has room, or else room is made.
        """
        free = np.sqrt(self.rows * float(lattice.p)) / 2 + 1
        length = np.clip(2.0**lattice.bits - free, 0.0, lattice.cell) * (1 - _MARGIN)
        one = min(lattice.ball, math.floor((lattice.cell + math.sqrt(lattice.p) / 2) ** 2) + 1)
        squares = self.squares.astype(np.float64)
        factors = np.where(self.squares <= one, 1.0, length / np.sqrt(np.maximum(squares, 1.0)))
        return np.where(self.squares >= _MOST, 0.0, factors)

    def within(self, lattice: Lattice) -> bool:
        """Whether everybody's rows lie in the ball together."""
        return bool((self.squares <= np.uint64(lattice.ball)).all())


def _texts(names: pa.Array) -> Iterator[str | None]:
    """Names as they are written; in a Parquet file texts may hold bytes that are not UTF-8."""
    if pa.types.is_integer(names.type):
        yield from names.cast(pa.string()).to_pylist()
    elif any(is_text(names.type) for is_text in _TEXT):
        for name in names.cast(pa.large_string()).cast(pa.large_binary()).to_pylist():
            yield None if name is None else valid_utf8(name).decode()
    else:
        raise TableError(
            "The column that says whose a row is holds neither whole numbers nor texts.",
            "Store it as one of these.",
        )


class Measuring:
    """The first pass, of the rows that come to one thread.

    Parameters
    ----------
    recipe
        What is done to every row.
    persons
        Whose squares are added up.
    """

    def __init__(self, recipe: Recipe, persons: Persons) -> None:
        self._recipe, self._persons = recipe, persons
        self._repairs = Repairs.none(len(recipe.columns))  # counted in the second pass

    def add(self, cells: Array) -> None:
        """Add rows of cells, below the places of their persons, shape (1 + columns, rows)."""
        for here in slices(self._recipe.lattice, cells.shape[1]):
            q = self._recipe.integers(cells[1:, here], self._repairs)
            self._persons.add(cells[0, here], (q * q).sum(axis=0))


class Scaling(Summing):
    """The second pass, of the rows that come to one thread.

    Parameters
    ----------
    recipe
        What is done to every row.
    factors
        Of every person: see `Persons.factors`.
    spent
        To whom what was summed is added up, so that it can be checked.
    """

    def __init__(self, recipe: Recipe, factors: Array, spent: Persons) -> None:
        super().__init__(recipe, 1)
        self._factors, self._spent = np.append(factors, 0.0), spent

    def add(self, cells: Array, part: Parts | None = None) -> None:
        """Add rows of cells, below the places of their persons, shape (1 + columns, rows)."""
        for here in slices(self._recipe.lattice, cells.shape[1]):
            q = self._recipe.integers(cells[1:, here], self.repairs)
            places = cells[0, here]
            own = np.where(np.isnan(places), len(self._factors) - 1, places).astype(np.int64)
            q = np.rint(q * self._factors[own])
            self._spent.add(places, (q * q).sum(axis=0))
            self._added(q, part)


def changed() -> TableError:
    """Of a table that was not the same when it was read again."""
    return TableError(
        "The table changed while it was read.", "Copy it, and publish what does not change."
    )
