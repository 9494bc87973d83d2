"""Indices of persons: a number for each name in any spelling, and what a person adds up to.

`Persons` scales all rows of a person together, so that their squares sum to at most one: a first
pass sums the squares of every person's integer rows, and a second one multiplies each row by its
person's factor, rounds again, and sums. For any rows, a person's contribution to the Gram matrix is
then positive semidefinite with a trace of at most 2^(2K), which is verified.

`PersonSample` keeps one uniformly chosen row of every person: in a histogram a person with a
thousand rows must weigh no more than a person with one. Every row draws a random key, and each
person's row with the least key is kept. The keys are independent of everything else, so each of a
person's rows is equally likely to be kept, at any position, in any batch and any partition; and of
two samples of disjoint rows, the least keys are those of all rows. Changing one person's rows
changes no key of another person's, and so no other person's row.

The compiled code does the same with integers that doubles and 64 bits hold exactly, except for the
factors, by which each entry is multiplied as before: results are identical to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice
from gramercy.common.machine import compiled
from gramercy.schemas import families, wordings
from gramercy.tables.formats.lines import replace_invalid_utf8
from gramercy.tables.formats.values import decoded, is_text
from gramercy.tables.persons.name_table import (
    UNKNOWN,
    NameDict,
    Names,
    NameTable,
    TextBuffers,
    stored_bytes,
)
from gramercy.tables.persons.person_names import are_canonical, canonical

Array = NDArray[np.float64]


class IndexedPersons:
    """Persons, numbered in the order in which they were first read. Private.

    Parameters
    ----------
    known
        Canonical names of the persons known so far; None for none.
    closed
        Whether a person who is not in `known` is an error, so that it can be shared.
    large
        Whether to use compiled code, which pays off for large tables. The results are identical.

    Attributes
    ----------
    rows_without_person
        Number of added rows that belong to no person.
    """

    def __init__(
        self, known: Names | None = None, *, closed: bool = False, large: bool = False
    ) -> None:
        self.large = large
        new = NameTable() if large else NameDict()
        self.known: Names = new if known is None else known
        self._closed = closed
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
        names: list[str] = self.known.texts().to_pylist()
        return names

    def __len__(self) -> int:
        return len(self.known)

    @property
    def alike(self) -> int:
        """Number of persons whose name differs from another one only in case or blanks."""
        texts = self.known.texts()
        # Hashes need less memory than names. Two of ten million collide with a probability of 3e-6.
        folded = (hash("".join(name.as_py().casefold().split())) for name in texts)
        _, counts = np.unique(np.fromiter(folded, np.int64, len(texts)), return_counts=True)
        return int(counts[counts > 1].sum())

    def indices(self, column: pa.Array) -> Array:
        """The index of each row's person, shape (rows,); NaN for a row without a person."""
        if pa.types.is_null(column.type):
            return np.full(len(column), np.nan)
        if pa.types.is_dictionary(column.type):  # its dictionary may have names that no row uses
            used = column.indices.dictionary_encode()
            return decoded(self.indices(column.dictionary.take(used.dictionary)), used.indices)
        texts = _as_text(column)
        found = self.known.find(texts)
        unknown = np.flatnonzero(found == UNKNOWN)
        if unknown.size:  # new persons, and those in another spelling
            distinct = texts.take(pa.array(unknown)).dictionary_encode()
            names = self._canonical(distinct.dictionary)
            indices = self.known.find(names) if self._closed else self.known.add(names)
            if (indices == UNKNOWN).any():
                raise wordings.table_changed()
            found[unknown] = decoded(indices, distinct.indices)
        return found

    def _canonical(self, texts: pa.LargeStringArray) -> pa.LargeStringArray:
        """The canonical spelling of each name, or null."""
        others = np.ones(len(texts), np.bool_)
        if self.large:
            buffers = TextBuffers.of(texts)
            others = ~compiled(are_canonical)(buffers.offsets, buffers.data)
            if not others.any():
                return texts
        stored = texts.cast(pa.large_binary())
        mask = pa.array(others)
        spelled: list[bytes | None] = []
        for data in stored_bytes(stored.filter(mask)):
            name = None if data is None else canonical(replace_invalid_utf8(data).decode())
            spelled.append(None if name is None else name.encode())
        replaced = pc.replace_with_mask(stored, mask, pa.array(spelled, pa.large_binary()))
        return replaced.view(pa.large_string())

    def _indices_of(self, part: IndexedPersons) -> NDArray[np.int64]:
        """The indices here of the persons of `part`, in its order, after the new were added."""
        return self.known.add(part.known.texts()).astype(np.int64)


