"""Check a table against its contract: headers for every release, cells for the steward alone.

Files, columns and types are public facts, and the only ones that may cause a refusal: one that
depends on cells would reveal something about them. `gramercy plan` shows what is wrong before
Prefect starts; a release checks the headers again.

The counts of `check_table` are exact functions of private data. They go to the steward's terminal
only: not to files, logs or Prefect. A release never uses them.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import difflib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gramercy.schemas import families, wordings
from gramercy.schemas.column import ColumnKind
from gramercy.schemas.contract import Contract
from gramercy.schemas.corrections import as_yaml
from gramercy.schemas.database import DatabaseTable
from gramercy.schemas.errors import TableError
from gramercy.schemas.model import nfc
from gramercy.schemas.problem import Notice
from gramercy.schemas.source import CsvFormat, display_name, notation_of
from gramercy.schemas.steps import StepDays
from gramercy.tables.batches import EXCESS_ROWS, MalformedLines
from gramercy.tables.formats.conversion import is_convertible, other_fields
from gramercy.tables.formats.file_kinds import conversion, unusual_layout
from gramercy.tables.formats.lines import FaultyLines, LineFault
from gramercy.tables.formats.reader import cell_batches, column_types
from gramercy.tables.formats.source import Source, faulty_lines, open_source
from gramercy.tables.formats.table_format import SourceFile
from gramercy.tables.formats.values import (
    ANY,
    DOUBLE,
    TEXT,
    TRUTH,
    WHOLE,
    coding_of,
    written_dates,
)
from gramercy.tables.persons.person_index import IndexedPersons
from gramercy.tables.sums.period_filter import PeriodFilter
from gramercy.tables.sums.streaming import row_count_problem

_MOST_NAMED = 10


@dataclass(frozen=True, repr=False)
class TableCheck:
    """What a check found. Private."""

    contract: Contract  # the contract that the table was compared with
    # lines, malformed: number of lines that were read, without headers, and of those that are not
    # rows
    lines: int
    malformed: int
    # the malformed ones by their files and faults
    faulty: Mapping[str, Sequence[FaultyLines]]
    complete: bool  # whether the whole table was read
    columns: tuple[ColumnQuality, ...]  # counts of every column
    # declared levels that no cell has, as names of matrix columns
    levels_without_cells: tuple[str, ...]
    # persons, rows_without_person: number of persons, and of rows that belong to none; None if rows
    # are protected
    persons: int | None
    rows_without_person: int | None
    # number of persons whose id differs from another one only in case or blanks
    ids_alike: int | None
    # Where dates decide the period, the number of rows without a readable one. All other numbers
    # but that of malformed lines are then of the period's rows.
    rows_without_date: int | None
    rows_by_step: tuple[int, ...] = ()  # of each step of a series so far

    @property
    def errors(self) -> list[TableError]:
        """Why the table cannot be used; empty if it can."""
        source = display_name(self.contract.source)
        errors = [] if (counted := self._row_count_problem) is None else [counted]
        if unusable := [each.name for each in self.columns if each.verdict == "unusable"]:
            omitted = len(unusable) - _MOST_NAMED
            others = [f"and {omitted} more"] if omitted > 0 else []
            errors.append(
                families.UNUSABLE_TABLE(
                    "{source}: columns without a single cell that a release could use: {columns}.",
                    "Fix the table or the contract before a release is charged.",
                    source=source,
                    columns=(*unusable[:_MOST_NAMED], *others),
                )
            )
        return errors

    @property
    def _row_count_problem(self) -> TableError | None:
        return row_count_problem(self.contract, self.lines) if self.complete else None

    @property
    def notices(self) -> list[Notice]:
        """What the steward should look at, each with a remedy."""
        notices = list(quality_notices(self.columns, self.lines, 0))
        many = self.malformed > _MANY_MALFORMED * self.lines
        has_problem = many or self._row_count_problem is not None
        for file, faulty in self.faulty.items():
            faults = {each.fault for each in faulty}
            if has_problem or not faults.isdisjoint(_FAULTS_OF_ROWS):
                notices.append(_malformed(file, faulty))
        if self.complete and self.persons != self.contract.persons:
            notices.append(wordings.persons_differ(self.persons, self.contract.persons))
        if self.ids_alike:
            notices.append(self._spellings(self.ids_alike))
        if self.rows_without_date:
            notices.append(
                families.UNUSABLE_LINES(
                    "Rows without a readable date, which are in no period: {rows}.",
                    "Write dates as 2026-11-23, or as dates in Parquet.",
                    rows=self.rows_without_date,
                )
            )
        if self.complete and (few := self._few_rows()) is not None:
            notices.append(few)
        if self.complete and self.levels_without_cells:
            notices.append(
                families.LEVELS_WITHOUT_CELLS(
                    "Declared levels that no cell has: {levels}.",
                    "If that is unexpected, compare their spelling with the table's.",
                    levels=self.levels_without_cells,
                )
            )
        return notices

    def _spellings(self, alike: int) -> Notice:
        """What to do about persons who may have two spellings of one id."""
        source, column = self.contract.source, str(self.contract.person_column)
        remedy = "in the program that wrote the file, as the function UPPER(TRIM()) does."
        if isinstance(source, DatabaseTable):
            remedy = (
                f"name a view of the database as the source, in which it is upper(replace({column},"
                " ' ', ''))."
            )
        elif is_convertible(file := display_name(source)):
            command, target = conversion(file, "--ids", column)
            remedy = f"run {command}, and name {target} as the contract's 'source'."
        return families.PERSON_IDS(
            "{count} of the {persons} ids in '{column}' differ from another id only in capital "
            "letters or blanks. Where two of them are one person, the guarantee does not hold for "
            "the person: it holds for each spelling.",
            "Write every id in one way before a release: {remedy}",
            count=alike,
            persons=self.persons,
            column=column,
            remedy=remedy,
        )

    @property
    def rows_of_steps(self) -> list[StepRows]:
        """The number of rows of each step of a series so far."""
        dates = self.contract.dates
        if dates is None or not dates.starts or dates.span == "year":  # which no step is
            return []
        labels = StepDays(dates.span, dates.starts, dates.label).labels
        ends = [start - datetime.timedelta(days=1) for start in dates.starts[1:]]
        return [*map(StepRows, labels, dates.starts, ends, self.rows_by_step)]

    def _few_rows(self) -> Notice | None:
        """A warning if the last steps have few rows for their days: they may lack some.

        Steps are compared with those before the last one that have rows; a table may begin late.
        """
        steps = self.rows_of_steps
        usual = [step.rate for step in steps[:-1] if step.rows]
        if not usual:
            return None
        least = np.median(usual) / 2
        few = [*itertools.takewhile(lambda step: step.rate < least, reversed(steps))][::-1]
        if not few:
            return None
        return families.VERSION_NOT_FINAL(
            "The last steps have less than half of the usual rows a day: {steps}.",
            "If rows are still missing, publish them later, with a longer 'lag': a row that is "
            "added after its step was published counts in part only.",
            steps="; ".join(step.in_words for step in few[-_MOST_NAMED:]),
            rows=few[-1].rows,
        )


@dataclass(frozen=True, repr=False)
class StepRows:
    """A step of a series and its number of rows. Private."""

    version: str
    first: datetime.date  # first and last day
    last: datetime.date
    rows: int

    @property
    def rate(self) -> float:
        """Rows a day."""
        return self.rows / ((self.last - self.first).days + 1)

    @property
    def in_words(self) -> str:
        """The step with its days and its rows."""
        return f"{self.version} ({self.first} to {self.last}): {self.rows:,} rows"


def check_table(
    contract: Contract, rows: int | None = None, on_rows: Callable[[int], None] = lambda _: None
) -> TableCheck:
    """Compare a table with its contract, in one pass."""
    source = check_table_header(contract)
    counts = _Counts(contract)
    complete = counts.read(source, math.inf if rows is None else rows, on_rows)
    persons = counts.persons
    return TableCheck(
        contract,
        counts.rows + counts.malformed.dropped,
        counts.malformed.dropped,
        faulty_lines(source) if counts.malformed.dropped else {},
        complete,
        tuple(counts.columns()),
        tuple(counts.levels_without_cells()),
        None if persons is None else len(persons),
        None if persons is None else counts.rows_without_person,
        None if persons is None else persons.alike,
        None if contract.dates is None else counts.rows_without_date,
        tuple(counts.rows_by_step.tolist()),
    )


class _Counts:
    """Counts over the batches of a table, as `tables.sums.row_transform` counts its repairs."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        declared = contract.columns.values()
        limits = [column.limits for column in declared]
        self._lower, self._upper = np.array(limits).T[..., None]
        self._missing = np.zeros(len(limits), np.int64)
        self._clamped = np.zeros(len(limits), np.int64)
        self._cells_of_levels = {
            index: np.zeros(column.width, np.int64)
            for index, column in enumerate(declared)
            if column.categories
        }
        self.rows, self.rows_without_person, self.rows_without_date = 0, 0, 0
        starts = () if contract.dates is None else contract.dates.starts
        self.rows_by_step = np.zeros(max(len(starts) - 1, 0), np.int64)
        self.malformed = MalformedLines()
        self.persons = None if contract.person_column is None else IndexedPersons()

    def read(self, source: Source, most: float, on_rows: Callable[[int], None]) -> bool:
        """Read rows, at most `most`; returns whether these are all."""
        contract = self._contract
        codings = contract.codings
        if contract.person_column is not None:
            codings = {contract.person_column: self.persons, **codings}
        period = PeriodFilter.of(contract)
        codings = codings if period is None else dict([period]) | codings
        limit = contract.rows + EXCESS_ROWS if contract.checks_rows else math.inf
        for batch in cell_batches(
            source, codings, self.malformed, missing_codes=contract.missing_codes
        ):
            if period is not None:  # its codes are first
                self.rows_without_date += int(np.isnan(batch[0]).sum())
                if steps := self.rows_by_step.size:
                    numbers = batch[0][batch[0] > 0].astype(np.int64) - 1
                    self.rows_by_step += np.bincount(numbers, minlength=steps)
                batch = batch[1:, batch[0] > 0]  # noqa: PLW2901
            if not batch.shape[1]:
                continue
            allowed = min(most - self.rows, batch.shape[1])
            cells = batch[:, : int(allowed)]
            if self.persons is not None:
                self.rows_without_person += int(np.isnan(cells[0]).sum())
                cells = cells[1:]
            finite = np.isfinite(cells)
            self._missing += (~finite).sum(axis=1)
            self._clamped += (finite & ((cells < self._lower) | (cells > self._upper))).sum(axis=1)
            for index, counts in self._cells_of_levels.items():
                indices = cells[index][finite[index]].astype(np.int64)
                np.add(counts, np.bincount(indices, minlength=counts.size), out=counts)
            self.rows += cells.shape[1]
            on_rows(cells.shape[1])
            if allowed < batch.shape[1]:
                return False
            if self.rows + self.malformed.dropped > limit:  # the table may be endless
                break
        return True

    def columns(self) -> list[ColumnQuality]:
        """The counts of every column."""
        return [
            ColumnQuality(
                name,
                column.categories is not None,
                self.rows,
                int(missing),
                int(clamped),
                column.date_unit is not None,
            )
            for (name, column), missing, clamped in zip(
                self._contract.columns.items(), self._missing, self._clamped, strict=True
            )
        ]

    def levels_without_cells(self) -> list[str]:
        """Levels that no cell has, of columns in which other levels have cells."""
        names = self._contract.names
        without = (
            itertools.compress(
                self._contract.columns[names[index]].matrix_names(names[index]), counts == 0
            )
            for index, counts in self._cells_of_levels.items()
            if counts.any()
        )
        return list(itertools.chain.from_iterable(without))


