"""Drafts of a contract and a request, from the names and types of columns alone."""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import math
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any
from unicodedata import normalize

from gramercy.cli.draft.proposals import Column, may_have_dates, propose
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families
from gramercy.schemas.column import MAX_COLUMNS
from gramercy.schemas.database import SQLITE, DatabaseTable
from gramercy.schemas.errors import RequestError, TableError
from gramercy.schemas.model import nfc, parse
from gramercy.schemas.neighbours import Neighbours
from gramercy.schemas.notation import Decimal
from gramercy.schemas.periods import (
    Span,
    first_day_in_name,
    glob_of_any_period,
    keeps_periods_apart,
    label_of,
    last_complete,
    span_of,
    with_period,
    with_placeholders,
    without_placeholders,
)
from gramercy.schemas.request import PERIOD
from gramercy.schemas.source import AnySource, CsvFormat, Files
from gramercy.tables.formats.conversion import command_for_sheet
from gramercy.tables.formats.csv_format import ANY_TEXT, look_like_data
from gramercy.tables.formats.first_lines import detect_format
from gramercy.tables.formats.reader import schema_of
from gramercy.tables.formats.source import Source, open_source

_MAX_ID_LENGTH = 63
# Names such as data-2024.csv, part-0000.parquet and export/final.csv say nothing about the data.
_VAGUE = re.compile(
    r"[0-9]+|v[0-9]+|q[1-4]|(data|dataset|table|tables|export|extract|file|files|part|chunk|sheet"
    r"|input|output|out|raw|clean|cleaned|final|new|copy|dump|download|downloads|documents|desktop"
    r"|test|tmp|temp|untitled|main|all|csv|parquet)[0-9]*"
)


@dataclass(frozen=True)
class Draft:
    """A contract and a request before the first release; None where the steward must decide."""

    id: str
    source: str
    columns: Mapping[str, Column]  # all columns by name, also those that are left out
    title: str | None = None
    curator: str | None = None
    rows: int | None = None
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    unit: str | None = None
    persons: int | None = None
    # epsilon, delta, per: the budget
    epsilon: float | None = None
    delta: float | None = None
    per: Span | None = None
    # version, release_epsilon, release_delta: as in a request
    version: str = ""
    release_epsilon: float = 1.0
    release_delta: float = 1e-7
    written: CsvFormat | None = None  # the format of CSV, if the contract must state it
    decimal: Decimal | None = None  # the decimal mark, once it is known
    # the URL of the database, if `source` is the name of a table in one
    database: str | None = None
    dates: str | None = None  # the column with the date of a row, if the table grows
    found: str = ""  # what is above the header of a CSV file, in words
    chosen: bool = False  # whether the steward has named the columns
    looked: bool = False  # whether rows were looked at
    counted: int | None = None  # the number of rows in the table; private until it is accepted

    def growing(self, dates: str) -> Draft:
        """The draft for a table that grows by rows with these dates: a release every week.

        Their number is private, and the budget is for a year of the data. The constants are those
        of the year before, whose budget pays for them.
        """
        grown = replace(
            self,
            dates=dates,
            per="year",
            version=PERIOD,
            neighbours=Neighbours.ADD_REMOVE,
            rows=None,
            unit=None,
            persons=None,
        )
        if not grown.candidates:
            raise families.DRAFT(
                "No other column than '{column}' is left to publish.",
                "Name a column of dates that is not to be published.",
                column=dates,
            )
        return grown

    def not_growing(self) -> Draft:
        """The draft for a table that does not grow."""
        return replace(
            self,
            dates=None,
            per=None,
            version=datetime.date.today().isoformat() if self.dates else self.version,
            neighbours=Neighbours.REPLACE_ONE,
            rows=self.counted,
        )

    @property
    def constants(self) -> str:
        """The version of the release with the constants of a growing table."""
        return f"{last_complete('year', datetime.date.today())}-constants"

    @property
    def date_columns(self) -> list[str]:
        """The columns that may have the dates of rows."""
        return [k for k, each in self.columns.items() if may_have_dates(k, each.kind)]

    @property
    def table(self) -> AnySource:
        """The source as the contract states it."""
        if self.database is not None:
            return _database_table(self.database, self.source)
        keys = self.format
        if self.written is None and not keys:
            return self.source
        return Files(path=self.source, **keys)

    @property
    def format(self) -> dict[str, Any]:
        """How files are written, where a contract must state it."""
        written = self.written or CsvFormat()
        keys = written.model_dump(exclude_defaults=True, exclude_none=True)
        if self.written and {*PurePosixPath(self.source).suffixes} & {*ANY_TEXT}:
            keys["separator"] = written.separator
        # Text is read as numbers only where a notation is stated, be it the plain one.
        is_stated = any(each.is_number_as_text for each in self.published.values())
        if is_stated or written.separator != ",":
            keys["decimal"] = self.decimal or "."
        return keys

    @property
    def candidates(self) -> dict[str, Column]:
        """The columns that can be published: not that of persons, nor that of dates."""
        return {k: each for k, each in self._others.items() if each.ways}

    @property
    def published(self) -> dict[str, Column]:
        """The columns that are to be published."""
        return {k: each for k, each in self._others.items() if each.ways and not each.left_out}

    @property
    def left_out(self) -> dict[str, Column]:
        """The columns that are not, each with the reason."""
        return {k: each for k, each in self._others.items() if each.left_out}

    @property
    def _others(self) -> dict[str, Column]:
        return {k: each for k, each in self.columns.items() if k not in {self.unit, self.dates}}

    @property
    def width(self) -> int:
        """The number of columns of the matrix, without the intercept."""
        return sum(len(each.levels or [None]) for each in self.published.values())

    @property
    def is_series(self) -> bool:
        """Whether each period has files of its own, so that rows are protected."""
        return self.per is not None and self.dates is None

    def with_columns(self, columns: Mapping[str, Column]) -> Draft:
        """The draft with other proposals for some columns."""
        return replace(self, columns={**self.columns, **columns})


