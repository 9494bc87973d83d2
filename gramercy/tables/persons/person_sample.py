"""One uniformly chosen row of every person.

In a histogram a person with a thousand rows must weigh no more than a person with one. Every row
draws a random key, and each person's row with the least key is kept. The keys are independent of
everything else, so each of a person's rows is equally likely to be kept, at any position, in any
batch and any partition; and of two samples of disjoint rows, the least keys are those of all rows.
Changing one person's rows changes no key of another person's, and so no other person's row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from gramercy.tables.persons.name_table import Names
from gramercy.tables.persons.person_index import IndexedPersons

Array = NDArray[np.float64]
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
    known, closed, large
        See `IndexedPersons`.

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
        """Add rows.

        Parameters
        ----------
        indices
            The result of `indices`, shape (rows,).
        bins
            The bin of every cell, shape (columns, rows).
        keys
            A fresh random key for each row, shape (2, rows).
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