# Faults of lines that belong to rows; others may be of notes or blank.
_FAULTS_OF_ROWS = {LineFault.OPEN_QUOTE, LineFault.BACKSLASH, LineFault.TRAILING}
_READ_BY_CONVERT = {*_FAULTS_OF_ROWS, LineFault.BLANK, LineFault.OTHER}


def _malformed(file: str, faulty: Sequence[FaultyLines]) -> Notice:
    """What to do about lines of a CSV file that are not rows."""
    command, target = conversion(file)
    convert = (
        f"Run '{command}', which reads such lines, and name {target} as the contract's 'source'."
    )
    faults = {each.fault for each in faulty}
    remedies = [convert] if faults & _READ_BY_CONVERT else []
    if LineFault.WIDER in faults:
        remedies.append(
            "Put quotes around fields that contain the separator, or export the table with "
            "another one."
        )
    if LineFault.NARROWER in faults or LineFault.COMMENT in faults:
        remedies.append("Remove lines that are not rows, such as notes at the end.")
    return families.UNUSABLE_LINES(
        "{file}: lines are not rows of as many fields as the header: {faults}. A row of a CSV file "
        "is one line; a text with a line break makes two, which are both malformed.",
        "{remedy}",
        file=file,
        lines=sum(each.lines for each in faulty if each.fault in _READ_BY_CONVERT),
        malformed=sum(each.lines for each in faulty),
        faults="; ".join(map(_in_words, faulty)),
        remedy=" ".join(remedies),
        **({"command": command, "target": target} if faults & _READ_BY_CONVERT else {}),
    )


