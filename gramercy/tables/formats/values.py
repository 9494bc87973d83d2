"""Codings: how the cells of Arrow columns become numbers, each independently of the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gramercy.schemas.cells import (
    EPOCH,
    CodeCells,
    DateNotation,
    DayCells,
    TruthCells,
    date_notation,
)
from gramercy.schemas.column import MISSING
from gramercy.schemas.model import nfc
from gramercy.schemas.notation import PLAIN, NumberNotation
from gramercy.tables.formats import dates
from gramercy.tables.formats.written_numbers import read_numbers

# Types of columns; other types have Arrow's own names, or those of the database.
WHOLE, DOUBLE, TRUTH, TEXT, ANY = "whole", "double", "bool", "text", "any"
ZONED = "timestamp with time zone"

Levels = Sequence[str | float]

MAX_NAME_BYTES = 256  # of a person; rows with a longer name belong to no person
_PADDING = 1024  # bytes of blanks that are accepted around a level
_NUMBER_BYTES = 1024  # of text that is a number
_GROWTH = 6  # a text has at most so many times the bytes that it has in NFC
EXACT = 2.0**53  # a smaller whole number has a double of its own


def is_text(kind: pa.DataType) -> bool:
    """Whether Arrow stores cells of a type as texts."""
    is_string: bool = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return is_string or bool(pa.types.is_string_view(kind))


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

    def reads(self, kind: str) -> bool:
        """Whether a column of this type may have values; see `tables.formats.reader`."""
        return kind in {WHOLE, DOUBLE, TRUTH, ANY}

    @abstractmethod
    def floats(self, column: pa.Array) -> NDArray[np.float64]:
        """Numbers, shape (rows,); NaN where a cell does not have one."""


@dataclass(frozen=True)
class Numbers(Coding):
    """Cells are numbers, as numbers or as text in a notation."""

    notation: NumberNotation = PLAIN

    def reads(self, kind: str) -> bool:
        return super().reads(kind) or (kind == TEXT and self.notation.is_stated)

    def floats(self, column: pa.Array) -> NDArray[np.float64]:
        if pa.types.is_dictionary(column.type):
            return decoded(self.floats(column.dictionary), column.indices)
        return _numbers(column, self.notation)


@dataclass(frozen=True)
class LevelIndices(Coding):
    """Cells become indices of levels: all of them text, or all numbers."""

    levels: tuple[str | float, ...]
    notation: NumberNotation = PLAIN  # of numbers that are text

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
        return _most_bytes(self.levels)

    def reads(self, kind: str) -> bool:
        return kind in {TEXT, ANY} if self.is_text else Numbers(self.notation).reads(kind)

    def floats(self, column: pa.Array) -> NDArray[np.float64]:
        if pa.types.is_dictionary(column.type):
            return decoded(self.floats(column.dictionary), column.indices)
        if not self.is_text:
            numbers = _numbers(column, self.notation)
            indices = np.full(numbers.shape, np.nan)
            for index, level in enumerate(self.levels):
                indices[numbers == level] = index
            return indices
        text = _trimmed(_plain_text(column), self.most_bytes)
        indices = self._index_in(text)
        lacking = np.isnan(indices) & dates.filled(pc.invert(pc.string_is_ascii(text)))
        if lacking.any():
            distinct = text.filter(pa.array(lacking)).dictionary_encode()
            found = self._index_in(_in_nfc(distinct.dictionary))
            indices = indices.copy()  # it may be Arrow's own memory
            indices[lacking] = decoded(found, distinct.indices)
        return indices

    def _index_in(self, text: pa.Array) -> NDArray[np.float64]:
        return _numbers(pc.index_in(text, value_set=pa.array(self.levels, text.type)))


@dataclass(frozen=True)
class _Texts(Coding):
    """Cells are coded by their texts alone; whole numbers have theirs, of any numeric type."""

    @property
    def is_text(self) -> bool:
        return True

    def reads(self, kind: str) -> bool:
        return kind in {WHOLE, DOUBLE, TEXT, ANY}

    def floats(self, column: pa.Array) -> NDArray[np.float64]:
        if pa.types.is_dictionary(column.type):
            return decoded(self.floats(column.dictionary), column.indices)
        distinct = texts_of(column).dictionary_encode()
        text = _trimmed(distinct.dictionary, self.most_bytes)
        return decoded(self._of_texts(text), distinct.indices)

    @abstractmethod
    def _of_texts(self, text: pa.Array) -> NDArray[np.float64]:
        """The number of every text."""


_TRUTHS = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}


@dataclass(frozen=True)
class TruthIndices(_Texts):
    """Cells are true or false, in one of several spellings, and become indices."""

    cells: TruthCells

    @property
    def width(self) -> int:
        return len(self.cells.levels)

    def reads(self, kind: str) -> bool:
        return kind == TRUTH or super().reads(kind)

    def _of_texts(self, text: pa.Array) -> NDArray[np.float64]:
        lower = pc.replace_substring_regex(pc.ascii_lower(text), r"^([01])\.0*$", r"\1")
        found = _numbers(pc.index_in(lower, value_set=pa.array(_TRUTHS, text.type)))
        indices = {truth: float(k) for k, truth in enumerate(self.cells.levels)}
        of_spellings = [indices.get(truth, np.nan) for truth in _TRUTHS.values()]
        return np.append(of_spellings, np.nan)[np.nan_to_num(found, nan=-1.0).astype(np.int64)]


@dataclass(frozen=True)
class CodeIndices(_Texts):
    """Cells are codes, and become indices of their groups."""

    cells: CodeCells

    @property
    def width(self) -> int:
        return len(self.cells.groups)

    @property
    def most_bytes(self) -> int:
        return _most_bytes([code for codes in self.cells.groups for code in codes])

    @cached_property
    def _by_length(self) -> dict[int, tuple[pa.Array, NDArray[np.float64]]]:
        """The codes with each number of bytes, longest first, and the groups of these codes."""
        found = dict[int, tuple[list[bytes], list[float]]]()
        for group, codes in enumerate(self.cells.groups):
            for code in (str(each).encode() for each in codes):
                same = found.setdefault(len(code), ([], []))
                same[0].append(code)
                same[1].append(float(group))
        return {
            length: (pa.array(found[length][0], pa.large_binary()), np.array(found[length][1]))
            for length in sorted(found, reverse=True)
        }

    @cached_property
    def _of_numbers(self) -> dict[float, float]:
        """The groups of the codes that are numbers."""
        groups = enumerate(self.cells.groups)
        return {float(x): float(k) for k, codes in groups for x in codes if isinstance(x, int)}

    def _of_texts(self, text: pa.Array) -> NDArray[np.float64]:
        text = _in_nfc(text)  # a beginning may be a letter that has its accent apart
        groups = self._listed(text)
        if self._of_numbers and not self.cells.prefix:
            others = np.flatnonzero(np.isnan(groups))
            numbers = _numbers(text.take(pa.array(others)))
            groups[others] = [self._of_numbers.get(x, np.nan) for x in numbers.tolist()]
        if self.cells.rest is not None:
            missing = pc.is_in(text, value_set=pa.array(MISSING, text.type))
            present = dates.filled(pc.and_(pc.is_valid(text), pc.invert(missing)))
            groups[present & np.isnan(groups)] = self.cells.rest
        return groups

    def _listed(self, text: pa.Array) -> NDArray[np.float64]:
        """The group of the code that a text is, or of the longest one with which it begins."""
        stored, groups = text.view(pa.large_binary()), np.full(len(text), np.nan)
        for length, (codes, of_codes) in self._by_length.items():
            begins = pc.binary_slice(stored, 0, length) if self.cells.prefix else stored
            found = _numbers(pc.index_in(begins, value_set=codes))
            new = np.flatnonzero(np.isnan(groups) & ~np.isnan(found))
            groups[new] = of_codes[found[new].astype(np.int64)]
        return groups


@dataclass(frozen=True)
class DayNumbers(Coding):
    """Cells are dates or times, and become the time from a first day to their day.

    The day of an instant, which is a time with a zone or an offset, is that in UTC.
    """

    cells: DayCells
    written: DateNotation | None = None  # another notation than that of ISO 8601

    @classmethod
    def of(cls, cells: DayCells, notation: NumberNotation) -> DayNumbers:
        """The coding in a table with a notation."""
        return cls(cells, written_dates(notation))

    @property
    def is_text(self) -> bool:
        return True

    @property
    def most_bytes(self) -> int:
        return dates.LONGEST

    def reads(self, kind: str) -> bool:
        if kind in {WHOLE, DOUBLE}:
            return self.written is not None and self.written.is_of_numbers
        return kind in {TEXT, ANY} or kind.lower().startswith(("date", "timestamp"))

    def floats(self, column: pa.Array) -> NDArray[np.float64]:
        if pa.types.is_dictionary(column.type):
            return decoded(self.floats(column.dictionary), column.indices)
        if dates.is_stored_date(column.type):
            numbers, present = dates.stored_numbers(column)
            return self._since(numbers // dates.units_a_day(column.type), present)
        if not is_text(column.type) and (self.written is None or not self.written.is_of_numbers):
            return np.full(len(column), np.nan)
        distinct = texts_of(column).dictionary_encode()  # the same days occur again and again
        found = dates.times_of(dates.short_texts(distinct.dictionary), self.written)
        return decoded(self._since(found.seconds // dates.DAY, found.exist), distinct.indices)

    def _since(self, days: NDArray[np.int64], exist: NDArray[np.bool_]) -> NDArray[np.float64]:
        first = (self.cells.since - EPOCH).days
        return np.where(exist, (days - first) / self.cells.days, np.nan)


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


@dataclass(frozen=True)
class DaysAndPeriods(Coding):
    """Dates that decide the period of a row, and from which columns are computed: both in one.

    A number is that of the period or step, plus `_PERIODS` times that of the day.
    """

    periods: Coding
    days: DayNumbers
    in_order: ClassVar[bool] = True

    @property
    def is_text(self) -> bool:
        return True

    @property
    def most_bytes(self) -> int:
        return self.periods.most_bytes

    def floats(self, column: pa.Array) -> NDArray[np.float64]:
        days = self.days.floats(column) - _FIRST_DAY
        exist = (days >= 1.0) & (days <= _MOST_DAYS)
        periods = np.nan_to_num(self.periods.floats(column), nan=-1.0) + 1.0
        return periods + _PERIODS * np.where(exist, days, 0.0)

    def parts(self, numbers: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The days since 1970-01-01, and the numbers of the periods; NaN where there is none."""
        days, periods = np.divmod(numbers, _PERIODS)
        return (
            np.where(days == 0.0, np.nan, days + _FIRST_DAY),
            np.where(periods == 0.0, np.nan, periods - 1.0),
        )


