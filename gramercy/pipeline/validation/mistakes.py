"""Mistakes in a table that a steward can correct before a charge, with the line that corrects them.

What is found are guesses about a sample of private rows. They are for the steward alone: on the
terminal of a check, and in the internal record of a release. They decide nothing.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gramercy.estimators.proposals import Shape, for_the_steward, proposals
from gramercy.pipeline.plan.checking import percentage, required_columns
from gramercy.pipeline.validation.date_notations import (
    WrittenDates,
    are_iso,
    has_short_years,
    likely_dates,
)
from gramercy.pipeline.validation.notations import SHEET_ERROR, Misread, Texts, misread, shape_of
from gramercy.pipeline.validation.sentinels import sentinels, two_units
from gramercy.schemas import families
from gramercy.schemas.column import Column, ColumnKind, Derived, Levels, level_names
from gramercy.schemas.contract import Contract
from gramercy.schemas.corrections import as_yaml
from gramercy.schemas.model import has_unprintable
from gramercy.schemas.notation import NumberNotation
from gramercy.schemas.problem import Notice
from gramercy.schemas.source import CsvFormat, notation_of, original
from gramercy.tables.formats.byte_streams import SUBSTITUTE
from gramercy.tables.formats.dates import filled
from gramercy.tables.formats.file_kinds import conversion
from gramercy.tables.formats.raw_sample import MOST_FILES, MOST_ROWS, RawSample, raw_samples
from gramercy.tables.formats.source import Source, open_source
from gramercy.tables.formats.values import coding_of, is_text

_SAMPLED_ROWS, _SAMPLED_CELLS = 40_000, 4_000_000  # of all files together
_FEW_ROWS = 30  # of which little can be said
_MOST_NAMED = 10


def sample_of(source: Source, columns: Sequence[str]) -> list[RawSample]:
    """The rows in which mistakes are looked for, and which Great Expectations validates."""
    files = min(len(source.files), MOST_FILES)
    most = min(_SAMPLED_ROWS // files, _SAMPLED_CELLS // (files * len(columns)), MOST_ROWS)
    return list(raw_samples(source, columns, max(1, most)))


def sampled_table(contract: Contract) -> SampledTable:
    """Rows of the table of a contract as it is now, for the steward's terminal alone."""
    samples = list[RawSample]()
    with contextlib.suppress(Exception):  # of a table that a pass has read; nothing depends on it
        source = open_source(original(contract.source))
        samples = sample_of(source, required_columns(contract))
    return SampledTable(contract, samples, shows_levels=True)


def find_mistakes(table: SampledTable) -> list[Notice]:
    """What looks like a mistake, each with its remedy. Private; raises nothing.

    Each has in its facts a `mistake`, which is a word for its kind, its `columns`, and the `line`
    of the contract that corrects it, if one does.
    """
    found = list[Notice]()
    for look in LOOKS:
        with contextlib.suppress(Exception):  # a guess that fails has nothing to say
            found += look(table)
    return found


def derived_columns(table: SampledTable) -> list[Notice]:
    """What could be computed from columns that are mostly zero, or have long tails. Private."""
    declared = table.contract.columns
    known = [each.facts for each in declared.values() if isinstance(each, Derived)]
    shapes = [
        Shape.of_cells(each.name, each.numbers, each.declared.limits[0])
        for each in table.numeric
        if each.name in declared
    ]
    proposed = for_the_steward([*proposals(shapes, known)])
    return [] if proposed is None else [proposed]


def described(notices: Iterable[Notice]) -> list[dict[str, Any]]:
    """Mistakes as plain data: the arguments of a `Notice`. Private."""
    plain: list[dict[str, Any]] = json.loads(json.dumps([asdict(each) for each in notices]))
    return plain