def _in_words(faulty: FaultyLines) -> str:
    where = f"line {faulty.first}"
    if faulty.lines > 1:
        where = f"{faulty.lines} lines from {faulty.first} to {faulty.last}"
    return f"{where}: {faulty.fault.value}"


Verdict = Literal["fine", "warning", "unusable"]

# Shares above which a warning is due.
_MANY_MISSING = 0.20
_MANY_CLAMPED = 0.05
_MANY_MALFORMED = 0.05


@dataclass(frozen=True, repr=False)
class ColumnQuality:
    """Counts of a column's unusable cells. Private."""

    # name, is_levels: name of the column, and whether it has levels
    name: str
    is_levels: bool
    rows: int  # number of rows with a cell in this column: lines that are not malformed
    missing: int  # cells that are missing, not finite, not numbers or not a declared level
    clamped: int = 0  # cells out of bounds
    is_dates: bool = False  # whether its numbers stand for dates

    @property
    def missing_share(self) -> float:
        """Share of `missing` in all cells; 1 without rows."""
        return self.missing / self.rows if self.rows else 1.0

    @property
    def clamped_share(self) -> float:
        """Share of `clamped` in all cells."""
        return self.clamped / self.rows if self.rows else 0.0

    @property
    def is_unreadable(self) -> bool:
        """Whether no cell is a number or a declared level."""
        return self.missing >= self.rows

    @property
    def verdict(self) -> Verdict:
        """``unusable`` if no cell is a level, or a number within the bounds."""
        if self.missing + self.clamped >= self.rows:
            return "unusable"
        many = self.missing_share > _MANY_MISSING or self.clamped_share > _MANY_CLAMPED
        return "warning" if many else "fine"


