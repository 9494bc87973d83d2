"""What is proposed for the columns of a table if its steward has some rows looked at.

A value becomes part of a draft only if many of these rows have it: a level, or a number that stands
for missing values. Bounds never come from rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gramercy.cli.draft.drafting import Draft
from gramercy.cli.draft.proposals import DATE, IS_DATE, LEVELS, NUMBERS, Column, Level, names_code
from gramercy.pipeline.validation.notations import Texts, misread
from gramercy.pipeline.validation.sentinels import sentinels
from gramercy.schemas.column import MISSING
from gramercy.schemas.notation import NumberNotation
from gramercy.schemas.periods import glob_of_any_period, with_period
from gramercy.schemas.source import CsvFormat, at_location
from gramercy.tables.formats.raw_sample import MOST_FILES, raw_samples
from gramercy.tables.formats.source import open_source
from gramercy.tables.formats.values import IS_TEXT, TEXT, TRUTH, Numbers

_ROWS, _CELLS = 40_000, 4_000_000  # that are looked at, of all files together
_LEAST_ROWS = 10  # with a level
_MOST_LEVELS, _MOST_CODES = 20, 10  # of text, and of numbers
_MOST = 0.95  # of the cells that are not missing
_ALL_DIFFERENT, _LEAST_CELLS = 0.98, 100
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?")
_ZERO_IN_FRONT, _IN_DIGITS = re.compile(r"0[0-9]+"), re.compile(r"[0-9]+")
_LETTERS_AND_DIGITS = re.compile(r"[^\W\d_]+[-_]?[0-9]+")
_TRUTHS = ({"true", "false"}, {"yes", "no"}, {"y", "n"}, {"t", "f"})


@dataclass(frozen=True, repr=False)
class _Sampled:
    """The sampled cells of a column that are not missing. Private."""

    texts: list[str]  # of those that are stored as text
    numbers: NDArray[np.float64]  # of those that are numbers

    @classmethod
    def of(cls, arrays: Sequence[pa.Array], notation: NumberNotation) -> _Sampled:
        """The cells of all files."""
        found = [Numbers(notation).floats(each) for each in arrays]
        numbers = np.concatenate([np.empty(0), *found])
        stored = [each for each in map(_decoded, arrays) if any(f(each.type) for f in IS_TEXT)]
        texts = [text.strip() for each in stored for text in each.drop_null().to_pylist()]
        return cls([x for x in texts if x not in MISSING], numbers[np.isfinite(numbers)])

    @property
    def size(self) -> int:
        """The number of cells."""
        return max(len(self.texts), len(self.numbers))

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
    files = min(len(source.files), MOST_FILES)
    most = max(1, min(_ROWS // files, _CELLS // (files * len(names))))
    tables = [sample.cells for sample in raw_samples(source, names, most)]
    arrays = {
        name: [x for t in tables if name in t.column_names for x in t[name].chunks]
        for name in names
    }
    written = draft.written or CsvFormat()
    # Identifiers and free text say nothing about numbers, and could pass on a part of a cell.
    plain = [k for k in names if not draft.columns[k].left_out or draft.columns[k].example]
    stored = {name: _Sampled.of(arrays[name], written) for name in plain}
    texts = [
        Texts.of(name, pa.array(cells.texts, pa.string()), written.notation)
        for name, cells in stored.items()
        if _may_be_numbers(cells)
    ]
    for found in misread(texts, draft.table):
        if found.keys is not None:
            written = written.model_copy(update=dict(found.keys))
    sampled = {name: _Sampled.of(arrays[name], written) for name in names}
    columns = {name: _proposal(name, draft.columns[name], sampled[name]) for name in names}
    if draft.chosen:  # the steward knows better
        columns = {name: each for name, each in columns.items() if not each.left_out}
    changed = None if written == CsvFormat() else written
    drafted = draft.with_columns(columns)
    return replace(drafted, written=changed, decimal=written.decimal, looked=True)


def _may_be_numbers(cells: _Sampled) -> bool:
    """Whether most cells have digits, and they are neither few different texts nor like P0001."""
    if cells.most_match(_LETTERS_AND_DIGITS):
        return False
    with_digits = sum(any(map(str.isdigit, text)) for text in cells.texts)
    return 2 * with_digits > len(cells.texts) and _levels(cells.texts, _MOST_LEVELS) is None


def _proposal(name: str, column: Column, cells: _Sampled) -> Column:
    """What the first rule says that applies; else the column as it was proposed."""
    if cells.size < _LEAST_ROWS or column.kind == TRUTH:
        return column
    return next((found for rule in _RULES if (found := rule(name, column, cells))), column)


def _dates(name: str, column: Column, cells: _Sampled) -> Column | None:
    if not cells.most_match(_ISO):
        return None
    return replace(column, left_out=IS_DATE, example=DATE)


def _all_different(name: str, column: Column, cells: _Sampled) -> Column | None:
    """Texts of which hardly any occurs twice; so numbers, if they count rows or are as long."""
    found: Sequence[Level] = cells.texts or cells.numbers.tolist()
    if len(found) < _LEAST_CELLS or len({*found}) < _ALL_DIFFERENT * len(found):
        return None
    numbers = cells.numbers
    if len(numbers) >= _MOST * len(found):
        lengths = {len(f"{abs(x):.0f}") for x in numbers}
        counts_rows = bool((np.diff(numbers) > 0).all())
        is_long = len(lengths) == 1 and max(lengths) > 5
        if (numbers != np.round(numbers)).any() or not (counts_rows or is_long):
            return None
    return replace(
        column, left_out="nearly all cells are different, as of an identifier", example=""
    )


def _text_levels(name: str, column: Column, cells: _Sampled) -> Column | None:
    """Few texts, of truth values or others; also digits with zeros in front."""
    are_codes = cells.most_match(_IN_DIGITS) and any(map(_ZERO_IN_FRONT.fullmatch, cells.texts))
    if not cells.texts or (2 * len(cells.numbers) > len(cells.texts) and not are_codes):
        return None
    levels = _levels(cells.texts, _MOST_LEVELS)
    if levels is None:
        why = "codes with zeros in front" if are_codes else "text with many different cells"
        reason = f"{why}: list levels, and remove the first '#'"
        return replace(column, left_out=reason, example=column.example or "{levels: [A, B]}")
    is_truth = {str(level).lower() for level in levels} in _TRUTHS
    return replace(column, levels=(True, False) if is_truth else levels, left_out="", seen=True)


def _numbers(name: str, column: Column, cells: _Sampled) -> Column | None:
    """Codes for missing values, and few whole numbers, which are levels if they are codes."""
    numbers = cells.numbers
    if 2 * len(numbers) < cells.size:
        return None
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


_RULES: tuple[Callable[[str, Column, _Sampled], Column | None], ...] = (
    _dates,
    _all_different,
    _text_levels,
    _numbers,
)


def _levels(cells: Sequence[Level], most: int) -> tuple[Level, ...] | None:
    """The values that many rows have, if they are few and nearly all cells have one."""
    counts = Counter(cells)
    levels = sorted(x for x, rows in counts.items() if rows >= _LEAST_ROWS)
    covered = sum(counts[level] for level in levels)
    return tuple(levels) if len(levels) <= most and covered >= _MOST * len(cells) > 0 else None


def _decoded(cells: pa.Array) -> pa.Array:
    return cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells
