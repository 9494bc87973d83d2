"""Drafts of a contract and a request, from the names and types of columns alone."""

from __future__ import annotations

import csv
import datetime
import io
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from gramercy.cli.draft.header import check_header
from gramercy.cli.draft.scalars import yaml_scalar
from gramercy.schemas.column import INTERCEPT
from gramercy.schemas.contract import MAX_COLUMNS, YEAR, Neighbours
from gramercy.schemas.model import has_unprintable
from gramercy.schemas.problems import command_line as problems
from gramercy.tables.column_types import MIXED, PARTIAL, schema_of
from gramercy.tables.source import open_source
from gramercy.tables.source_file import format_of

NUMBERS, LEVELS = "numbers", "levels"
_PUBLISHABLE_AS = {"whole": (NUMBERS, LEVELS), "double": (NUMBERS,), "text": (LEVELS,)}
_TYPE_NAMES = {"whole": "whole numbers", "double": "numbers", "text": "text"}
_MAX_NAME_LENGTH = 1000  # characters that a key in YAML can have
_ANY_YEAR = "[0-9][0-9][0-9][0-9]"


@dataclass(frozen=True)
class Column:
    """A column to publish; values that the steward has not stated yet are None.

    Parameters
    ----------
    kind
        Its type in the table's schema, as in `tables.column_types`.
    lower, upper
        Bounds of a numeric column.
    levels
        Levels of a categorical column.
    """

    kind: str = "any"
    lower: float | None = None
    upper: float | None = None
    levels: tuple[str | float, ...] | None = None

    @property
    def publishable_as(self) -> tuple[str, ...]:
        """The ways in which it can be published: numbers, levels or both."""
        return _PUBLISHABLE_AS.get(self.kind, (NUMBERS, LEVELS))

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
    epsilon, delta, per_year
        The budget.
    version, release_epsilon, release_delta
        As in a request.
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
    per_year: bool = False
    version: str = ""
    release_epsilon: float = 1.0
    release_delta: float = 1e-7


def draft(table: str, name: str | None = None, columns: Iterable[str] | None = None) -> Draft:
    """Propose a contract and a request for a table; reads headers and schemas, but no row.

    Parameters
    ----------
    table
        Path, glob, folder or URL of CSV or Parquet files; ``{year}`` in it stands for a year.
    name
        Id of the data set; by default derived from the table's name.
    columns
        Names of the columns to publish; by default all that can be published.

    Raises
    ------
    TableError
        If the table cannot be read.
    RequestError
        If it lacks a chosen column or any publishable one, or its header may be data.
    """
    if not table.strip():
        raise problems.table_missing()
    table = os.path.expanduser(table)  # a shell does not expand it in quotes
    source = open_source(table.replace(YEAR, _ANY_YEAR))
    schema = schema_of(source)
    names = list(schema) if columns is None else list(columns)
    if columns is None and "csv" in source.formats:
        check_header(table, schema)
    for column in names:
        if column not in schema:
            raise problems.column_not_in_table(column, table)
    reasons = {column: _exclusion_reason(column, schema[column]) for column in names}
    publishable = {column: Column(schema[column]) for column in names if not reasons[column]}
    if not publishable:
        raise problems.no_publishable_column(table)
    if len(publishable) > MAX_COLUMNS:
        raise problems.too_many_columns(table, len(publishable), MAX_COLUMNS)
    return Draft(
        id=name or _default_id(table),
        source=table,
        columns=publishable,
        left_out={column: reason for column, reason in reasons.items() if reason},
        per_year=YEAR in table,
        version=datetime.date.today().isoformat(),
    )


def parse_names(text: str) -> list[str]:
    """Names separated by commas; a name with a comma is in double quotes."""
    names = next(csv.reader(io.StringIO(text)), [])
    if not all(names) or not names:
        raise problems.empty_column_name()
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


def _default_id(table: str) -> str:
    """A default id: the last usable part of a path, in lower case and with hyphens."""
    for part in reversed(PurePosixPath(table).parts):
        stem = part.partition(".")[0] if format_of(part) else part
        plain = stem.replace(YEAR, "").lower()
        if "=" not in plain and (slug := re.sub(r"[^a-z0-9]+", "-", plain).strip("-")):
            return slug[:63].strip("-")
    return "table"
