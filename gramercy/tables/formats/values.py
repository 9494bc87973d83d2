"""Codings: how the cells of Arrow columns become numbers, each independently of the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gramercy.schemas.notation import PLAIN, NumberNotation

Levels = Sequence[str | float]

IS_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)

MAX_NAME_BYTES = 256  # of a person; rows with a longer name belong to no person
_PADDING = 1024  # bytes of blanks that are accepted around a level
_NUMBER_BYTES = 1024  # of text that is a number

# Text that Arrow casts to float64, except nan(...), which counts as missing.
_NUMBER = r"(?i)^[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)$"


class Coding(ABC):
    """How the cells of a column become numbers.

    Attributes
    ----------
    in_order
        Whether numbers depend on the cells before, so that batches are coded one after another.
    """

    in_order: ClassVar[bool] = False

    @property
    def is_text(self) -> bool:
        """Whether cells may be text, which should stay dictionary-encoded."""
        return False

    @property
    def width(self) -> int:
        """Number of matrix columns that a column becomes."""
        return 1

    @property
    def most_bytes(self) -> int:
        """Bytes of the longest text that can be a value."""
        return _NUMBER_BYTES

    @abstractmethod
    def floats(self, column: pa.Array) -> NDArray[np.float64]:
        """Numbers, shape (rows,); NaN where a cell does not have one."""


@dataclass(frozen=True)
class Numbers(Coding):
    """Cells are numbers, as numbers or as text in a notation."""

    notation: NumberNotation = PLAIN

    def floats(self, column: pa.Array) -> NDArray[np.float64]:
        if pa.types.is_dictionary(column.type):
            return decoded(self.floats(column.dictionary), column.indices)
        return _numbers(column)


@dataclass(frozen=True)
class LevelIndices(Coding):
    """Cells become indices of levels: all of them text, or all numbers."""

    levels: tuple[str | float, ...]

    @property
    def is_text(self) -> bool:
        return isinstance(self.levels[0], str)

    @property
    def width(self) -> int:
        return len(self.levels)

    @property
    def most_bytes(self) -> int:
        if not self.is_text:
            return _NUMBER_BYTES
        return max(len(str(level).encode()) for level in self.levels) + _PADDING

    def floats(self, column: pa.Array) -> NDArray[np.float64]:
        if pa.types.is_dictionary(column.type):
            return decoded(self.floats(column.dictionary), column.indices)
        if not self.is_text:
            numbers = _numbers(column)
            indices = np.full(numbers.shape, np.nan)
            for index, level in enumerate(self.levels):
                indices[numbers == level] = index
            return indices
        kind = column.type
        is_text_type = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        text = column if is_text_type else column.cast(pa.string())  # large ones may not fit
        fits = pc.less_equal(pc.binary_length(text), self.most_bytes)
        text = pc.ascii_trim_whitespace(pc.if_else(fits, text, None))
        return _numbers(pc.index_in(text, value_set=pa.array(self.levels, text.type)))


@dataclass(frozen=True)
class Lookup(Coding):
    """Cells are looked up in an index, such as one of persons, whose `indices` are the numbers."""

    index: Any
    in_order: ClassVar[bool] = True

    @property
    def is_text(self) -> bool:
        return True

    @property
    def most_bytes(self) -> int:
        return 16 * MAX_NAME_BYTES  # of a person's name, before it has its canonical form

    def floats(self, column: pa.Array) -> NDArray[np.float64]:
        indices: NDArray[np.float64] = self.index.indices(column)
        return indices


def coding_of(declared: Any, notation: NumberNotation = PLAIN) -> Coding:
    """The coding of a column of numbers (None), of levels (a sequence), or of an index.

    `notation`: how numbers are written that are text.
    """
    if isinstance(declared, Coding):
        return declared
    if declared is None:
        return Numbers(notation)
    return LevelIndices(tuple(declared)) if isinstance(declared, Sequence) else Lookup(declared)


def decoded(entries: NDArray[np.float64], indices: pa.Array) -> NDArray[np.float64]:
    """The entry of each index of a dictionary, shape (indices,); NaN for a null."""
    filled = pc.fill_null(indices.cast(pa.int64()), len(entries))
    numbers: NDArray[np.float64] = np.append(entries, np.nan)[filled.to_numpy()]
    return numbers


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
