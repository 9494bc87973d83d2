"""Drafts of a contract and a request, from the names and types of columns alone."""

from __future__ import annotations

import csv
import datetime
import io
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from gramercy.cli.draft.dataset_id import default_id
from gramercy.cli.draft.header import check_header
from gramercy.cli.draft.scalars import yaml_scalar
from gramercy.schemas import families
from gramercy.schemas.column import INTERCEPT
from gramercy.schemas.contract import MAX_COLUMNS, Neighbours
from gramercy.schemas.database import SQLITE, DatabaseTable
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import has_unprintable, parse
from gramercy.schemas.periods import Span, glob_of_any_period, last_complete, span_of, with_period
from gramercy.schemas.source import AnySource, CsvFormat, Files
from gramercy.tables.formats.csv_detection import detect_format
from gramercy.tables.formats.reader import MIXED, PARTIAL, schema_of
from gramercy.tables.formats.source import open_source

NUMBERS, LEVELS = "numbers", "levels"
_PUBLISHABLE_AS = {"whole": (NUMBERS, LEVELS), "double": (NUMBERS,), "text": (LEVELS,)}
_TYPE_NAMES = {"whole": "whole numbers", "double": "numbers", "text": "text"}
_MAX_NAME_LENGTH = 1000  # characters that a key in YAML can have


@dataclass(frozen=True)
class Column:
    """A column to publish; values that the steward has not stated yet are None.

    Parameters
    ----------
    kind
        Its type in the table's schema, as in `tables.formats.reader`.
    lower, upper
        Bounds of a numeric column.
    levels
        Levels of a categorical column.
    published
        Whether it is to be published. Other columns are never read.
    """

    kind: str = "any"
    lower: float | None = None
    upper: float | None = None
    levels: tuple[str | float, ...] | None = None
    published: bool = True

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
    """A contract and a request before the first release; None where the steward must decide.

    Parameters
    ----------
    id, source, title, curator, rows, neighbours, unit, persons
        As in a contract.
    columns
        The columns to publish, by name.
    left_out
        The columns that cannot be published, with the reason.
    epsilon, delta, per
        The budget.
    version, release_epsilon, release_delta
        As in a request.
    written
        The format of CSV, if the contract must state it.
    database
        The URL of the database, if `source` is the name of a table in one.
    """

    id: str
    source: str
    columns: Mapping[str, Column]
    left_out: Mapping[str, str] = field(default_factory=dict)
    title: str | None = None
    curator: str | None = None
    rows: int | None = None
    neighbours: Neighbours = "replace-one"
    unit: str | None = None
    persons: int | None = None
    epsilon: float | None = None
    delta: float | None = None
    per: Span | None = None
    version: str = ""
    release_epsilon: float = 1.0
    release_delta: float = 1e-7
    written: CsvFormat | None = None
    database: str | None = None

    @property
    def table(self) -> AnySource:
        """The source as the contract states it."""
        if self.database is not None:
            return database_table(self.database, self.source)
        if self.written is None:
            return self.source
        return Files(path=self.source, **self.written.model_dump())

    def with_published_columns(self) -> Draft:
        """The draft with the columns to publish; text that lacks levels is listed as left out."""
        columns = {n: x for n, x in self.columns.items() if x.published and n != self.unit}
        texts = [n for n, x in self.columns.items() if x.needs_levels and n != self.unit]
        left_out = {**self.left_out, **dict.fromkeys(texts, "text, whose levels were not declared")}
        return replace(self, columns=columns, left_out=left_out)


def draft(
    table: str,
    name: str | None = None,
    columns: Iterable[str] | None = None,
    database: str | None = None,
) -> Draft:
    """Propose a contract and a request for a table; reads headers and schemas, but no row.

    Parameters
    ----------
    table
        Path, glob, folder or URL of CSV or Parquet files; ``{year}``, ``{month}``
        and other placeholders in it stand for the period; see `schemas.periods`.
    name
        Id of the data set; by default derived from the table's name.
    columns
        Names of the columns to publish; by default all that can be published.
    database
        The URL of the database in which `table` is a table, or ``env:NAME``.

    Raises
    ------
    TableError
        If the table cannot be read.
    RequestError
        If it lacks a chosen column or any publishable one, or its header may be data.
    """
    if not table.strip():
        raise families.DRAFT(
            "TABLE must not be empty.",
            "Name the table's file or folder.",
        )
    table = os.path.expanduser(table)  # a shell does not expand it in quotes
    span, today = span_of(table), datetime.date.today()
    written = None
    if database is None:
        source, written = detect_format(glob_of_any_period(table))
    else:
        database = _absolute(database)
        present = with_period(table, span, last_complete(span, today)) if span else table
        source = open_source(database_table(database, present))
    schema = schema_of(source)
    names = list(schema) if columns is None else list(columns)
    if columns is None and not source.states_names:
        check_header(table, schema)
    for column in names:
        if column not in schema:
            raise families.DRAFT(
                "--columns: {table} does not have a column '{column}'.",
                "Spell it as its header or schema does; put a name with a comma in double quotes.",
                column=column,
                table=table,
            )
    reasons = {column: _exclusion_reason(column, schema[column]) for column in names}
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
    return Draft(
        id=name or default_id(table),
        source=table,
        written=written,
        database=database,
        columns=publishable,
        left_out={column: reason for column, reason in reasons.items() if reason},
        per=span,
        version=last_complete(span, today) if span else today.isoformat(),
    )


def database_table(url: str, table: str) -> DatabaseTable:
    """A table of a database; the URL must not contain a secret."""
    return parse(DatabaseTable, {"url": url, "table": table}, "--database", RequestError)


def _absolute(url: str) -> str:
    """A URL of SQLite with an absolute path, and any other as it is."""
    path = url.removeprefix(SQLITE)
    return url if path == url else f"{SQLITE}{os.path.abspath(os.path.expanduser(path))}"


def parse_names(text: str) -> list[str]:
    """Names separated by commas; a name with a comma is in double quotes."""
    names = next(csv.reader(io.StringIO(text)), [])
    if not all(names) or not names:
        raise families.DRAFT(
            "--columns has an empty name.",
            "Write --columns A,B.",
        )
    return list(dict.fromkeys(names))


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