@dataclass(frozen=True, repr=False)
class SampledTable:
    """The sampled rows of all files. Private."""

    contract: Contract
    samples: list[RawSample] = field(repr=False)
    shows_levels: bool = False  # whether cells that are not a declared level may be named

    @property
    def rows(self) -> int:
        """The number of sampled rows."""
        return sum(each.cells.num_rows for each in self.samples)

    @cached_property
    def columns(self) -> dict[str, SampledColumn]:
        """The declared columns that files have."""
        notation = notation_of(self.contract.source)
        stored = {name for each in self.samples for name in each.cells.column_names}
        return {
            name: SampledColumn(name, declared, self.cells(name), notation)
            for name, declared in self.contract.table_columns.items()
            if name in stored
        }

    @property
    def numeric(self) -> list[SampledColumn]:
        """The columns of numbers without those of dates."""
        return [each for each in self.columns.values() if each.is_numeric]

    def correction(self, column: SampledColumn, levels: Any) -> tuple[str | None, str]:
        """The line of the contract that corrects levels, and what to do; see `shows_levels`."""
        line = f"levels: {as_yaml(levels)}" if isinstance(column.declared, Levels) else None
        if not self.shows_levels:
            line, remedy = None, "'gramercy check' shows more of them."
        elif line is None:
            remedy = "Add them to a group in the contract, such as the group of all others: '*'."
        else:
            remedy = f"Write for this column in the contract: {line}."
        return line, remedy

    def cells(self, name: str) -> list[pa.Array]:
        """The cells of a column, by file."""
        kept = (each.cells for each in self.samples if name in each.cells.column_names)
        return [cells[name].combine_chunks() for cells in kept]