def draft(
    table: str,
    name: str | None = None,
    columns: Iterable[str] | None = None,
    database: str | None = None,
    dates: str | None = None,
) -> Draft:
    """Propose a contract and a request for a table; reads headers and schemas, but no row.

    ``{year}``, ``{month}`` and other placeholders in the table stand for the period. `dates`: the
    column with the date of a row, if the table grows.
    """
    if not table.strip():
        raise families.DRAFT("TABLE must not be empty.", "Name the table's file or folder.")
    table = os.path.expanduser(table)  # a shell does not expand it in quotes
    chosen = None if columns is None else [nfc(column) for column in columns]
    span, today = span_of(table), datetime.date.today()
    written, found = None, ""
    if database is None:
        _check_no_sheet(Path(table))
        source, written, found = detect_format(glob_of_any_period(table), chosen or ())
    else:
        path = database.removeprefix(SQLITE)
        if path != database:
            database = f"{SQLITE}{os.path.abspath(os.path.expanduser(path))}"
        present = with_period(table, span, last_complete(span, today)) if span else table
        source = open_source(_database_table(database, present))
    schema = schema_of(source)
    dates = None if dates is None else nfc(dates)
    if dates is not None and span is not None:
        raise families.DRAFT(
            "--grows cannot be used with placeholders in {table}: each {span} has files of its "
            "own.",
            "Remove --grows; docs/how-to/growing-tables.md says how files decide about steps.",
            table=table,
            span=span,
        )
    if chosen is None and not source.states_names and look_like_data(schema):
        raise families.DRAFT(
            "The first line of {table} may be a row instead of column names: it has a number, a "
            "date, a time or a mark for a missing value.",
            "Add a first line with names; or, if these are names, list them with --columns.",
            table=table,
        )
    for column in [*(chosen or ()), *(() if dates is None else (dates,))]:
        if column not in schema:
            remedy = "Spell it as its header does; put a name with a comma in double quotes."
            if chosen is None:  # else the header, which may be a row, was not looked at
                known = ", ".join(most_similar_first(column, schema))
                remedy = f"Columns, most similar first: {known}."
            raise families.DRAFT(
                "{table} does not have a column '{column}'.",
                "{remedy}",
                column=column,
                table=table,
                remedy=remedy,
            )
    if chosen is not None:  # the others are neither published nor mentioned
        schema = {name: schema[name] for name in [*chosen, dates] if name is not None}
    made = Draft(
        id=name or default_id(table),
        source=table,
        written=written,
        database=database,
        columns={k: propose(k, kind, chosen=chosen is not None) for k, kind in schema.items()},
        per=span,
        neighbours=Neighbours.ADD_REMOVE if span else Neighbours.REPLACE_ONE,
        version=_version(table, span, source),
        found=found,
        chosen=chosen is not None,
    )
    if not made.candidates:
        raise families.DRAFT(
            "{table} does not have a column that can be published.",
            "Store numbers or text in columns with printable names.",
            table=table,
        )
    if len(made.published) > MAX_COLUMNS:
        raise families.DRAFT(
            "{table} has {count} columns, and a matrix may have at most {most}.",
            "Choose the columns to publish with --columns.",
            table=table,
            count=len(made.published),
            most=MAX_COLUMNS,
        )
    return made if dates is None else made.growing(dates)


