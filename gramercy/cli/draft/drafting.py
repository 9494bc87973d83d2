"""What is known of a data set before its first release: from names and types of columns alone."""

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
from gramercy.cli.draft.scalars import in_yaml
from gramercy.schemas.column import INTERCEPT
from gramercy.schemas.contract import MOST_COLUMNS, YEAR, Neighbours
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import cannot_be_shown
from gramercy.tables.column_types import MIXED, PARTIAL, schema_of
from gramercy.tables.source import open_source
from gramercy.tables.source_file import format_of

NUMBERS, LEVELS = "numbers", "levels"
KINDS = {"whole": (NUMBERS, LEVELS), "double": (NUMBERS,), "text": (LEVELS,)}
_STATED = {"whole": "whole numbers", "double": "numbers", "text": "text"}
_LONGEST = 1000  # of a key in YAML
_ANY_YEAR = "[0-9][0-9][0-9][0-9]"


@dataclass(frozen=True)
class Column:
    """A column that is to be published, as far as somebody has said how.

    Parameters
    ----------
    kind
        What the table states of it, as `tables.column_types.schema_of` has it.
    lower, upper
        Bounds, if it holds numbers.
    levels
        If it holds categories; empty where nobody has named them yet.
    """

    kind: str = "any"
    lower: float | None = None
    upper: float | None = None
    levels: tuple[str | float, ...] | None = None

    @property
    def offers(self) -> tuple[str, ...]:
        """What it may be published as."""
        return KINDS.get(self.kind, (NUMBERS, LEVELS))

    @property
    def text(self) -> str:
        """Its line of the contract."""
        if self.levels is not None or NUMBERS not in self.offers:
            told = ", ".join(map(in_yaml, self.levels or ()))
            return f"{{levels: [{told}]}}" if told else "{levels: }"
        return f"{{lower: {in_yaml(self.lower)}, upper: {in_yaml(self.upper)}}}"

    @property
    def note(self) -> str:
        """A comment that says what the table states, where it states anything."""
        return f"  # {_STATED[self.kind]}" if self.kind in _STATED else ""


@dataclass(frozen=True)
class Draft:
    """What is known of a data set before its first release; None where somebody has to say it.

    Parameters
    ----------
    id, source
        As in a contract.
    columns
        Those that are to be published, by name.
    left_out
        Those that cannot be, and why.
    title, curator, rows, neighbours, unit, persons
        As in a contract.
    epsilon, delta, per_year
        Its budget.
    version, asked_epsilon, asked_delta
        Of the request.
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
    asked_epsilon: float = 1.0
    asked_delta: float = 1e-7


def draft(table: str, name: str | None = None, columns: Iterable[str] | None = None) -> Draft:
    """Propose a contract and a request for a table; reads headers and schemas, and no row.

    Parameters
    ----------
    table
        Path, glob, folder or URL of CSV or Parquet files; ``{year}`` in it stands for a year.
    name
        Id of the data set; by default from the table's name.
    columns
        Those to publish; by default all that can be.

    Raises
    ------
    TableError
        If the table cannot be read.
    RequestError
        If it has no column to publish, or none of a name that is given, or names no columns.
    """
    if not table.strip():
        raise RequestError("TABLE: is empty.", "Name the table's file or folder.")
    table = os.path.expanduser(table)  # in quotes, no shell does it
    source = open_source(table.replace(YEAR, _ANY_YEAR))
    stated = schema_of(source)
    wanted = list(stated) if columns is None else list(columns)
    if columns is None and "csv" in source.formats:
        check_header(table, stated)
    for each in wanted:
        if each not in stated:
            raise RequestError(
                f"--columns: '{each}' is no column of {table}.",
                "Spell it as its header or schema does; put a name with a comma in double quotes.",
            )
    why = {each: _unfit(each, stated[each]) for each in wanted}
    kept = {each: Column(stated[each]) for each in wanted if not why[each]}
    if not kept:
        raise RequestError(
            f"{table}: none of its columns can be published.",
            "Store numbers or text in columns with printable names.",
        )
    if len(kept) > MOST_COLUMNS:
        raise RequestError(
            f"{table}: has {len(kept)} columns, and a matrix at most {MOST_COLUMNS}.",
            "Name those to publish with --columns.",
        )
    return Draft(
        id=name or _id_of(table),
        source=table,
        columns=kept,
        left_out={each: words for each, words in why.items() if words},
        per_year=YEAR in table,
        version=datetime.date.today().isoformat(),
    )


def named(text: str) -> list[str]:
    """Names separated by commas; a name that holds one stands in double quotes."""
    names = next(csv.reader(io.StringIO(text)), [])
    if not all(names) or not names:
        raise RequestError("--columns: holds no name, or an empty one.", "Write --columns A,B.")
    return list(dict.fromkeys(names))


def _unfit(name: str, kind: str) -> str:
    """Why a column cannot be published; empty if it can."""
    if cannot_be_shown(name):
        return "its name holds a control character"
    if not name or name != name.strip():
        return "its name is empty or has blanks around it"
    if len(in_yaml(name)) > _LONGEST:
        return f"its name is longer than {_LONGEST} characters"
    if name == INTERCEPT:
        return "its name is that of the column of ones"
    if kind in {MIXED, PARTIAL}:
        return kind
    return "" if kind == "any" or kind in KINDS else f"neither numbers nor text ({kind})"


def _id_of(table: str) -> str:
    """The last part of a path that is a name, in the letters of an id."""
    for part in reversed(PurePosixPath(table).parts):
        stem = part.partition(".")[0] if format_of(part) else part
        plain = stem.replace(YEAR, "").lower()
        if "=" not in plain and (slug := re.sub(r"[^a-z0-9]+", "-", plain).strip("-")):
            return slug[:63].strip("-")
    return "table"