_PERIODS, _MOST_DAYS = 4096.0, 4_000_000.0
_FIRST_DAY = -719_163.0  # the day before the year 1


# The coding of each description in `schemas.cells`.
_CODINGS: dict[type, Callable[[Any], Coding]] = {
    TruthCells: TruthIndices,
    CodeCells: CodeIndices,
}


def written_dates(notation: NumberNotation) -> DateNotation | None:
    """How dates are written besides ISO 8601."""
    return None if notation.dates is None else date_notation(notation.dates)


def coding_of(declared: Any, notation: NumberNotation = PLAIN) -> Coding:
    """The coding of a column of numbers (None), of levels (a sequence), or of an index.

    Other kinds of columns describe their cells; see `schemas.cells`.

    `notation`: how numbers are written that are text.
    """
    if isinstance(declared, Coding):
        return declared
    if declared is None:
        return Numbers(notation)
    if isinstance(declared, DayCells):
        return DayNumbers.of(declared, notation)
    if type(declared) in _CODINGS:
        return _CODINGS[type(declared)](declared)
    if isinstance(declared, Sequence):
        return LevelIndices(tuple(declared), notation)
    return Lookup(declared)


def decoded(entries: NDArray[np.float64], indices: pa.Array) -> NDArray[np.float64]:
    """The entry of each index of a dictionary, shape (indices,); NaN for a null."""
    filled = pc.fill_null(indices.cast(pa.int64()), len(entries))
    numbers: NDArray[np.float64] = np.append(entries, np.nan)[filled.to_numpy()]
    return numbers


