"""An index of persons: one number for each name, however it is spelled."""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gramercy.common.machine import compiled
from gramercy.schemas import families, wordings
from gramercy.tables.formats.lines import replace_invalid_utf8
from gramercy.tables.formats.text_buffers import TextBuffers
from gramercy.tables.persons.name_table import (
    UNKNOWN,
    NameDict,
    Names,
    NameTable,
    repeat,
    stored_bytes,
)
from gramercy.tables.persons.person_names import are_canonical, canonical

Array = NDArray[np.float64]

_IS_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)


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
            used = column.indices.dictionary_encode()
            return repeat(self.indices(column.dictionary.take(used.dictionary)), used.indices)
        texts = _as_text(column)
        found = self.known.find(texts)
        unknown = np.flatnonzero(found == UNKNOWN)
        if unknown.size:  # new persons, and those in another spelling
            distinct = texts.take(pa.array(unknown)).dictionary_encode()
            found[unknown] = repeat(self._new_indices(distinct.dictionary), distinct.indices)
        return found

    def _new_indices(self, texts: pa.LargeStringArray) -> Array:
        names = self._canonical(texts)
        if not self._closed:
            return self.known.add(names)
        indices = self.known.find(names)
        if (indices == UNKNOWN).any():
            raise wordings.table_changed()
        return indices

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
        spelled = [_canonical_bytes(name) for name in stored_bytes(stored.filter(mask))]
        replaced = pc.replace_with_mask(stored, mask, pa.array(spelled, pa.large_binary()))
        return replaced.view(pa.large_string())

    def _indices_of(self, part: IndexedPersons) -> NDArray[np.int64]:
        """The indices here of the persons of `part`, in its order, after the new were added."""
        return self.known.add(part.known.texts()).astype(np.int64)


def _canonical_bytes(stored: bytes | None) -> bytes | None:
    name = None if stored is None else canonical(replace_invalid_utf8(stored).decode())
    return None if name is None else name.encode()


def _as_text(column: pa.Array) -> pa.LargeStringArray:
    if pa.types.is_integer(column.type):
        column = column.cast(pa.string())
    elif not any(is_text(column.type) for is_text in _IS_TEXT):
        raise families.TABLE_COLUMNS(
            "The column that identifies persons holds neither whole numbers nor text.",
            "Store it as one of these.",
        )
    return column.cast(pa.large_string())
