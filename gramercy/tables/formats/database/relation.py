"""The columns of a database's table, and the one statement that reads them.

The statement computes nothing that a cell could make fail: it selects columns, leaves out texts
that are too long to be a value, and compares cells with values. Texts are compared by the number of
their bytes, so that no cell fills the memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from gramercy.schemas.database import DatabaseTable
from gramercy.tables.formats.database.checks import (
    check_condition,
    check_kind,
    sqlite_columns,
    virtual_columns,
)
from gramercy.tables.formats.database.connection import connected

WHOLE, DOUBLE, TEXT, ANY = "whole", "double", "text", "any"
DATE = "date or time"
VIRTUAL = "computed when read"  # no contract can use it: computing it may fail on a cell
NUMERIC = "numeric"  # exact decimals, of up to 147,000 digits in PostgreSQL
_POSTGRESQL_TYPES = {
    **dict.fromkeys(("int2", "int4", "int8"), WHOLE),
    **dict.fromkeys(("float4", "float8", "bool"), DOUBLE),
    "numeric": NUMERIC,
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "citext", "uuid"), TEXT),
    **dict.fromkeys(("date", "timestamp", "timestamptz"), DATE),
}
# By the rules for affinity: https://www.sqlite.org/datatype3.html#determination_of_column_affinity
_SQLITE_TYPES = (
    (re.compile(r"DATE|TIME"), ANY),
    (re.compile(r"INT"), WHOLE),
    (re.compile(r"CHAR|CLOB|TEXT"), TEXT),
    (re.compile(r"BLOB|^$"), ANY),
)


def columns_of(table: DatabaseTable) -> list[tuple[str, str]]:
    """Names of the columns and their types, as in `tables.formats.column_types`; no row is read.

    SQLite does not enforce types: a column of whole numbers may contain text, which then counts as
    missing. The columns of a free query of SQLite have no type.

    Raises
    ------
    TableError
        If the database or the table cannot be read, or the condition on rows can fail.
    """
    with connected(table) as connection:
        stated = stated_columns(connection, table)
    return [(name, DOUBLE if kind == NUMERIC else kind) for name, kind in stated]


def stated_columns(connection: sa.Connection, table: DatabaseTable) -> list[tuple[str, str]]:
    """As `columns_of`, with a connection that is open; exact decimals are `NUMERIC`."""
    check_kind(connection, table)
    stated = _stated(connection, table)
    virtual = virtual_columns(connection, table)
    stated = [(name, VIRTUAL if name in virtual else kind) for name, kind in stated]
    check_condition(connection, table, dict(stated))
    return stated


def _stated(connection: sa.Connection, table: DatabaseTable) -> list[tuple[str, str]]:
    statement = sa.select(sa.text("*")).select_from(_relation(table)).limit(0)
    cursor: Any = connection.execute(statement).cursor
    described = [(str(each[0]), each[1]) for each in cursor.description]
    if connection.dialect.name == "postgresql":
        types = _postgresql_types(connection, [oid for _, oid in described])
        return [(name, types[oid]) for name, oid in described]
    if table.query is not None:
        return [(name, ANY) for name, _ in described]
    return [(row[1], _sqlite_type(row[2])) for row in sqlite_columns(connection, table)]


def statement(
    table: DatabaseTable,
    columns: Mapping[str, tuple[str, int]],
    *,
    sqlite: bool,
) -> sa.Select[Any]:
    """The statement that reads the table.

    Parameters
    ----------
    table
        What to read.
    columns
        The columns to read, with their types, and the most bytes of a text that can be a value.
    sqlite
        Whether the database is SQLite, in which any column may contain text.
    """
    relation = _relation(table)
    bounded = _sqlite_cell if sqlite else _postgresql_cell
    cells = [bounded(name, *columns[name]).label(f"c{k}") for k, name in enumerate(columns)]
    selected = sa.select(*cells).select_from(relation)
    if table.condition is None:
        return selected
    condition = table.condition.sql("sqlite" if sqlite else "postgres")
    return selected.where(sa.literal_column(condition))


def _relation(table: DatabaseTable) -> sa.FromClause:
    """The table, the view, or the query as a subquery, without its columns."""
    if table.query is not None:
        text = table.query.replace("\\", "\\\\").replace(":", "\\:")  # no parameters
        text += "\n"  # it may end in a comment
        return sa.text(text).columns().subquery("selected")
    schema, _, name = table.relation.rpartition(".")
    return sa.table(name, schema=schema or None)


def _postgresql_types(connection: sa.Connection, oids: Sequence[int]) -> dict[int, str]:
    """The types of columns; values of an enumeration are text."""
    found = connection.execute(
        sa.text("SELECT oid, typname, typtype FROM pg_type WHERE oid = ANY(:oids)"),
        {"oids": list(set(oids))},
    )
    types = {
        oid: TEXT if kind in {"e", b"e"} else _POSTGRESQL_TYPES.get(name, name)
        for oid, name, kind in found
    }
    return {oid: types.get(oid, "unknown") for oid in oids}


def _sqlite_type(declared: str) -> str:
    for pattern, kind in _SQLITE_TYPES:
        if pattern.search(declared.upper()):
            return kind
    return DOUBLE


def _postgresql_cell(name: str, kind: str, most_bytes: int) -> sa.ColumnElement[Any]:
    """A cell; of text, and of exact decimals, only what can be a value.

    Any value can be cast to text.
    """
    cell: sa.ColumnElement[Any] = sa.column(name)
    if kind in {WHOLE, DOUBLE}:
        return cell
    text: sa.ColumnElement[Any] = sa.cast(cell, sa.Text)
    if kind == NUMERIC:
        return sa.case((sa.func.octet_length(text) <= most_bytes, cell))
    if kind == DATE:
        text = sa.func.replace(text, " ", "T")  # as ISO 8601 writes it
    return sa.case((sa.func.octet_length(text) <= most_bytes, text))


def _sqlite_cell(name: str, kind: str, most_bytes: int) -> sa.ColumnElement[Any]:
    """A cell; any column may contain text of any length, and the length of text ends at a NUL."""
    cell: sa.ColumnElement[Any] = sa.column(name)
    bytes_of_cell = sa.func.length(sa.cast(cell, sa.LargeBinary))
    return sa.case((bytes_of_cell <= most_bytes, cell))
