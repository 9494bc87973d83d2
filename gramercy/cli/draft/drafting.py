"""Drafts of a contract and a request, from the names and types of columns alone."""

from __future__ import annotations

import csv
import datetime
import io
import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families
from gramercy.schemas.column import INTERCEPT
from gramercy.schemas.contract import MAX_COLUMNS
from gramercy.schemas.database import SQLITE, DatabaseTable
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import has_unprintable, parse
from gramercy.schemas.neighbours import Neighbours
from gramercy.schemas.periods import (
    Span,
    glob_of_any_period,
    last_complete,
    span_of,
    with_period,
    without_placeholders,
)
from gramercy.schemas.request import PERIOD
from gramercy.schemas.source import AnySource, CsvFormat, Files
from gramercy.tables.formats.csv_format import look_like_data
from gramercy.tables.formats.reader import MIXED, PARTIAL, schema_of
from gramercy.tables.formats.source import detect_format, open_source

NUMBERS, LEVELS = "numbers", "levels"
_PUBLISHABLE_AS = {"whole": (NUMBERS, LEVELS), "double": (NUMBERS,), "text": (LEVELS,)}
_TYPE_NAMES = {"whole": "whole numbers", "double": "numbers", "text": "text"}
_MAX_NAME_LENGTH = 1000  # characters that a key in YAML can have
_MAX_ID_LENGTH = 63
_NOT_A_MEASURE = "named like an identifier, a date or free text; declare it if it is not"
# Names such as data-2024.csv, part-0000.parquet and export/final.csv say nothing about the data.
_VAGUE = re.compile(
    r"[0-9]+|v[0-9]+|q[1-4]|(data|dataset|table|tables|export|extract|file|files|part|chunk|sheet"
    r"|input|output|out|raw|clean|cleaned|final|new|copy|dump|download|downloads|documents|desktop"
    r"|test|tmp|temp|untitled|main|all|csv|parquet)[0-9]*"
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_IDENTIFIERS = {"id", "ids", "uuid", "guid", "key", "mrn"}  # as the last word
_ROW_NUMBERS = {"index", "row", "rownames", "unnamed"}  # as the only word: not body mass index
_PERSONS = {
    *("patient", "person", "subject", "participant", "respondent", "client", "customer"),
    *("member", "user", "student", "pupil", "employee", "household", "case", "mrn"),
}
_BIRTHS = {"birth", "dob", "birthday", "birthdate"}
_DATES = {"date", "datetime", "timestamp", *_BIRTHS}
_TEXTS = {
    *("name", "surname", "firstname", "lastname", "comment", "comments", "note", "notes"),
    *("text", "description", "address", "street", "email", "phone", "url", "remark", "remarks"),
}

_PLAIN = re.compile(r"(?:\.{0,2}/)*[^\W\d_](?:[\w ./()*=-]*[\w)*])?")
_READ_AS_OTHER = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


@dataclass(frozen=True)
class Column:
    """A column to publish; values that the steward has not stated yet are None."""

    kind: str = "any"  # its type in the table's schema, as in `tables.formats.reader`
    # lower, upper: bounds of a numeric column
    lower: float | None = None
    upper: float | None = None
    levels: tuple[str | float, ...] | None = None  # levels of a categorical column
    published: bool = True  # Whether it is to be published. Other columns are never read.

    @property
    def publishable_as(self) -> tuple[str, ...]:
        """The ways in which it can be published: numbers, levels or both."""
        return _PUBLISHABLE_AS.get(self.kind, (NUMBERS, LEVELS))

    @property
    def needs_levels(self) -> bool:
        """Whether it is left out and could only be published with levels."""
        return not self.published and self.publishable_as == (LEVELS,)

    @property
    def text(self) -> str:
        """Its line in the contract."""
        if self.levels is not None or NUMBERS not in self.publishable_as:
            levels = ", ".join(map(yaml_scalar, self.levels or ()))
            return f"{{levels: [{levels}]}}" if levels else "{levels: }"
        return f"{{lower: {yaml_scalar(self.lower)}, upper: {yaml_scalar(self.upper)}}}"

    @property
    def note(self) -> str:
        """A comment with its type in the table, if the type is known."""
        return f"  # {_TYPE_NAMES[self.kind]}" if self.kind in _TYPE_NAMES else ""


@dataclass(frozen=True)
class Draft:
    """A contract and a request before the first release; None where the steward must decide."""

    id: str
    source: str
    columns: Mapping[str, Column]  # the columns to publish, by name
    # the columns that cannot be published, with the reason
    left_out: Mapping[str, str] = field(default_factory=dict)
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
    # the URL of the database, if `source` is the name of a table in one
    database: str | None = None
    # the column with the date of a row, if the table grows; and those that may be it
    dates: str | None = None
    date_columns: tuple[str, ...] = ()
    constants: str = ""  # the version of the release with the constants of a growing table

    def growing(self, dates: str) -> Draft:
        """The draft for a table that grows by rows with these dates: a release every week.

        Their number is private, and the budget is for a year of the data. The constants are those
        of the year before, whose budget pays for them.
        """
        if not self.columns.keys() - {dates}:
            raise families.DRAFT(
                "No other column than '{column}' is left to publish.",
                "Name a column of dates that is not to be published.",
                column=dates,
            )
        return replace(
            self,
            dates=dates,
            per="year",
            version=PERIOD,
            constants=f"{last_complete('year', datetime.date.today())}-constants",
            neighbours=Neighbours.ADD_REMOVE,
            rows=None,
            unit=None,
            persons=None,
        )

    def not_growing(self) -> Draft:
        """The draft for a table that does not grow."""
        today = datetime.date.today().isoformat()
        relation = Neighbours.REPLACE_ONE
        return replace(self, dates=None, per=None, version=today, neighbours=relation, rows=None)

    @property
    def table(self) -> AnySource:
        """The source as the contract states it."""
        if self.database is not None:
            return _database_table(self.database, self.source)
        if self.written is None:
            return self.source
        return Files(path=self.source, **self.written.model_dump())

    @property
    def candidates(self) -> dict[str, Column]:
        """The columns that can be published: not that of persons, nor that of dates."""
        others = {self.unit, self.dates}
        return {name: each for name, each in self.columns.items() if name not in others}

    def with_proposed_columns(self) -> Draft:
        """The draft with columns to be published without bounds, or left out.

        Text is left out, because its levels must be declared. So are columns that are named like
        identifiers, dates or free text, whose numbers would mean nothing.
        """
        columns = {
            name: replace(each, published=NUMBERS in each.publishable_as and _is_measure(name))
            for name, each in self.columns.items()
        }
        return replace(self, columns=columns)

    def with_published_columns(self) -> Draft:
        """The draft with the columns to publish; text that lacks levels is listed as left out."""
        columns = {name: each for name, each in self.candidates.items() if each.published}
        texts = [name for name, each in self.candidates.items() if each.needs_levels]
        left_out = {**self.left_out, **dict.fromkeys(texts, "text, whose levels were not declared")}
        return replace(self, columns=columns, left_out=left_out)

    def without_identifiers(self) -> Draft:
        """The draft without the columns that are named like identifiers, dates or free text.

        They are listed as left out, unless no other column is there.
        """
        columns = self.candidates
        kept = {name: each for name, each in columns.items() if _is_measure(name)}
        others = {name: _NOT_A_MEASURE for name in columns if name not in kept}
        left_out = {**self.left_out, **others}
        return replace(self, columns=kept, left_out=left_out) if kept else self


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
    span, today = span_of(table), datetime.date.today()
    written = None
    if database is None:
        source, written = detect_format(glob_of_any_period(table))
    else:
        path = database.removeprefix(SQLITE)
        if path != database:
            database = f"{SQLITE}{os.path.abspath(os.path.expanduser(path))}"
        present = with_period(table, span, last_complete(span, today)) if span else table
        source = open_source(_database_table(database, present))
    schema = schema_of(source)
    if dates is not None:
        check_dates(dates, table, span, schema)
    names = list(schema) if columns is None else list(columns)
    if columns is None and not source.states_names and look_like_data(schema):
        raise families.DRAFT(
            "The first line of {table} may be a row instead of column names: it has a number, a "
            "date, a time or a mark for a missing value.",
            "Add a first line with names; or, if these are names, list them with --columns.",
            table=table,
        )
    for column in names:
        if column not in schema:
            raise families.DRAFT(
                "--columns: {table} does not have a column '{column}'.",
                "Spell it as its header or schema does; put a name with a comma in double quotes.",
                column=column,
                table=table,
            )
    reasons = {column: _exclusion_reason(column, schema[column]) for column in names}
    if columns is not None:  # the others are neither published nor mentioned
        schema = {column: kind for column, kind in schema.items() if column in [*names, dates]}
    publishable = {column: Column(schema[column]) for column in names if not reasons[column]}
    if not publishable:
        raise families.DRAFT(
            "{table} does not have a column that can be published.",
            "Store numbers or text in columns with printable names.",
            table=table,
        )
    if len(publishable) > MAX_COLUMNS:
        raise families.DRAFT(
            "{table} has {count} columns, and a matrix may have at most {most}.",
            "Choose the columns to publish with --columns.",
            table=table,
            count=len(publishable),
            most=MAX_COLUMNS,
        )
    made = Draft(
        id=name or default_id(table),
        source=table,
        written=written,
        database=database,
        columns=publishable,
        left_out={column: reason for column, reason in reasons.items() if reason},
        per=span,
        version=last_complete(span, today) if span else today.isoformat(),
        date_columns=() if span else tuple(_dated(schema)),
    )
    return made if dates is None else made.growing(dates)


def check_dates(column: str, table: str, span: Span | None, schema: Mapping[str, str]) -> None:
    """Refuse a column of dates that is not in the table, or where names of files have the dates."""
    if span is not None:
        raise families.DRAFT(
            "--grows cannot be used with placeholders in {table}: each {span} has files of its "
            "own.",
            "Remove --grows; docs/how-to/growing-tables.md says how files decide about steps.",
            table=table,
            span=span,
        )
    if column not in schema:
        raise families.DRAFT(
            "--grows: {table} does not have a column '{column}'.",
            "Columns, most similar first: {similar}.",
            column=column,
            table=table,
            similar=", ".join(most_similar_first(column, schema)),
        )


def parse_names(text: str) -> list[str]:
    """Names separated by commas; a name with a comma is in double quotes."""
    names = next(csv.reader(io.StringIO(text)), [])
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
        words = re.findall(r"[a-z0-9]+", without_placeholders(part).lower())
        if "=" not in part and not all(map(_VAGUE.fullmatch, words)):
            return "-".join(words)[:_MAX_ID_LENGTH].strip("-")
    return "table"


def default_delta(count: int) -> float:
    """A power of ten: at most 1e-6, and at most 1/(10 n) for n rows or persons."""
    return 10.0 ** -max(6, math.ceil(math.log10(count)) + 1)


def person_columns(names: Collection[str]) -> list[str]:
    """The columns that are named as if they identified persons."""
    return [name for name in names if _PERSONS & set(_words(name)) and _names_identifier(name)]


def yaml_scalar(value: str | float | None) -> str:
    """A text, a number or nothing as a YAML scalar on one line; parsing it returns the value."""
    if value is None:
        return ""
    if isinstance(value, int | float):
        is_whole = math.isfinite(value) and value == int(value) and abs(value) < 1e15
        return str(int(value)) if is_whole else repr(value)
    if _PLAIN.fullmatch(value) and value.isprintable() and value.lower() not in _READ_AS_OTHER:
        return value
    characters = (
        f"\\{each}" if each in '"\\' else each if each.isprintable() else f"\\U{ord(each):08x}"
        for each in value
    )
    return f'"{"".join(characters)}"'


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


def _exclusion_reason(name: str, kind: str) -> str:
    """Why a column cannot be published; empty if it can be."""
    if has_unprintable(name):
        return "its name has a control character"
    if not name or name != name.strip():
        return "its name is empty or has blanks around it"
    if len(yaml_scalar(name)) > _MAX_NAME_LENGTH:
        return f"its name is longer than {_MAX_NAME_LENGTH} characters"
    if name == INTERCEPT:
        return "its name is reserved for the intercept"
    if kind in {MIXED, PARTIAL}:
        return kind
    return "" if kind == "any" or kind in _PUBLISHABLE_AS else f"neither numbers nor text ({kind})"


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _names_identifier(name: str) -> bool:
    words = [word for word in _words(name) if not word.isdigit()]
    return bool(words) and (words[-1] in _IDENTIFIERS or {*words} <= _ROW_NUMBERS)


def _dated(schema: Mapping[str, str]) -> Iterator[str]:
    """The columns that may have the dates of rows, by their types or their names."""
    for name, kind in schema.items():
        words = {*_words(name)}
        states_date = kind.lower().startswith(("date", "timestamp"))
        is_named = kind in {"text", "any"} and words & _DATES
        if (states_date or is_named) and not words & _BIRTHS:
            yield name


def _is_measure(name: str) -> bool:
    return not (_names_identifier(name) or {*_words(name)} & (_DATES | _TEXTS))