@dataclass(frozen=True, repr=False)
class SampledColumn:
    """The sampled cells of a column. Private."""

    name: str
    declared: ColumnKind
    cells: list[pa.Array] = field(repr=False)  # of every file, as stored
    notation: NumberNotation

    @property
    def is_numeric(self) -> bool:
        """Whether cells are read as numbers."""
        return isinstance(self.declared, Column) and not self.is_date

    @property
    def is_text(self) -> bool:
        """Whether all cells are stored as text, as in CSV."""
        return bool(self.cells) and all(is_text(each.type) for each in self.cells)

    @property
    def is_date(self) -> bool:
        """Whether cells are read as dates."""
        return self.declared.date_unit is not None

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The cells as a release reads them; indices of levels; NaN where there is none."""
        coding = coding_of(self.declared.coding, self.notation)
        found = [coding.floats(each).astype(np.float64) for each in self.cells]
        numbers = np.concatenate(found) if found else np.empty(0)
        numbers[~np.isfinite(numbers) | np.isin(numbers, self.declared.missing_codes)] = np.nan
        return numbers

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """Which cells are not missing, read or not."""
        found = [each.is_valid().to_numpy(zero_copy_only=False) for each in self.cells]
        return np.concatenate(found).astype(bool) if found else np.empty(0, bool)

    @cached_property
    def texts(self) -> pa.Array:
        """The cells that are stored as text; missing where they are not."""
        texts = [
            each.cast(pa.string()) if is_text(each.type) else pa.nulls(len(each), pa.string())
            for each in self.cells
        ]
        return pa.concat_arrays(texts) if texts else pa.array([], pa.string())

    @property
    def distinct(self) -> int:
        """The number of different cells, a missing one among them."""
        return len(np.unique(self.codes))

    @cached_property
    def dates(self) -> WrittenDates | None:
        """How its cells are written, of a column of numbers that seem to be dates."""
        if _are_numbers_of_dates(self.numbers):
            return WrittenDates("yearmonthday")
        known = int(pc.sum(self.texts.is_valid()).as_py() or 0)
        if known < _FEW_ROWS or np.isfinite(self.numbers).mean() > 1 - _MOSTLY:
            return None
        if are_iso(self.texts):
            return WrittenDates(None)
        return likely_dates(self.texts, None, counted=False)

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """A number for every different cell as it is stored; -1 where it is missing."""
        if len({str(each.type) for each in self.cells}) == 1:
            encoded = pa.concat_arrays(self.cells).dictionary_encode()
            return np.asarray(pc.fill_null(encoded.indices, -1).to_numpy(), np.int64)
        return np.unique(np.nan_to_num(self.numbers, nan=-np.inf), return_inverse=True)[1] - 1


def _sentinels(table: SampledTable) -> Iterator[Notice]:
    """Numbers, and dates, that are repeated far from all others."""
    for column in table.columns.values():
        if not (column.is_numeric or column.is_date):
            continue
        bounds = column.declared.limits if column.declared.has_bounds else None
        if not (found := sentinels(column.numbers, bounds)):
            continue
        written = [_as_stored(column, each.value) for each in found]
        listed = [_as_stored(column, each) for each in column.declared.missing_codes]
        line = f"missing: [{', '.join([*listed, *written])}]"
        yield families.MANY_CELLS(
            "{columns}: these numbers are repeated, far from all others: {values}.",
            "If they stand for missing values, write for this column in the contract: {line}. "
            "Otherwise declare bounds from knowledge of the field, and mind that they decide the "
            "mean.",
            mistake="sentinel",
            columns=(column.name,),
            values=tuple(
                f"{text} ({percentage(each.cells / table.rows)} of {table.rows} sampled rows)"
                for text, each in zip(written, found, strict=True)
            ),
            line=line,
        )


def _as_stored(column: SampledColumn, value: float) -> str:
    """A number of a column as a contract writes it; of dates, the date."""
    if column.is_date and np.any(where := column.numbers == value):
        cell = pa.chunked_array(column.cells)[int(np.argmax(where))].as_py()
        return str(cell)[:10]
    return as_yaml(float(value))


def _notations(table: SampledTable) -> Iterator[Notice]:
    """Numbers in another notation than the contract states."""
    shown = [column for column in table.numeric if column.dates is None]
    texts = [Texts.of(column.name, column.texts, column.notation) for column in shown]
    for found in misread(texts, table.contract.source):
        yield _misread(found)


_LIMITS = frozenset("<>≤≥")


def _misread(found: Misread) -> Notice:
    share = percentage(found.share)
    line = None if found.keys is None else as_yaml(found.keys)[1:-1]
    if found.keys is None and found.ambiguous:
        return families.MANY_CELLS(
            "{columns}: some cells have decimal points, and others decimal commas, such as "
            "{shapes}. Which of the two the mark in 9,999 or 9.999 is ({share} of the cells) "
            "cannot be decided.",
            "Export the column again with decimal points and without marks between thousands. "
            "Otherwise cells of one of the two notations are missing, or other numbers.",
            mistake="mixed notations",
            columns=found.columns,
            share=share,
            shapes=found.shapes,
            line=line,
        )
    if all(shape.lstrip()[:1] in _LIMITS for shape in found.shapes):
        return families.MANY_CELLS(
            "{columns}: {share} of the cells are limits, as of a measurement: {shapes}.",
            "They count as missing, and the mean is then that of the other cells. In the file, "
            "write a number for each, such as the limit or half of it, as is usual in the field."
            "{also}",
            mistake="limits",
            columns=found.columns,
            share=share,
            shapes=found.shapes,
            line=line,
            also=f" To read the limits themselves, write under the contract's 'source', next to "
            f"its 'path' or 'url': {line}."
            if line
            else "",
        )
    if found.keys is None:
        return families.MANY_CELLS(
            "{columns}: {share} of the cells have digits, but are not read as numbers. They look "
            "like: {shapes}.",
            "They count as missing. Export the column as plain numbers such as 1234.5, or store it "
            "in a Parquet file as numbers. Decimal commas need a 'separator' that is not a comma. "
            "Ranges such as 10-19 are levels.",
            mistake="notation",
            columns=found.columns,
            share=share,
            shapes=found.shapes,
            line=line,
        )
    if found.qualified:
        return families.MANY_CELLS(
            "{columns}: {share} of the cells are numbers with marks, such as those of footnotes, "
            "and not read. They look like: {shapes}.",
            "They count as missing. To read '5*' as 5, write under the contract's 'source', next "
            "to its 'path' or 'url': {line}. Otherwise correct the table.",
            mistake="marked numbers",
            columns=found.columns,
            share=share,
            shapes=found.shapes,
            line=line,
        )
    if found.ambiguous:
        return families.MANY_CELLS(
            "{columns}: all marks are before three digits, as in {shapes} ({share} of the cells). "
            "If they separate thousands, these cells are read as other numbers, or not at all.",
            "If so, write under the contract's 'source', next to its 'path' or 'url': {line}.",
            mistake="notation",
            columns=found.columns,
            share=share,
            shapes=found.shapes,
            line=line,
        )
    return families.MANY_CELLS(
        "{columns}: cells are not read as numbers ({share} of one of these columns). They look "
        "like: {shapes}.",
        "They count as missing. Write under the contract's 'source', next to its 'path' or 'url': "
        "{line}.",
        mistake="notation",
        columns=found.columns,
        share=share,
        shapes=found.shapes,
        line=line,
    )


def _encodings(table: SampledTable) -> Iterator[Notice]:
    """Bytes that are not characters of the file's encoding, as a reader marks them."""
    names = tuple(
        column.name
        for column in table.columns.values()
        if pc.any(pc.match_substring(column.texts, SUBSTITUTE)).as_py()
    )
    if names:
        declared = getattr(table.contract.source, "encoding", "utf-8")
        other = "cp1252" if declared == "utf-8" else "utf-8"
        yield families.MANY_CELLS(
            "{columns}: cells have bytes that are not text in {encoding}, such as that of the ä in "
            "another encoding.",
            "Write under the contract's 'source', next to its 'path' or 'url': {line}. Or save "
            "the file in {encoding}.",
            mistake="encoding",
            columns=names[:_MOST_NAMED],
            encoding=declared,
            line=f"encoding: {other}",
        )


