"""Refuse what could fail on a cell, or has unknown rows, by public facts of the database alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from gramercy.schemas import families
from gramercy.schemas.database import DatabaseTable

_ENCODINGS = {"UTF8", "SQL_ASCII"}
_OLDEST = (12,)  # version of PostgreSQL; before, it does not state how columns are generated
_VIRTUAL = 2  # `hidden` of a column of SQLite that is computed when it is read
# Types of PostgreSQL whose comparisons with a value are possible for every cell.
_COMPARABLE = (
    *("int2", "int4", "int8", "float4", "float8", "numeric", "bool", "uuid"),
    *("text", "varchar", "bpchar", "name", "date", "timestamp", "timestamptz"),
)


def check_kind(connection: sa.Connection, table: DatabaseTable) -> None:
    """Refuse a view where the contract says table, whose rows need no assertion.

    Raises
    ------
    TableError
        If so, if the table is virtual or has policies of row-level security, or if the server is
        too old, or could not convert a stored text.
    """
    postgresql = connection.dialect.name == "postgresql"
    if postgresql:
        version = connection.dialect.server_version_info or (0,)
        if version < _OLDEST:
            raise families.DATABASE_READ(
                "{source}: the database is PostgreSQL {version}.",
                "Use PostgreSQL 12 or newer, or export the table as Parquet.",
                source=table.display_name,
                version=".".join(map(str, version)),
            )
        encoding = str(connection.exec_driver_sql("SHOW server_encoding").scalar())
        if encoding not in _ENCODINGS:
            raise families.DATABASE_READ(
                "{source}: the encoding of the database is {encoding}.",
                "Export the table as Parquet, or copy it to a database with the encoding UTF8.",
                source=table.display_name,
                encoding=encoding,
            )
    if table.query is not None:
        return
    schema, _, name = table.relation.rpartition(".")
    inspector, where = sa.inspect(connection), schema or None
    views = inspector.get_view_names(where)
    if postgresql:
        views += inspector.get_materialized_view_names(where)
    names = views if table.kind == "view" else inspector.get_table_names(where)
    if name not in names:
        raise families.DATABASE_READ(
            "{source}: there is no such {kind}.",
            "Check the name; a schema other than the default is written as schema.name.",
            source=table.display_name,
            kind=table.kind,
        )
    if postgresql and _has_policies(connection, table):
        raise families.DATABASE_READ(
            "{source}: policies of row-level security apply to this table, and may leave out rows.",
            "Use a role of PostgreSQL with BYPASSRLS, or export the table as Parquet.",
            source=table.display_name,
        )
    if not postgresql and _is_virtual(connection, schema, name):
        raise families.DATABASE_READ(
            "{source}: this is a virtual table of SQLite, whose rows are computed by a module.",
            "Copy it to an ordinary table, or export it as Parquet.",
            source=table.display_name,
        )


def _has_policies(connection: sa.Connection, table: DatabaseTable) -> bool:
    """Whether policies of row-level security apply to the role; those of a view are the view's."""
    active = sa.text("SELECT row_security_active(to_regclass(:relation))")
    return bool(connection.execute(active, {"relation": _quoted(connection, table)}).scalar())


def _is_virtual(connection: sa.Connection, schema: str, name: str) -> bool:
    master = sa.table("sqlite_master", sa.column("name"), sa.column("sql"), schema=schema or None)
    text = connection.execute(sa.select(master.c.sql).where(master.c.name == name)).scalar()
    return " ".join(str(text).split()[:2]).upper() == "CREATE VIRTUAL"


def virtual_columns(connection: sa.Connection, table: DatabaseTable) -> set[str]:
    """Columns of a table that are computed when they are read, which may fail on a cell."""
    if table.query is not None:
        return set()
    if connection.dialect.name == "postgresql":
        return {name for name, _, generated in _attributes(connection, table) if generated == "v"}
    return {row[1] for row in sqlite_columns(connection, table) if row[6] == _VIRTUAL}


def check_condition(
    connection: sa.Connection, table: DatabaseTable, types: Mapping[str, str]
) -> None:
    """Refuse a condition that names unknown columns, or columns whose comparisons may fail.

    Parameters
    ----------
    connection
        An open connection.
    table
        The table with the condition.
    types
        All columns, with their types.

    Raises
    ------
    TableError
        If the condition cannot be used.
    """
    if table.condition is None:
        return
    from gramercy.schemas.row_condition import columns_of  # takes a third of a second

    usable = set(types)
    if connection.dialect.name == "postgresql":
        usable = {
            name for name, is_comparable, _ in _attributes(connection, table) if is_comparable
        }
    usable -= virtual_columns(connection, table)
    for name in columns_of(table.condition):
        if name not in types:
            raise families.DATABASE_READ(
                "{source}: 'where' names '{column}', which is not a column.",
                "Write the name as the database has it, in double quotes if it has capitals or "
                "blanks.",
                source=table.display_name,
                column=name,
            )
        if name not in usable:
            raise families.DATABASE_READ(
                "{source}: 'where' cannot use '{column}', whose type is {kind}.",
                "Use columns of whole numbers, numeric, floating-point numbers, truth values, "
                "text, enumerations, UUIDs, dates or times.",
                source=table.display_name,
                column=name,
                kind=types[name],
            )


def sqlite_columns(connection: sa.Connection, table: DatabaseTable) -> list[Any]:
    """The rows of SQLite's ``table_xinfo``, without hidden columns."""
    schema, _, name = table.relation.rpartition(".")
    quote = connection.dialect.identifier_preparer.quote_identifier
    within = f"{quote(schema)}." if schema else ""
    found = connection.exec_driver_sql(f"PRAGMA {within}table_xinfo({quote(name)})")
    return [row for row in found if row[6] != 1]  # 1: hidden


def _attributes(connection: sa.Connection, table: DatabaseTable) -> list[tuple[str, bool, str]]:
    """Columns in PostgreSQL, with whether they can be compared, and how they are generated.

    A domain cannot be compared: it may have operators of its own.
    """
    found = connection.execute(
        sa.text(
            "SELECT a.attname, t.typtype = 'e' OR (t.typnamespace = 'pg_catalog'::regnamespace"
            " AND t.typname = ANY(:types)), a.attgenerated::text"
            " FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid"
            " WHERE a.attrelid = to_regclass(:relation) AND a.attnum > 0"
        ),
        {"types": list(_COMPARABLE), "relation": _quoted(connection, table)},
    )
    return [(str(name), bool(is_comparable), str(by)) for name, is_comparable, by in found]


def _quoted(connection: sa.Connection, table: DatabaseTable) -> str:
    """The name of a table or a view, as PostgreSQL's ``to_regclass`` reads it."""
    schema, _, name = table.relation.rpartition(".")
    quote = connection.dialect.identifier_preparer.quote_identifier
    return f"{quote(schema)}.{quote(name)}" if schema else quote(name)