def recorded_quality(record: Mapping[str, Any], contract: Contract) -> list[ColumnQuality]:
    """The counts of every column in the internal record of a release."""
    rows = record.get("rows", 0) - record.get("malformed_rows", 0)
    clamped = record.get("clamped_cells", {})
    return [
        ColumnQuality(
            name,
            contract.levels(name) is not None,
            rows,
            missing,
            clamped.get(name, 0),
            contract.columns[name].date_unit is not None,
        )
        for name, missing in record.get("filled_cells", {}).items()
    ]


def holds_nothing(columns: Sequence[ColumnQuality]) -> bool:
    """Whether no cell of any column is a number or a declared level."""
    return all(column.is_unreadable for column in columns)


_STATE_NOTATION = (
    "State how numbers are written under the contract's 'source', next to 'path' or 'url': "
    "\"thousands: ','\" if there are cells such as 1,234.5, \"decimal: ','\" for 1,5, "
    "'percent: true' for 12 %, \"units: ['kg']\" for 12 kg."
)

_STATE_DATES = (
    "State how dates are written under the contract's 'source', next to 'path' or 'url': 'dates: "
    "day.month.year' for 31.12.2026, 'dates: month/day/year' for 12/31/2026, 'dates: days since "
    "1899-12-30' for the numbers of Excel."
)