_MANY_WORDS = 0.2
_NO_NUMBERS = {
    "errors of a spreadsheet, such as #DIV/0!": SHEET_ERROR.pattern,
    "truth values": "(?i:true|false)",
    "infinite": "[+-]?(?i:inf|infinity)",
}


def _words(table: SampledTable) -> Iterator[Notice]:
    """Words among numbers: they are missing already, so only many of them are worth a notice."""
    for column in table.numeric:
        unread = column.present & np.isnan(column.numbers)
        texts = column.texts.filter(pa.array(unread))
        words = pc.sum(pc.invert(pc.match_substring_regex(texts, r"\d"))).as_py() or 0
        for kind, pattern in _NO_NUMBERS.items():
            count = pc.sum(pc.match_substring_regex(texts, f"^\\s*{pattern}\\s*$")).as_py() or 0
            if count >= max(3, _FEW_UNREAD * len(column.numbers)):
                yield families.MANY_CELLS(
                    "{columns}: {share} of the cells are {kind}.",
                    "They count as missing. Correct them in the table if they stand for numbers.",
                    mistake="no numbers",
                    columns=(column.name,),
                    share=percentage(count / len(column.numbers)),
                    kind=kind,
                )
        if words > _MANY_WORDS * len(column.numbers):
            yield families.MANY_CELLS(
                "{columns}: {share} of the cells are words.",
                "They count as missing, which is right if they say so, such as 'unknown'. "
                "Categories are declared as levels.",
                mistake="words",
                columns=(column.name,),
                share=percentage(words / len(column.numbers)),
            )


def _dates(table: SampledTable) -> Iterator[Notice]:
    """Dates in columns of numbers, and those of another notation than the contract states."""
    for column in table.columns.values():
        if column.is_date:
            yield from _unread_dates(column)
        elif column.is_numeric and column.name in table.contract.columns:
            yield from _undeclared_dates(column)


_DATE_COLUMN = "{unit: days since 1970-01-01, lower: 1900-01-01, upper: 2030-12-31}"


def _undeclared_dates(column: SampledColumn) -> Iterator[Notice]:
    if (found := column.dates) is None:
        return
    source = "" if found.dates is None else f"dates: {found.dates}"
    yield families.MANY_CELLS(
        "{columns}: the cells are dates, which are not read as numbers, or whose differences are "
        "not days.{doubt}",
        "Write for this column in the contract, with bounds of your own: {line}{also}.",
        mistake="dates",
        columns=(column.name,),
        doubt=f" They look like '{source}'. {_doubt(found)}".rstrip() if source else "",
        line=_DATE_COLUMN,
        source=source,
        also=f"; and under its 'source', next to 'path' or 'url': {source}" if source else "",
    )


def _unread_dates(column: SampledColumn) -> Iterator[Notice]:
    unread = column.present & np.isnan(column.numbers)
    texts = column.texts.filter(pa.array(unread & column.texts.is_valid().to_numpy(False)))
    if len(texts) < max(3, _FEW_UNREAD * len(unread)):
        return
    common = Counter(shape_of(each) for each in texts.to_pylist()).most_common(3)
    share, shapes = percentage(len(texts) / len(unread)), tuple(shape for shape, _ in common)
    found = likely_dates(column.texts, column.notation.dates, counted=True)
    if found is None:
        yield families.MANY_CELLS(
            "{columns}: {share} of the cells are not read as dates. They look like: {shapes}.",
            "They count as missing. {remedy}",
            mistake="dates",
            columns=(column.name,),
            share=share,
            shapes=shapes,
            remedy="A year of two digits can be in two centuries: export the dates with all four."
            if has_short_years(texts)
            else "If they are dates, export them as 2026-11-23, all in one way.",
        )
        return
    yield families.MANY_CELLS(
        "{columns}: {share} of the cells are not read as dates. They look like: {shapes}. {doubt}",
        "They count as missing. Write under the contract's 'source', next to its 'path' or 'url': "
        "{line}.",
        mistake="dates",
        columns=(column.name,),
        share=share,
        shapes=shapes,
        line=f"dates: {found.dates}",
        doubt=_doubt(found),
    )