def _as_text(column: pa.Array) -> pa.LargeStringArray:
    """Names of persons; of doubles, the whole ones below 2^53 are names.

    The double next to a larger whole number would be another name of the same person. Of numbers
    in single or half precision, this limit is 2^24 or 2^11.
    """
    kind = column.type
    if pa.types.is_floating(kind):
        numbers = pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy()
        exact = 2.0 ** (np.finfo(kind.to_pandas_dtype()).nmant + 1)
        is_name = (np.abs(numbers) < exact) & (numbers == np.rint(numbers))
        whole = np.where(is_name, numbers, 0.0).astype(np.int64)
        return pa.array(whole, mask=~is_name).cast(pa.large_string())
    is_exact = pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    if not is_exact and not is_text(kind):
        raise families.TABLE_COLUMNS(
            "The column that identifies persons holds neither whole numbers nor text.",
            "Store it as one of these.",
        )
    return column.cast(pa.large_string())


# Limits of integers whose sums must fit into 64 bits.
MAX_ROW_SQUARES = 1 << 46
_MAX_ROWS = 1 << 16
_MAX_SQUARES = np.uint64(MAX_ROW_SQUARES * _MAX_ROWS)  # sums saturate here, and count as overflow

_MARGIN = 2.0**-40  # relative margin of a factor, far above its rounding errors