def quality_notices(
    columns: Sequence[ColumnQuality], lines: int, malformed: int
) -> Iterator[Notice]:
    """Warnings about many unusable cells and lines, each with a remedy.

    Parameters
    ----------
    lines, malformed
        Number of lines of the table without the header, and of those that are not rows.
    """
    if malformed > _MANY_MALFORMED * lines:
        yield families.UNUSABLE_LINES(
            "Many lines are not rows: {share} of {lines} are blank, malformed or of "
            "the wrong width.",
            "Write the file again with one line for each row, and quotes around "
            "fields with commas.",
            share=percentage(malformed / lines),
            lines=lines,
        )
    unreadable = [column for column in columns if column.is_unreadable and column.rows]
    if names := tuple(column.name for column in unreadable if column.is_dates):
        yield families.UNUSABLE_COLUMNS(
            "Not one cell is read as a date in: {columns}.",
            "{remedy} 'gramercy check' looks which.",
            columns=names,
            remedy=_STATE_DATES,
        )
    if names := tuple(x.name for x in unreadable if not (x.is_levels or x.is_dates)):
        yield families.UNUSABLE_COLUMNS(
            "Not one cell is a number in: {columns}.",
            "{remedy} Declare categories as 'levels'.",
            columns=names,
            remedy=_STATE_NOTATION,
        )
    if names := tuple(column.name for column in unreadable if column.is_levels):
        yield families.UNUSABLE_COLUMNS(
            "Not one cell is a declared level in: {columns}.",
            "Compare the spelling: a cell 2.0 is not the text '2'. Declare numbers "
            "without quotes: 'levels: [1, 2]'.",
            columns=names,
        )
    readable = [column for column in columns if not column.is_unreadable]
    dates = [column for column in readable if column.is_dates]
    if named := _worst(dates, lambda column: column.missing_share, _MANY_MISSING):
        yield families.MANY_CELLS(
            "Many cells are missing, or not read as dates: {columns}.",
            "If they should not be: {remedy}",
            columns=named,
            remedy=_STATE_DATES,
        )
    numbers = [column for column in readable if not (column.is_levels or column.is_dates)]
    if named := _worst(numbers, lambda column: column.missing_share, _MANY_MISSING):
        yield families.MANY_CELLS(
            "Many cells are missing or unreadable: {columns}.",
            "If they should not be: {remedy} Or correct the table.",
            columns=named,
            remedy=_STATE_NOTATION,
        )
    levels = [column for column in readable if column.is_levels]
    if named := _worst(levels, lambda column: column.missing_share, _MANY_MISSING):
        yield families.MANY_CELLS(
            "Many cells are missing or not a declared level: {columns}.",
            "If they should not be, compare the levels in the contract with the table's.",
            columns=named,
        )
    if named := _worst(readable, lambda column: column.clamped_share, _MANY_CLAMPED):
        yield families.MANY_CELLS(
            "Many cells are out of bounds: {columns}.",
            "Compare the unit of the cells with that of the bounds, such as grams "
            "with kilograms, or 35 with 0.35. Declare codes for missing values, such "
            "as -9, in the contract: missing: [-9].",
            columns=named,
        )


def _worst(
    columns: Sequence[ColumnQuality], share: Callable[[ColumnQuality], float], many: float
) -> tuple[str, ...]:
    """The columns with more than a share, highest first, each with its share."""
    above = sorted((column for column in columns if share(column) > many), key=share, reverse=True)
    return tuple(f"{column.name} ({percentage(share(column))})" for column in above)


def percentage(share: float) -> str:
    """A share as text; 0 % and 100 % stand for exactly none and all."""
    if 0 < share < 0.01:
        return "<1 %"
    return ">99 %" if 0.99 < share < 1 else f"{100 * share:.0f} %"