def _doubt(found: WrittenDates) -> str:
    """What else the cells may be."""
    if not found.other:
        return ""
    return f"They may also be 'dates: {found.other}', which are other days: you have to know which."


_FEW_UNREAD = 5e-4
_MOSTLY = 0.9


def _are_numbers_of_dates(numbers: NDArray[np.float64]) -> bool:
    known = numbers[np.isfinite(numbers)]
    if known.size < _FEW_ROWS or np.any(known != np.round(known)) or len(np.unique(known)) < 10:
        return False
    year, month, day = known // 10_000, known // 100 % 100, known % 100
    fits = (year >= 1800) & (year <= 2200) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    return bool(fits.mean() > _MOSTLY and day.max() > 12)


def _units(table: SampledTable) -> Iterator[Notice]:
    for column in table.numeric:
        if (found := two_units(column.numbers)) is not None:
            factor, share = found
            yield families.MANY_CELLS(
                "{columns}: {share} of the cells are about {factor} times smaller or larger than "
                "the others, and no cell is between: some may be in another unit.",
                "Write all cells in one unit before a release.",
                mistake="two units",
                columns=(column.name,),
                factor=round(factor),
                share=percentage(share),
            )


def _constants(table: SampledTable) -> Iterator[Notice]:
    names = tuple(
        column.name
        for column in table.columns.values()
        if column.codes.size >= _FEW_ROWS
        and column.distinct == 1
        and np.isfinite(column.numbers).any()
    )
    if names:
        yield families.MANY_CELLS(
            "All sampled cells are the same in: {columns}.",
            "A constant column costs noise and says nothing. Remove it from 'columns', or if a "
            "pattern matches it write: {line}.",
            mistake="constant",
            columns=names[:_MOST_NAMED],
            line=_exclude(names),
        )


def _exclude(names: Sequence[str]) -> str:
    return f"exclude: {as_yaml(names[:_MOST_NAMED])}"


def _copies(table: SampledTable) -> Iterator[Notice]:
    """Columns that equal another one, of which one is enough."""
    first = dict[bytes, str]()
    for column in table.columns.values():
        if column.codes.size < _FEW_ROWS or column.distinct < 3:
            continue
        values = np.nan_to_num(column.numbers, nan=-np.inf) if column.is_numeric else column.codes
        earlier = first.setdefault(values.tobytes(), column.name)
        if earlier != column.name:
            yield families.MANY_CELLS(
                "The columns {columns} say the same in all sampled rows.",
                "Publish one of them. If a pattern matches the other, write: {line}.",
                mistake="copy",
                columns=(earlier, column.name),
                line=_exclude((column.name,)),
            )


_ID_NAME = re.compile(
    r"(?i)(.*[_\W])?(id|ids|uuid|guid|index|rownames?|row_?number|rn|nr)"
    r"|unnamed: 0|__index_level_\d__|x\.?1?"
)


def _identifiers(table: SampledTable) -> Iterator[Notice]:
    """Columns of numbers or levels of which nearly every cell is different."""
    names = tuple(column.name for column in table.columns.values() if is_identifier(column))
    if names:
        yield families.MANY_CELLS(
            "Nearly every cell is different, as of an identifier, in: {columns}.",
            "An identifier says nothing in sums. Remove it from 'columns', or if a pattern matches "
            "it write: {line}.",
            mistake="identifier",
            columns=names[:_MOST_NAMED],
            line=_exclude(names),
        )


def is_identifier(column: SampledColumn) -> bool:
    """Whether nearly every cell is different, and numbers count rows or are as long."""
    known = column.codes[column.codes >= 0]
    if known.size < 100 or len(np.unique(known)) < 0.98 * known.size:
        return False
    if not column.is_numeric:
        return not column.is_date
    numbers = column.numbers[np.isfinite(column.numbers)]
    if column.dates is not None:
        return False
    if numbers.size < 100 or np.any(numbers != np.round(numbers)):
        return False
    steps = np.diff(numbers)
    counts_rows = np.mean(steps == 1) > 0.9 or (steps > 0).all()
    are_long = len({len(f"{abs(x):.0f}") for x in numbers}) == 1 and abs(numbers[0]) >= 1e5
    return bool(counts_rows or are_long or _ID_NAME.fullmatch(column.name))