class Persons(IndexedPersons):
    """An index of persons, with each one's number of rows and sum of squares. Private."""

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
        """Add rows: their persons by `indices`, and their squares, from 0 to `MAX_ROW_SQUARES`.

        Integers are added, and sums saturate at 2^62: the result is the same for any order of the
        rows. Sums of doubles would depend on it. Shapes (rows,).
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
            owned = ~np.isnan(indices[rows])
            own = indices[rows][owned].astype(np.int64)
            persons, inverse = np.unique(own, return_inverse=True)
            totals = np.zeros(persons.size, np.uint64)
            np.add.at(totals, inverse, squares[rows].astype(np.uint64)[owned])
            counts = np.bincount(inverse, minlength=persons.size)
            with self._lock:
                self._grow()
                self._squares[persons] = np.minimum(self._squares[persons] + totals, _MAX_SQUARES)
                self._rows[persons] += counts
                self.rows_without_person += int(owned.size - owned.sum())

    def _grow(self) -> None:
        if len(self) > self._rows.size:  # grow by half, so that copies are rare
            added = len(self) + len(self) // 2 - self._rows.size
            self._squares = np.concatenate([self._squares, np.zeros(added, np.uint64)])
            self._rows = np.concatenate([self._rows, np.zeros(added, np.int64)])

    def __add__(self, other: Persons) -> Persons:
        """The persons of both, with their rows added."""
        both = Persons(large=self.large)
        both._take(self)
        both._take(other)
        return both

    def _take(self, part: Persons) -> None:
        """Add the persons of another index and their rows."""
        indices = self._indices_of(part)
        self._grow()
        self._squares[indices] = np.minimum(self._squares[indices] + part.squares, _MAX_SQUARES)
        self._rows[indices] += part.rows
        self.rows_without_person += part.rows_without_person

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


Bins = NDArray[np.uint16]

Keys = NDArray[np.uint64]
# Takes a number of rows; returns a fresh random key of 128 bits for each, shape (2, rows).
DrawKeys = Callable[[int], Keys]

_LARGEST = np.uint64((1 << 64) - 1)


class PersonSample(IndexedPersons):
    """For every person, the bins of the cells of one row. Private.

    Parameters
    ----------
    sizes
        Number of bins of each column.

    Notes
    -----
    Two rows of a person draw the same key with probability 2^-128; one of them is kept.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        known: Names | None = None,
        *,
        closed: bool = False,
        large: bool = False,
    ) -> None:
        super().__init__(known, closed=closed, large=large)
        self._sizes = tuple(sizes)
        self._keys, self._bins = self._empty(len(self))

    def _empty(self, persons: int) -> tuple[Keys, NDArray[np.unsignedinteger]]:
        """Keys above all others, and bins in the smallest type that can hold them."""
        kind = np.min_scalar_type(max(self._sizes) - 1)
        keys = np.full((2, persons), _LARGEST)
        return keys, np.zeros((len(self._sizes), persons), kind)

    def add(self, indices: Array, bins: Bins, keys: Keys) -> None:
        """Add rows: their persons, the bins of their cells, and a fresh random key for each.

        Shapes (rows,), (columns, rows) and (2, rows).
        """
        rows = np.flatnonzero(~np.isnan(indices))
        persons = indices[rows].astype(np.int64)
        order = np.lexsort((keys[1, rows], keys[0, rows], persons))
        rows, persons = rows[order], persons[order]
        first = np.append(True, persons[1:] != persons[:-1])[: persons.size]
        with self._lock:
            self._grow()
            self._keep_least(persons[first], bins[:, rows[first]], keys[:, rows[first]])
            self.rows_without_person += indices.size - rows.size

    def _keep_least(
        self, persons: NDArray[np.int64], bins: NDArray[np.unsignedinteger], keys: Keys
    ) -> None:
        """Replace the rows of distinct persons by those with smaller keys."""
        high, low = self._keys[:, persons]
        less = (keys[0] < high) | ((keys[0] == high) & (keys[1] < low))
        chosen = persons[less]
        self._keys[:, chosen] = keys[:, less]
        self._bins[:, chosen] = bins[:, less]

    def _grow(self) -> None:
        if len(self) > self._keys.shape[1]:  # grow by half, so that copies are rare
            keys, bins = self._empty(len(self) + len(self) // 2 - self._keys.shape[1])
            self._keys = np.concatenate([self._keys, keys], axis=1)
            self._bins = np.concatenate([self._bins, bins], axis=1)

    def __add__(self, other: PersonSample) -> PersonSample:
        """The sample of the rows of both."""
        both = PersonSample(self._sizes, large=self.large)
        for part in (self, other):
            indices = both._indices_of(part)
            both._grow()
            part._grow()
            count = len(part)
            both._keep_least(indices, part._bins[:, :count], part._keys[:, :count])
        both.rows_without_person = self.rows_without_person + other.rows_without_person
        return both

    def histograms(self) -> tuple[NDArray[np.int64], ...]:
        """The histogram of each column, in which every person counts once; shapes (bins,)."""
        self._grow()
        return tuple(
            np.bincount(bins[: len(self)], minlength=size)
            for bins, size in zip(self._bins, self._sizes, strict=True)
        )


_BLOCK = 256  # rows


def scale_rows(q: Array, indices: Array, factors: Array) -> Array:
    """Multiply the rows of q in place, by their person's factor or zero, and round; for numba.

    Returns the sum of squares of every scaled row, shape (rows,).
    """
    p, rows = q.shape
    squares = np.zeros(rows)
    factor = np.empty(_BLOCK)
    for start in range(0, rows, _BLOCK):
        stop = min(rows, start + _BLOCK)
        total = squares[start:stop]
        for k in range(len(total)):
            index = indices[start + k]
            factor[k] = 0.0 if math.isnan(index) else factors[np.int64(index)]
        for f in range(p):
            entries = q[f, start:stop]
            for k in range(len(entries)):
                x = np.rint(entries[k] * factor[k])
                entries[k] = x
                total[k] += x * x
    return squares


def add_rows(
    indices: Array,
    squares: Array | NDArray[np.uint64],
    most: int,
    person_squares: NDArray[np.uint64],
    person_rows: NDArray[np.int64],
) -> int:
    """Add rows to the sums of their persons, which saturate at `most`; for numba."""
    without, limit = 0, np.uint64(most)
    for k in range(len(indices)):
        if math.isnan(indices[k]):
            without += 1
            continue
        person = np.int64(indices[k])
        person_squares[person] = min(person_squares[person] + np.uint64(squares[k]), limit)
        person_rows[person] += 1
    return without