_NUMBERS_OF_DATES = (
    "'dates: yearmonthday' for 20261231, 'dates: days since 1899-12-30' for the numbers of Excel, "
    "or 'dates: seconds since 1970-01-01'"
)
Types = Mapping[str, str]  # the columns of a file, with types as in `tables.formats.reader`

_NUMBERS = {WHOLE, DOUBLE}
_OTHER_TYPES = (
    "Remove them from 'columns' (or, if a pattern matches them, add them to 'exclude'); or store "
    "numbers as numbers, and levels that are text as text."
)
_AS_TEXT = (
    f"{_STATE_NOTATION} If all are written as 1234.5: \"decimal: '.'\". Declare categories as "
    "'levels'; or remove the columns from 'columns' (or, if a pattern matches them, add them to "
    "'exclude')."
)
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}


def required_columns(contract: Contract) -> list[str]:
    """Columns that every file must have.

    They are those to publish, those that others are computed from, and those of persons and dates.
    """
    dates = None if contract.period is None else contract.period.column
    others = (contract.person_column, dates)
    return list(dict.fromkeys([*contract.table_columns, *filter(None, others)]))


def validate(contract: Contract) -> None:
    """The step of a release: see `check_table_header`."""
    check_table_header(contract)


def check_table_header(contract: Contract) -> Source:
    """Refuse a table whose files, columns or types differ from the contract."""
    source, schemas = open_source(contract.source), []
    required, columns = required_columns(contract), contract.table_columns
    known: set[tuple[str | None, ...]] = set()
    for each in source.files:
        types, file = _types(each, contract), each.display_name
        schema = tuple(types.get(name) for name in required)
        if schema in known:  # thousands of files have one schema, apart from other columns
            continue
        known.add(schema)
        if None in schema:
            raise each.mistaken() or _columns_missing(each, types, contract)
        if wrong := [n for n, column in columns.items() if not _fits(column, each, types[n])]:
            raise families.TABLE_COLUMNS(
                "{file}: columns have other types than the contract declares: {columns}.",
                "{remedy}",
                file=file,
                columns=tuple(f"{_in_full(name, contract)} ({types[name]})" for name in wrong),
                remedy=_remedy({name: types[name] for name in wrong}, columns),
            )
        schemas.append((file, types))
    _check_persons(contract, source, schemas)
    _check_dates(contract, schemas)
    return source


def _in_full(name: str, contract: Contract) -> str:
    """A column of the table, with those that are computed from it if it is only read for them."""
    readers = [] if name in contract.columns else contract.computed_from(name)
    return f"{name} (for {', '.join(readers)})" if readers else name


def _fits(column: ColumnKind, file: SourceFile, stated: str) -> bool:
    return coding_of(column.coding, file.notation).reads(stated)


def _remedy(wrong: Types, columns: Mapping[str, ColumnKind]) -> str:
    """What makes columns fit that have other types than the contract declares."""
    if truths := [n for n, kind in wrong.items() if kind == TRUTH and columns[n].categories]:
        return f"Write 'levels: [true, false]' for {', '.join(truths)}."
    if dates := [name for name, kind in wrong.items() if _is_date(kind)]:
        return (
            f"Declare the dates of {', '.join(dates)} with a unit and with dates as bounds: "
            "{unit: days since 1970-01-01, lower: 1900-01-01, upper: 2030-12-31}."
        )
    if dates := [n for n, kind in wrong.items() if kind in _NUMBERS and columns[n].date_unit]:
        return (
            f"Write under the contract's 'source', next to 'path' or 'url', what the numbers of "
            f"{', '.join(dates)} are: {_NUMBERS_OF_DATES}."
        )
    return _AS_TEXT if set(wrong.values()) == {TEXT} else _OTHER_TYPES


def _is_date(kind: str) -> bool:
    return kind.lower().startswith(("date", "timestamp"))