def _persons(table: SampledTable) -> Iterator[Notice]:
    """Ids of persons that differ from another one only in zeros at an end, or in punctuation.

    Ids with the same marks in other places, such as 1-11 and 11-1, are different ones.
    """
    name = table.contract.person_column
    if name is None:
        return
    texts = [each.cast(pa.string()) for each in table.cells(name) if is_text(each.type)]
    by_zeros: dict[str, set[str]] = {}
    by_marks: dict[str, dict[str, str]] = {}  # one id of every arrangement of marks
    for text in pa.chunked_array(texts, pa.string()).drop_null().unique().to_pylist():
        plain = text.strip().casefold()
        bare = re.sub(r"^0+(?=\w)|\.0+$", "", re.sub(r"(?<=\D)0+(?=\d)", "", plain))
        by_zeros.setdefault(bare, set()).add(plain)
        whole = re.sub(r"\.0+$", "", plain)
        marks = by_marks.setdefault(re.sub(r"[\W_]+", "", whole), {})
        marks.setdefault(re.sub(r"[^\W_]+", "", whole), plain)
    groups = [*by_zeros.values(), *(set(marks.values()) for marks in by_marks.values())]
    alike = len(set().union(*(group for group in groups if len(group) > 1)))
    if alike:
        yield families.PERSON_IDS(
            "{alike} of {ids} sampled ids in '{column}' differ from another id only in zeros or "
            "marks, as 7 and 007, or 756.12 and 75612 do.",
            "The guarantee is for each spelling: it does not hold for a person with two of them. "
            "Write every id in one way before a release.",
            mistake="alike",
            columns=(name,),
            alike=alike,
            ids=sum(map(len, by_zeros.values())),
            column=name,
        )


_TOTALS = re.compile(
    r"(?i)\W*(grand |sub)?(total|totals|sum|summe|gesamt|insgesamt|somme|suma|totale)\W*"
)
_TIMES_LARGEST, _FEWEST_ROWS, _LONGEST_FOOTER = 5.0, 10, 6


def _totals(table: SampledTable) -> Iterator[Notice]:
    """Rows at the end that are sums of the others, perhaps with notes below them."""
    ends = _ends([each.cells for each in table.samples])
    numbers = [np.split(each.numbers, ends) for each in table.numeric]
    files = [
        each.file
        for k, each in enumerate(table.samples)
        if each.has_last and _ends_in_total(each, [parts[k] for parts in numbers])
    ]
    if files:
        yield families.UNUSABLE_LINES(
            "A row at the end looks like a total of all others: {files}.",
            "It would count as a row. Remove it, and what is below it, from the file before a "
            "release.",
            mistake="total row",
            columns=(),
            files=tuple(files[:_MOST_NAMED]),
        )


def _ends_in_total(sample: RawSample, columns: Sequence[NDArray[np.float64]]) -> bool:
    """Whether the last row with numbers has sums of columns, or large ones and is named a total."""
    if sample.cells.num_rows < _FEWEST_ROWS:
        return False
    size = sample.cells.num_rows
    with_numbers = np.isfinite(np.asarray(columns)).any(axis=0)
    row = max(np.flatnonzero(with_numbers).tolist(), default=size - 1)
    if row < size - _LONGEST_FOOTER:
        return False
    last = [each[row].as_py() for each in sample.cells.columns]
    labelled = any(isinstance(x, str) and _TOTALS.fullmatch(x.strip()) for x in last)
    sums = larger = large_sums = compared = 0
    for numbers in columns:
        others, total = numbers[:row][np.isfinite(numbers[:row])], numbers[row]
        if np.isnan(total) or not others.size or others.min() < 0 or len(np.unique(others)) < 2:
            continue
        compared += 1
        is_sum = abs(total - others.sum()) <= 1e-6 * total
        is_large = total > _TIMES_LARGEST * others.max()
        sums, larger, large_sums = sums + is_sum, larger + is_large, large_sums + is_sum * is_large
    if labelled:
        return not compared or larger > 0
    # Of a part of the rows there are no sums to compare with.
    found = sums if sample.complete else larger
    return bool(sample.complete and large_sums) or found >= max(1, min(2, compared))


_MOST_ABOVE = 5  # lines of units and descriptions


def _lines_above(table: SampledTable) -> Iterator[Notice]:
    """Lines between the header and the first row, such as units."""
    source = table.contract.source
    written = source if isinstance(source, CsvFormat) else CsvFormat()
    lines = {_unread_at_first(SampledTable(table.contract, [each])) for each in table.samples}
    if lines and 0 not in lines:
        yield families.UNUSABLE_LINES(
            "Lines below the header without a cell that is read, in any column whose other cells "
            "are read: {count}. They may be units or descriptions.",
            "Each would count as a row. If they are not rows, write under the contract's 'source', "
            "next to its 'path': {line}.",
            mistake="lines below the header",
            columns=(),
            count=min(lines),
            line=f"first_row: {(written.first_row or written.header + 1) + min(lines)}",
        )


def _unread_at_first(table: SampledTable) -> int:
    """The number of rows at the beginning in which no cell is read; 0 if these are many."""
    read = [x for x in table.columns.values() if np.isfinite(x.numbers).mean() > _MOSTLY / 2]
    if table.rows < _FEW_ROWS or not read or not all(each.is_text for each in read):
        return 0
    empty = ~np.array([np.isfinite(each.numbers) for each in read]).any(axis=0)
    empty &= np.array([each.present for each in read]).any(axis=0)
    first = int(np.argmin(empty))
    return first if first <= _MOST_ABOVE else 0


def _headers_among_rows(table: SampledTable) -> Iterator[Notice]:
    """Rows whose cells are the names of their columns, as where files were joined."""
    for sample in table.samples:
        texts = [
            (column.name, column.texts)
            for column in SampledTable(table.contract, [sample]).columns.values()
        ]
        same = [
            filled(pc.equal(pc.utf8_trim(cells, characters=" \t\ufeff"), name))
            for name, cells in texts
        ]
        repeated = int(np.all(same, axis=0).sum()) if len(same) > 1 else 0
        if repeated:
            command, target = conversion(sample.file)
            yield families.UNUSABLE_LINES(
                "{file}: {repeated} of the sampled rows repeat the names of the columns, as where "
                "files were joined.",
                "Each would count as a row. Run '{command}', which leaves them out, and name "
                "{target} as the contract's 'source'.",
                mistake="repeated header",
                columns=(),
                file=sample.file,
                repeated=repeated,
                command=command,
                target=target,
            )


_MANY_DUPLICATES, _MORE_THAN_CHANCE = 0.01, 10.0


def _duplicates(table: SampledTable) -> Iterator[Notice]:
    """Rows that occur twice, more often than by chance."""
    columns, rows = [*table.columns.values()], _hashed_rows(table)
    if rows.size < _FEW_ROWS:
        return
    files = np.split(rows, _ends([each.cells for each in table.samples]))
    whole = [
        part.tobytes()
        for part, sample in zip(files, table.samples, strict=True)
        if sample.complete and len(np.unique(part)) >= _FEW_ROWS
    ]
    half = rows.size // 2
    appended = 2 * half == rows.size and np.array_equal(rows[:half], rows[half:])
    if len(set(whole)) < len(whole) or (appended and len(np.unique(rows)) >= _FEW_ROWS):
        yield families.UNUSABLE_LINES(
            "All rows of a file occur twice, in the same order.",
            "Every row counts, and the guarantee is for one of two rows alone. Remove the second "
            "copy before a release.",
            mistake="duplicates",
            columns=(),
        )
        return
    share = 1 - len(np.unique(rows)) / rows.size
    rarest = sorted(_chance_of_a_pair(column.codes) for column in columns)[:2]  # others depend
    by_chance = rows.size * math.prod(rarest)
    if share > max(_MANY_DUPLICATES, _MORE_THAN_CHANCE * by_chance):
        yield families.UNUSABLE_LINES(
            "{share} of the sampled rows equal another row in all columns.",
            "If they are records that were written twice, remove the second ones before a "
            "release: every row counts.",
            mistake="duplicates",
            columns=(),
            share=percentage(share),
        )


def _chance_of_a_pair(codes: NDArray[np.int64]) -> float:
    """The chance that two rows have the same cell."""
    counts = np.unique(codes, return_counts=True)[1].astype(np.float64)
    return float((counts * (counts - 1)).sum() / (codes.size * (codes.size - 1.0)))


