"""Convert Arrow columns to numbers, each cell independently of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Levels = Sequence[str | float]


class PersonIndex(Protocol):
    """Assigns an index to every person."""

    def indices(self, column: pa.Array) -> NDArray[np.float64]: ...


# How cells become numbers: as indices of levels, as indices of persons, or (None) as numbers.
Coding = Levels | PersonIndex | None

MAX_NAME_BYTES = 256  # of a person; rows with a longer name belong to no person
_PADDING = 1024  # bytes of blanks that are accepted around a level

# Text that Arrow casts to float64, except nan(...), which counts as missing.
_NUMBER = r"(?i)^[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)$"


def is_person_index(coding: Coding) -> bool:
    """Whether cells become indices of persons."""
    return coding is not None and not isinstance(coding, Sequence)


def is_text(coding: Coding) -> bool:
    """Whether cells may be text, which should stay dictionary-encoded."""
    if isinstance(coding, Sequence):
        return isinstance(coding[0], str)
    return coding is not None


def matrix_width(coding: Coding) -> int:
    """Number of matrix columns that a column becomes."""
    return len(coding) if isinstance(coding, Sequence) else 1


def max_cell_bytes(levels: Levels) -> int:
    """Bytes of the longest cell that can be a level."""
    return max(len(str(level).encode()) for level in levels) + _PADDING


def to_floats(column: pa.Array, coding: Coding) -> NDArray[np.float64]:
    """Numbers or indices, shape (rows,); NaN where a cell is missing, not a number, or not a level.

    Parameters
    ----------
    column
        As stored in a file.
    coding
        Levels (all text or all numbers), an index of persons, or None for numbers.
    """
    if coding is not None and not isinstance(coding, Sequence):
        return coding.indices(column)
    if pa.types.is_dictionary(column.type):
        entries = np.append(to_floats(column.dictionary, coding), np.nan)
        indices = pc.fill_null(column.indices.cast(pa.int64()), len(column.dictionary))
        numbers: NDArray[np.float64] = entries[indices.to_numpy()]
        return numbers
    if coding is None:
        return _numbers(column)
    if not is_text(coding):
        return _level_indices(_numbers(column), coding)
    is_text_type = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    text = column if is_text_type else column.cast(pa.string())  # large ones may not fit into it
    fits = pc.less_equal(pc.binary_length(text), max_cell_bytes(coding))
    text = pc.ascii_trim_whitespace(pc.if_else(fits, text, None))
    return _numbers(pc.index_in(text, value_set=pa.array(coding, text.type)))


def _level_indices(numbers: NDArray[np.float64], levels: Levels) -> NDArray[np.float64]:
    indices = np.full(numbers.shape, np.nan)
    for index, level in enumerate(levels):
        indices[numbers == level] = index
    return indices


def _numbers(column: pa.Array) -> NDArray[np.float64]:
    kind = column.type
    if (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and not column.null_count:
        doubles: NDArray[np.float64] = column.to_numpy().astype(np.float64, copy=False)
        return doubles  # faster than Arrow's cast
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = _parse_numbers(pc.ascii_trim_whitespace(column))
    elif pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    numbers = column if column.type == pa.float64() else column.cast(pa.float64(), safe=False)
    if numbers.null_count:
        numbers = pc.fill_null(numbers, np.nan)
    converted: NDArray[np.float64] = numbers.to_numpy()
    return converted


def _parse_numbers(text: pa.Array) -> pa.Array:
    """Numbers from text; null where a cell is not a number, independently of the other cells."""
    try:
        return text.cast(pa.float64())
    except pa.ArrowInvalid:
        numbers = pc.match_substring_regex(text, _NUMBER)
    return pc.if_else(numbers, text, None).cast(pa.float64())