def _columns_missing(file: SourceFile, types: Types, contract: Contract) -> TableError:
    """The error for missing columns; never shows a name of the file that the contract lacks.

    Without a header, these names would be the cells of a person.
    """
    missing = [name for name in required_columns(contract) if name not in types]
    if (elsewhere := _header_elsewhere(file, contract)) is not None:
        return elsewhere
    alike = _alike(missing, types)
    if blanks := [name for name, stored in alike.items() if stored != stored.strip()]:
        return families.TABLE_COLUMNS(
            "{file}: names of columns start or end with blanks: {columns}.",
            "Remove these blanks in the file's header.",
            file=file.display_name,
            columns=tuple(blanks),
        )
    if alike.keys() == set(missing):
        return families.TABLE_COLUMNS(
            "{file}: columns have other capital letters or blanks than in the contract: {columns}.",
            "Write them in the contract as the file does: {write}.",
            file=file.display_name,
            columns=tuple(missing),
            write=tuple(as_yaml(alike[name]) for name in missing),
        )
    omitted = len(missing) - _MOST_NAMED
    shown = [_in_full(name, contract) for name in missing[:_MOST_NAMED]]
    named = (*shown, *([f"and {omitted} more"] if omitted > 0 else []))
    names = "" if file.format.states_names or len(types) > 1 else "".join(types)
    if separators := next((words for mark, words in _SEPARATORS.items() if mark in names), ""):
        return families.HEADER(
            "{file}: columns of the contract are missing: {columns}; the fields seem "
            "to be separated by {separators} instead of commas.",
            "State it in the contract, and decimal: ',' if numbers have decimal "
            "commas: source: {{path: ..., separator: ';'}}.",
            file=file.display_name,
            columns=named,
            separators=separators,
        )
    header = "" if file.format.states_names else ", or give the file a first line of names"
    similar = difflib.get_close_matches(missing[0], types, n=1) if not header else []
    return families.TABLE_COLUMNS(
        "{file}: columns of the contract are missing: {columns} (the file has {count} columns).",
        "{remedy}Correct 'columns', 'period' or 'privacy_unit' in the contract{header}.",
        file=file.display_name,
        columns=named,
        count=len(types),
        header=header,
        remedy=f"Is it {as_yaml(similar[0])} in the file? " if similar else "",
    )


def _types(file: SourceFile, contract: Contract) -> Types:
    """Names and types of a file's columns; the header may be in another line."""
    try:
        return column_types(file)
    except TableError as caught:
        error = caught
    raise _header_elsewhere(file, contract) or error


def _header_elsewhere(file: SourceFile, contract: Contract) -> TableError | None:
    """The error for a header in another line or with another separator, if it has all columns.

    It shows where the header is, and nothing that is written there or elsewhere. A single name is
    not looked for: it may be the cell of a person.
    """
    stated = contract.source if isinstance(contract.source, CsvFormat) else CsvFormat()
    required = set(map(_folded, set(required_columns(contract)) - file.partition_values.keys()))
    lines = file.first_lines() if len(required) > 1 else []
    places = (
        (mark, number, _fields(line, mark))
        for number, line in enumerate(lines, 1)
        for mark in (stated.separator, *_SEPARATORS, ",")
        if (mark, number) != (stated.separator, stated.header)
    )
    found = next((each for each in places if required <= set(map(_folded, each[2]))), None)
    if found is None:
        line = "".join(lines[stated.header - 1 : stated.header])
        as_declared = set(map(_folded, _fields(line, stated.separator)))
        if as_declared.isdisjoint(required) and required <= set(map(_folded, other_fields(line))):
            words = "its fields have another separator, or other quotes, than a contract can state"
            return unusual_layout(file.display_name, words)
        return None
    separator, number, names = found
    keys = {"header": number, "separator": separator}
    keys = {key: value for key, value in keys.items() if value != getattr(stated, key)}
    words = _SEPARATORS.get(str(keys.get("separator")), "")
    decimal = ' (with decimal: "," if numbers have decimal commas)' if separator == ";" else ""
    return families.HEADER(
        "{file}: line {line} names the columns of the contract, in {count} fields{apart}; as "
        "the source is declared, they would be in line {stated}, which has {fields}.",
        "Write the contract's source as 'source: {{path: PATH, {keys}}}', where PATH is the "
        "present source{decimal}.",
        file=file.display_name,
        stated=stated.header,
        fields=len(_fields("".join(lines[stated.header - 1 : stated.header]), stated.separator)),
        line=number,
        count=len(names),
        keys=as_yaml(keys)[1:-1],
        apart=f" separated by {words}" if words else "",
        separators=words,
        decimal=decimal,
    )