def find_series(table: str) -> tuple[str, int] | None:
    """The table with placeholders, and the number of its periods, if its files are a series.

    A series are files whose names differ only in a year, quarter, month, week or day. A file is one
    of them; of a folder or a glob, all files are.
    """
    path = os.path.expanduser(table)
    if span_of(table) or "://" in path or not path.strip():
        return None
    with contextlib.suppress(TableError):  # the draft will show it
        named = [path]
        if not os.path.isfile(path):
            named = [each.path for each in _any_csv(path).files]
            named = named if os.path.isabs(path) else list(map(os.path.relpath, named))
        marked = with_placeholders(named[-1])
        if marked is not None and {*map(with_placeholders, named)} == {marked}:
            labels = _labels(marked, _any_csv(glob_of_any_period(marked)))
            return (marked, len(labels)) if len(labels) > 1 else None
    return None


def _any_csv(path: str) -> Source:
    """Files whose format is not known yet."""
    return open_source(Files(path=path, separator=","))


def _labels(table: str, source: Source) -> set[str]:
    """The periods that have a file."""
    span = span_of(table)
    if span is None or not keeps_periods_apart(table):
        return set()
    days = (first_day_in_name(table, file.path) for file in source.files)
    return {label_of(span, day) for day in days if day is not None}


def _version(table: str, span: Span | None, source: Source) -> str:
    """The last period that is complete and has a file, or the last one with a file; else today."""
    today = datetime.date.today()
    if span is None:
        return today.isoformat()
    last, labels = last_complete(span, today), _labels(table, source)
    return max([label for label in labels if label <= last] or labels or [last])


def _check_no_sheet(path: Path) -> None:
    """Refuse a workbook with the command that converts it, and the row that names its columns."""
    target = path.with_suffix(".parquet")
    command = command_for_sheet(path, target) if path.is_file() else None
    if command is not None:
        raise families.SOURCE(
            "{file}: not a .csv, .csv.gz or .parquet file.",
            "Run '{command}', then 'gramercy new {target}'.",
            file=str(path),
            command=command,
            target=shlex.quote(str(target)),
        )


def parse_names(text: str) -> list[str]:
    """Names separated by commas; a name with a comma is in double quotes."""
    names = [name.strip() for name in next(csv.reader(io.StringIO(text)), [])]
    if not all(names) or not names:
        raise families.DRAFT("--columns has an empty name.", "Write --columns A,B.")
    return list(dict.fromkeys(names))


def default_id(table: str) -> str:
    """An id for the table at a path or URL: its name, or that of the nearest folder that has one.

    Examples
    --------
    >>> default_id("/srv/clinic/blood-2026.csv"), default_id("/srv/clinic/data.csv")
    ('blood-2026', 'clinic')
    """
    for part in _parts(table):
        text = normalize("NFKD", without_placeholders(part)).encode("ascii", "ignore").decode()
        words = re.findall(r"[a-z0-9]+", text.lower())
        if "=" not in part and not all(map(_VAGUE.fullmatch, words)):
            return "-".join(words)[:_MAX_ID_LENGTH].strip("-")
    return "table"


def default_delta(count: int) -> float:
    """A power of ten: at most 1e-6, and at most 1/(10 n) for n rows or persons."""
    return 10.0 ** -max(6, math.ceil(math.log10(count)) + 1)


def _database_table(url: str, table: str) -> DatabaseTable:
    return parse(DatabaseTable, {"url": url, "table": table}, "--database", RequestError)


def _parts(table: str) -> Iterator[str]:
    """Names of the file and the folders around it, the nearest first, without suffixes."""
    if "://" in table:
        parts = PurePosixPath(table.partition("://")[2].partition("?")[0]).parts
        names = parts[1:]  # without the host or the bucket
    else:
        path = Path(table).absolute()
        # The home folder and those above it are named after a user or a machine.
        outside = len(Path.home().parts) if path.is_relative_to(Path.home()) else 1
        names = path.parts[outside:]
    for name in reversed(names):
        yield name.partition(".")[0] if name == names[-1] else name
