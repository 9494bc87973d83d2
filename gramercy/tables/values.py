"""Columns of Arrow become numbers, each cell by itself, whatever stands beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Levels = Sequence[str | float]


class Owners(Protocol):
    """Who gives the place of whoever each row belongs to."""

    def places(self, column: pa.Array) -> NDArray[np.float64]: ...


# What a column is read as: numbers, the places of levels, or those of owners.
Reading = Levels | Owners | None

_BLANKS = 1024  # bytes that a cell may be longer than any level, and still be one after trimming

# What the cast below reads as a number that is one; nan(...), which it reads as well, is none.
_NUMBER = r"(?i)^[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)$"


def of_texts(reading: Reading) -> bool:
    """Whether the cells may be texts that are not to be spelled out."""
    if isinstance(reading, Sequence):
        return isinstance(reading[0], str)
    return reading is not None


def width(reading: Reading) -> int:
    """Columns that a column becomes."""
    return len(reading) if isinstance(reading, Sequence) else 1


def longest(levels: Levels) -> int:
    """Bytes of the longest cell that is looked at; a longer one is none of the levels."""
    return max(len(str(level).encode()) for level in levels) + _BLANKS


def converted(column: pa.Array, levels: Reading) -> NDArray[np.float64]:
    """Numbers, or the place of each cell's level; NaN where a cell is missing or is neither.

    Parameters
    ----------
    column
        As a file holds it.
    levels
        All texts or all numbers; None where the column is of numbers; or who knows the owners.
    """
    if levels is not None and not isinstance(levels, Sequence):
        return levels.places(column)
    if pa.types.is_dictionary(column.type):
        entries = np.append(converted(column.dictionary, levels), np.nan)
        indices = pc.fill_null(column.indices.cast(pa.int64()), len(column.dictionary))
        looked_up: NDArray[np.float64] = entries[indices.to_numpy()]
        return looked_up
    if levels is None:
        return _numbers(column)
    if not of_texts(levels):
        return _places_of_numbers(_numbers(column), levels)
    text = column.cast(pa.string())
    fits = pc.less_equal(pc.binary_length(text), longest(levels))
    text = pc.ascii_trim_whitespace(pc.if_else(fits, text, None))
    return _numbers(pc.index_in(text, value_set=pa.array(levels, pa.string())))


def _places_of_numbers(numbers: NDArray[np.float64], levels: Levels) -> NDArray[np.float64]:
    places = np.full(numbers.shape, np.nan)
    for place, level in enumerate(levels):
        places[numbers == level] = place
    return places


def _numbers(column: pa.Array) -> NDArray[np.float64]:
    kind = column.type
    if (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and not column.null_count:
        doubles: NDArray[np.float64] = column.to_numpy().astype(np.float64, copy=False)
        return doubles  # sooner than by Arrow's cast
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = _parsed(pc.ascii_trim_whitespace(column))
    elif pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    numbers = column if column.type == pa.float64() else column.cast(pa.float64(), safe=False)
    if numbers.null_count:
        numbers = pc.fill_null(numbers, np.nan)
    found: NDArray[np.float64] = numbers.to_numpy()
    return found


def _parsed(text: pa.Array) -> pa.Array:
    """Text to numbers; what is not a number becomes null, whatever stands beside it."""
    try:
        return text.cast(pa.float64())
    except pa.ArrowInvalid:
        numbers = pc.match_substring_regex(text, _NUMBER)
    return pc.if_else(numbers, text, None).cast(pa.float64())