def _fields(line: str, separator: str) -> list[str]:
    with contextlib.suppress(csv.Error):
        return next(csv.reader([line], delimiter=separator), [])
    return []


def _folded(name: str) -> str:
    """A name without what is easily overlooked: capital letters and blanks."""
    return " ".join(nfc(name).casefold().split())


def _alike(missing: Sequence[str], names: Iterable[str]) -> dict[str, str]:
    """Names of a file that differ from missing ones only in what is easily overlooked."""
    by_folded = {_folded(name): name for name in names}
    return {name: by_folded[_folded(name)] for name in missing if _folded(name) in by_folded}


def _check_persons(
    contract: Contract, source: Source, schemas: Sequence[tuple[str, Types]]
) -> None:
    """Refuse persons that are not identified by whole numbers or text, the same in all files.

    Of doubles, those that are whole identify persons. With numbers in some files and text in
    others, 7 and 007 could be one person.
    """
    column = contract.person_column
    if column is None:
        return
    files: dict[str, str] = {}  # numbers or text, with the first file that states it
    for file, types in schemas:
        if types[column] not in {*_NUMBERS, TEXT, ANY}:
            raise families.TABLE_COLUMNS(
                "{file}: column '{column}' identifies persons, but has the type {type}.",
                "Store it as whole numbers or text.",
                file=file,
                column=column,
                type=types[column],
            )
        files.setdefault("numbers" if types[column] in _NUMBERS else types[column], file)
    if "numbers" in files and (not source.states_types or TEXT in files):
        raise families.TABLE_COLUMNS(
            "{file}: column '{column}' has numbers here, but text in other files.",
            "Store it as text in all files, with the same spelling (a CSV file has text).",
            file=files["numbers"],
            column=column,
        )


def _check_dates(contract: Contract, schemas: Sequence[tuple[str, Types]]) -> None:
    """Refuse a column whose type cannot hold dates; whole numbers may be years, but not steps."""
    if contract.period is None:
        return
    has_steps = contract.dates is not None and bool(contract.dates.starts)
    written = written_dates(notation_of(contract.source))
    has_numbers = written is not None and written.is_of_numbers
    column, years = contract.period.column, contract.budget.per == "year" and not has_steps
    for file, types in schemas:
        stated = types[column]
        if not (
            _is_date(stated)
            or stated in {TEXT, ANY}
            or ((years or has_numbers) and stated in _NUMBERS)
        ):
            raise families.TABLE_COLUMNS(
                "{file}: column '{column}' decides the period of each row, but has the type "
                "{type}.",
                "Store it as dates or times, or as text such as 2026-11-23. If the numbers "
                "stand for dates, write under the contract's 'source' what they are: {notations}.",
                notations=_NUMBERS_OF_DATES,
                file=file,
                column=column,
                type=stated,
            )
    if has_steps:
        kind_of_dates(contract, (types for _, types in schemas))


def kind_of_dates(contract: Contract, schemas: Iterable[Types]) -> str:
    """The type of the dates that give the step of each row, or ``files`` if their names do.

    A public fact, which is fixed for a cumulative series: the same column with another type could
    move rows to other steps. All kinds of text have one type.

    Parameters
    ----------
    schemas
        The columns of every file.
    """
    if contract.period is None:
        return "files"
    column = contract.period.column
    kinds = sorted({_KINDS_OF_DATES.get(types[column], types[column]) for types in schemas})
    if len(kinds) > 1:
        raise families.TABLE_COLUMNS(
            "{source}: column '{column}' decides the step of each row, but has different types: "
            "{types}.",
            "Store it with one type in all files.",
            source=display_name(contract.source),
            column=column,
            types=tuple(kinds),
        )
    return kinds[0]


_KINDS_OF_DATES = {"any": "text", "date32": "date", "date64": "date"}
