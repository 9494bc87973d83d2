"""An index of persons: one number for each name, however it is spelled."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gramercy.schemas.problems.table import person_column_type, table_changed
from gramercy.tables.lines import replace_invalid_utf8
from gramercy.tables.person_names import canonical

Array = NDArray[np.float64]

_IS_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)


class IndexedPersons:
    """Persons, numbered in the order in which they were first read. Private.

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
        # By the bytes of the canonical name, as which Arrow gives most names at once.
        self._indices = {name.encode(): index for index, name in enumerate(names)}
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
        return [name.decode() for name in self._indices]

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
        entries = np.append(self._indices_of_names(column.dictionary), np.nan)
        keys = pc.fill_null(column.indices.cast(pa.int64()), len(column.dictionary))
        indices: Array = entries[keys.to_numpy()]
        return indices

    def _indices_of_names(self, names: pa.Array) -> Array:
        """The index of each name, NaN for those that name no person."""
        stored = _bytes_of(names)
        # Those in canonical spelling that are known; the others one by one.
        found = np.array(list(map(self._indices.get, stored)), dtype=np.float64)
        for k in np.flatnonzero(np.isnan(found)):
            found[k] = self._index(stored[k])
        return found

    def _index(self, stored: bytes | None) -> float:
        text = None if stored is None else replace_invalid_utf8(stored).decode()
        name = None if text is None else canonical(text)
        if name is None:
            return np.nan
        key = name.encode()
        if self._closed and key not in self._indices:
            raise table_changed()
        return self._indices.setdefault(key, len(self._indices))

    def _names_with(self, other: IndexedPersons) -> Iterable[str]:
        """The names of both, without repetition."""
        return dict.fromkeys([*self.names, *other.names])

    def _indices_of(self, part: IndexedPersons) -> NDArray[np.int64]:
        """The indices here of the persons of `part`, in its order."""
        return np.array([self._indices[name] for name in part._indices], dtype=np.int64)


def _bytes_of(names: pa.Array) -> NDArray[np.object_]:
    """Names as bytes, or None; text in a Parquet file may have bytes that are not UTF-8."""
    if pa.types.is_integer(names.type):
        names = names.cast(pa.string())
    elif not any(is_text(names.type) for is_text in _IS_TEXT):
        raise person_column_type()
    stored: NDArray[np.object_] = (
        names.cast(pa.large_string()).cast(pa.large_binary()).to_numpy(zero_copy_only=False)
    )
    return stored
