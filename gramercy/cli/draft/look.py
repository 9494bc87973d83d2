"""What is proposed for the columns of a table if its steward has some rows looked at.

A value becomes part of a draft only if many of these rows have it: a level, or a number that stands
for missing values. Bounds never come from rows.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gramercy.cli.draft.drafting import Draft
from gramercy.cli.draft.proposals import DATE, IS_DATE, LEVELS, NUMBERS, Column, Level, names_code
from gramercy.pipeline.validation.mistakes import (
    SampledColumn,
    is_identifier,
    plain_form,
    sample_of,
)
from gramercy.pipeline.validation.notations import Texts, misread
from gramercy.pipeline.validation.sentinels import sentinels
from gramercy.schemas.column import MISSING
from gramercy.schemas.column import Column as Bounds
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.model import nfc, single_line
from gramercy.schemas.periods import glob_of_any_period, with_period
from gramercy.schemas.source import AnySource, CsvFormat, at_location
from gramercy.tables.formats.byte_streams import SUBSTITUTE
from gramercy.tables.formats.csv_format import CsvTables
from gramercy.tables.formats.source import Source, open_source
from gramercy.tables.formats.values import TEXT, TRUTH

_LEAST_ROWS = 10  # with a level
_MOST_LEVELS, _MOST_CODES = 20, 10  # of text, and of numbers
_MOST = 0.95  # of the cells that are not missing
_ALL_DIFFERENT, _LEAST_CELLS = 0.98, 100
_ZERO_IN_FRONT, _IN_DIGITS = re.compile(r"0[0-9]+"), re.compile(r"[0-9]+")
_WORD_AND_NUMBER = re.compile(r"[^\W\d_][^\d]*[0-9]+[^\W\d_]?")  # P0001, Room 12, No. 5b
_TRUTHS = ({"true", "false"}, {"yes", "no"}, {"y", "n"}, {"t", "f"})


@dataclass(frozen=True, repr=False)
class _Cells:
    """The sampled cells of a column that are not missing. Private."""

    column: SampledColumn = field(repr=False)

    @cached_property
    def texts(self) -> list[str]:
        """Those that are stored as text, in NFC."""
        texts = (nfc(text.strip()) for text in self.column.texts.drop_null().to_pylist())
        return [text for text in texts if text not in MISSING]

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """Those that are numbers."""
        return self.column.numbers[np.isfinite(self.column.numbers)]

    @property
    def are_all_different(self) -> bool:
        """Whether nearly all texts are, as those of identifiers."""
        return len({*self.texts}) >= _ALL_DIFFERENT * max(len(self.texts), _LEAST_CELLS)

    @property
    def are_words(self) -> bool:
        """Whether most of them are texts, and not numbers."""
        return 2 * len(self.numbers) <= len(self.texts) > 0

    def most_match(self, pattern: re.Pattern[str]) -> bool:
        """Whether most of the texts are of a form."""
        matching = sum(pattern.fullmatch(text) is not None for text in self.texts)
        return bool(self.texts) and matching >= _MOST * len(self.texts)


def look(draft: Draft) -> Draft:
    """The draft with what some rows of its table show."""
    names = list(draft.candidates)
    if draft.database is None or draft.per is None:
        place = glob_of_any_period(draft.source)
    else:  # tables of a database are not read together
        place = with_period(draft.source, draft.per, draft.version)
    source = open_source(at_location(draft.table, place))
    samples = [each.cells for each in sample_of(source, names)]
    written = draft.written or CsvFormat()
    if written.encoding == "utf-8" and _is_other_encoding(source, samples):
        written = written.model_copy(update={"encoding": "cp1252"})
        draft = replace(draft, written=written)
        source = open_source(at_location(draft.table, place))
        samples = [each.cells for each in sample_of(source, names)]

    def cells(name: str) -> _Cells:
        stored = [t[name].combine_chunks() for t in samples if name in t.column_names]
        return _Cells(SampledColumn(name, Bounds(), stored, written))

    # Identifiers and free text say nothing about numbers, and could pass on a part of a cell.
    plain = [k for k in names if not draft.columns[k].left_out or draft.columns[k].example]
    sampled = {name: cells(name) for name in plain if not names_code(name)}
    texts = [
        each
        for name, column in sampled.items()
        if _may_be_numbers(column)
        and (each := Texts.of(name, pa.array(column.texts, pa.string()), written))
        and _has_true_units(column, each, draft.table)
    ]
    for found in misread(texts, draft.table):
        if found.keys is not None:
            written = written.model_copy(update=dict(found.keys))
    columns = {name: _proposal(name, draft.columns[name], cells(name)) for name in names}
    if draft.chosen:  # the steward knows better
        columns = {name: each for name, each in columns.items() if not each.left_out}
    changed = None if written == CsvFormat() else written
    drafted = draft.with_columns(columns)
    return replace(drafted, written=changed, decimal=written.decimal, looked=True)


def _may_be_numbers(cells: _Cells) -> bool:
    """Whether most cells have digits, and they are neither few different texts nor like P0001."""
    named = sum(_WORD_AND_NUMBER.fullmatch(text) is not None for text in cells.texts)
    if 2 * named > len(cells.texts):
        return False
    with_digits = sum(any(map(str.isdigit, text)) for text in cells.texts)
    return 2 * with_digits > len(cells.texts) and _levels(cells.texts, _MOST_LEVELS) is None


def _has_true_units(cells: _Cells, texts: Texts, source: AnySource) -> bool:
    """Whether units that a column seems to have leave numbers: nearly all, and none like an id."""
    for found in misread([texts], source):
        if found.keys is not None and "units" in found.keys:
            notation = cells.column.notation.model_copy(update=dict(found.keys))
            numbers = replace(cells, column=replace(cells.column, notation=notation)).numbers
            is_number = len(numbers) >= _MOST * len(cells.texts)
            is_whole = bool((numbers == np.round(numbers)).all())
            return is_number and not (is_whole and cells.are_all_different)
    return True


def _is_other_encoding(source: Source, samples: Sequence[pa.Table]) -> bool:
    """Whether CSV has bytes that are not UTF-8, and no other characters than those of ASCII."""
    names = {name for each in samples for name in each.column_names}
    if not all(isinstance(each.format, CsvTables) for each in source.files):
        return False
    arrays = [array for each in samples for array in each.columns if pa.types.is_string(array.type)]
    is_ascii = all(map(str.isascii, names)) and all(
        pc.all(pc.string_is_ascii(each)).as_py() in (True, None) for each in arrays
    )
    return is_ascii and any(pc.any(pc.match_substring(each, SUBSTITUTE)).as_py() for each in arrays)


def _proposal(name: str, column: Column, cells: _Cells) -> Column:
    """What the first rule says that applies; else the column as it was proposed."""
    if max(len(cells.texts), len(cells.numbers)) < _LEAST_ROWS or column.kind == TRUTH:
        return column
    if (found := cells.column.dates) is not None:
        stated = "" if found.dates is None else f", and write dates: {found.dates} under source"
        return replace(column, left_out=IS_DATE + stated, example=DATE)
    if is_identifier(cells.column) or (cells.are_words and cells.are_all_different):
        reason = "nearly all cells are different, as of an identifier"
        return replace(column, left_out=reason, example="")
    are_codes = cells.most_match(_IN_DIGITS) and any(map(_ZERO_IN_FRONT.fullmatch, cells.texts))
    if cells.are_words or are_codes:
        return _of_texts(column, cells.texts, are_codes=are_codes)
    return _of_numbers(name, column, cells.numbers)


def _of_texts(column: Column, texts: Sequence[str], *, are_codes: bool) -> Column:
    """Few texts, of truth values or others; also digits with zeros in front."""
    levels = _levels(texts, _MOST_LEVELS)
    if levels is None:
        why = "codes with zeros in front" if are_codes else "text with many different cells"
        reason = f"{why}: list levels, and remove the first '#'"
        return replace(column, left_out=reason, example=column.example or "{levels: [A, B]}")
    is_truth = {str(level).lower() for level in levels} in _TRUTHS
    column = replace(column, left_out="", seen=True)
    if is_truth:
        return replace(column, levels=(True, False))
    rows, alike = Counter(texts), dict[str, list[str]]()
    for text in sorted(map(str, levels), key=lambda each: -rows[each]):
        alike.setdefault(plain_form(text), []).append(text)
    if len(alike) == len(levels):
        return replace(column, levels=levels)
    spellings = tuple(sorted(map(tuple, alike.values())))
    return replace(column, levels=tuple(each[0] for each in spellings), spellings=spellings)


def _of_numbers(name: str, column: Column, numbers: NDArray[np.float64]) -> Column:
    """Codes for missing values, and few whole numbers, which are levels if they are codes."""
    if column.kind == TEXT:  # numbers that are stored as text
        column = replace(column, ways=(NUMBERS, LEVELS), left_out="", example="", seen=True)
    codes = tuple(each.value for each in sentinels(numbers))
    others = numbers[~np.isin(numbers, codes)]
    levels = None if (others != np.round(others)).any() else _levels(others.tolist(), _MOST_CODES)
    if levels is None:
        return replace(column, missing=codes, seen=column.seen or bool(codes))
    if names_code(name) or (len(levels) == 2 and levels != (0.0, 1.0)):
        return replace(column, levels=levels, left_out="", seen=True)
    return replace(column, missing=codes, choices=levels, seen=True)


def _levels(cells: Sequence[Level], most: int) -> tuple[Level, ...] | None:
    """The values that many rows have, if they are few and nearly all cells have one."""
    counts = Counter(cells)
    levels = sorted(x for x, rows in counts.items() if rows >= _LEAST_ROWS and _is_printable(x))
    covered = sum(counts[level] for level in levels)
    return tuple(levels) if len(levels) <= most and covered >= _MOST * len(cells) > 0 else None


def _is_printable(level: Level) -> bool:
    """Whether a contract can state it: one with control characters is of a broken cell."""
    with contextlib.suppress(GramercyError, ValueError):
        return not isinstance(level, str) or bool(single_line(level))
    return False