def _hashed_rows(table: SampledTable) -> NDArray[np.uint64]:
    """A number for every row, the same for rows with the same cells in all columns."""
    columns = [column.codes for column in table.columns.values()]
    if (persons := table.contract.person_column) is not None:
        texts = [each.cast(pa.string()) for each in table.cells(persons)]
        encoded = pa.concat_arrays(texts).dictionary_encode()
        columns.append(pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64))
    rows = np.zeros(table.rows, np.uint64)
    for codes in columns:
        rows = (rows ^ codes.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        rows ^= rows >> np.uint64(29)
    return rows


_LEAST_LEVEL, _LEAST_LEVEL_SHARE, _MOST_LEVELS = 5, 0.002, 20


def _levels(table: SampledTable) -> Iterator[Notice]:
    """Cells that are not a declared level: other spellings of one, or levels that are missing."""
    for column in table.columns.values():
        declared = column.declared.categories
        if isinstance(column.declared, Levels):
            yield from _declared_alike(column.name, column.declared)
        unknown = column.present & np.isnan(column.numbers)
        if declared is None or not unknown.any() or is_identifier(column):
            continue
        cells = Counter[str]()
        for each, kept in zip(column.cells, np.split(unknown, _ends(column.cells)), strict=True):
            for value in each.filter(pa.array(kept)).value_counts():
                cells[str(value["values"].as_py())] += value["counts"].as_py()
        levels = level_names(declared)
        known = {plain_form(each): each for each in levels}
        spelt = {text: known[plain_form(text)] for text in cells if plain_form(text) in known}
        if spelt:
            groups = {x: [x, *sorted(text for text in spelt if spelt[text] == x)] for x in levels}
            line, remedy = table.correction(column, groups)
            yield families.MANY_CELLS(
                "{columns}: {share} of the cells differ from a declared level only in capitals, "
                "blanks or the form of accents.",
                "They count as no level. {remedy}",
                mistake="spelling of levels",
                columns=(column.name,),
                share=percentage(sum(cells[text] for text in spelt) / len(unknown)),
                remedy=remedy,
                line=line,
            )
        least = max(_LEAST_LEVEL, _LEAST_LEVEL_SHARE * len(unknown))
        others = {
            text: count
            for text, count in cells.items()
            if text not in spelt and count >= least and not has_unprintable(text)
        }
        if not others:
            continue
        shown = sorted(others, key=lambda each: (-others[each], each))[:_MOST_LEVELS]
        are_texts = isinstance(declared[0], str)
        listed = [*declared, *(shown if are_texts else map(_number, shown))]
        line, remedy = table.correction(column, listed)
        yield families.MANY_CELLS(
            "{columns}: {share} of the cells are not a declared level; {count} other values are "
            "frequent.",
            "They may be levels that the field knows. {remedy}",
            mistake="unknown levels",
            columns=(column.name,),
            share=percentage(sum(others.values()) / len(unknown)),
            count=len(others),
            remedy=remedy,
            line=line,
        )


def _declared_alike(name: str, declared: Levels) -> Iterator[Notice]:
    groups: dict[str, list[str]] = {}
    for level in level_names(declared.categories):
        groups.setdefault(plain_form(level), []).append(level)
    if len(groups) < len(declared.categories):
        yield families.MANY_CELLS(
            "{columns}: declared levels differ only in capitals, blanks or the form of accents.",
            "Each is published as a column of its own. If they are one answer, write for this "
            "column in the contract: {line}.",
            mistake="levels alike",
            columns=(name,),
            line=f"levels: {as_yaml({each[0]: each for each in groups.values()})}",
        )


def _ends(parts: Sequence[Any]) -> NDArray[np.int64]:
    """Where all parts but the last one end, if they follow each other."""
    return np.cumsum([len(each) for each in parts])[:-1]


def plain_form(text: str) -> str:
    """A text without blanks, capitals and the forms of accents, in which spellings differ."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text)).casefold()


def _number(text: str) -> float | str:
    with contextlib.suppress(ValueError):
        return float(text)
    return text


# What is looked for; each is one function of a table.
LOOKS: tuple[Callable[[SampledTable], Iterator[Notice]], ...] = (
    _sentinels,
    _lines_above,
    _headers_among_rows,
    _notations,
    _encodings,
    _words,
    _dates,
    _units,
    _levels,
    _identifiers,
    _persons,
    _totals,
    _duplicates,
    _constants,
    _copies,
)