def _numbers(column: pa.Array, notation: NumberNotation = PLAIN) -> NDArray[np.float64]:
    kind = column.type
    if (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and not column.null_count:
        doubles: NDArray[np.float64] = column.to_numpy().astype(np.float64, copy=False)
        return doubles if notation.is_plain else _finite(doubles)  # faster than Arrow's cast
    if is_text(kind):
        column = read_numbers(_plain_text(column), notation)
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    numbers = column if column.type == pa.float64() else column.cast(pa.float64(), safe=False)
    if numbers.null_count:
        numbers = pc.fill_null(numbers, np.nan)
    converted: NDArray[np.float64] = numbers.to_numpy()
    return converted if notation.is_plain else _finite(converted)


def _finite(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """NaN in place of infinite numbers: the text "inf" may be one, or contain a unit."""
    finite: NDArray[np.float64] = np.where(np.isinf(numbers), np.nan, numbers)
    return finite


def _plain_text(column: pa.Array) -> pa.Array:
    """Text for which Arrow has all functions; large texts stay, as they may not fit into others."""
    return column if pa.types.is_large_string(column.type) else column.cast(pa.string())


def _most_bytes(values: Sequence[str | float]) -> int:
    """Bytes of the longest text that can be one of these texts."""
    return _GROWTH * max((len(str(each).encode()) for each in values), default=0) + _PADDING


def _trimmed(text: pa.Array, most_bytes: int) -> pa.Array:
    """The texts without blanks around them; null where one is too long to be a value."""
    fits = pc.less_equal(pc.binary_length(text), most_bytes)
    return pc.ascii_trim_whitespace(pc.if_else(fits, text, None))


def _in_nfc(text: pa.Array) -> pa.Array:
    """The texts in NFC, as large ones; bytes that are not UTF-8 stay as they are."""
    text = text.cast(pa.large_string())
    others = dates.filled(pc.invert(pc.string_is_ascii(text)))
    if not others.any():
        return text
    mask, stored = pa.array(others), text.cast(pa.large_binary())
    normal = [
        nfc(each.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        for each in stored.filter(mask).to_pylist()
    ]
    replaced = pc.replace_with_mask(stored, mask, pa.array(normal, pa.large_binary()))
    return replaced.view(pa.large_string())


def texts_of(column: pa.Array) -> pa.Array:
    """Cells as texts: 7 and 7.0 as ``7``, in any numeric type; null where there is none."""
    kind = column.type
    if is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.large_string())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = _numbers(column)
        whole = (np.abs(numbers) < EXACT) & (numbers == np.rint(numbers))
        digits = pa.array(np.where(whole, numbers, 0.0).astype(np.int64)).cast(pa.large_string())
        others = pa.array(numbers, mask=~np.isfinite(numbers)).cast(pa.large_string())
        return pc.if_else(pa.array(whole), digits, others)
    return pa.nulls(len(column), pa.large_string())
