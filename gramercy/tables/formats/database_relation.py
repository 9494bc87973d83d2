"""The columns of a database's table, and the one statement that reads them.

The statement computes nothing that a cell could make fail: it selects columns, leaves out texts
that are too long to be a value, and compares cells with values. Texts are compared by the number of
their bytes, so that no cell fills the memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from gramercy.schemas import families
from gramercy.schemas.database import DatabaseTable
from gramercy.schemas.model import nfc
from gramercy.schemas.notation import PLAIN, NumberNotation
from gramercy.tables.formats.database_connection import connected
from gramercy.tables.formats.table_format import CopiedColumns
from gramercy.tables.formats.values import ANY, DOUBLE, EXACT, TEXT, TRUTH, WHOLE, ZONED, Numbers

VIRTUAL = "computed when read"  # no contract can use it: computing it may fail on a cell
NUMERIC = "numeric"  # exact decimals, of up to 147,000 digits in PostgreSQL
_POSTGRESQL_TYPES = {
    **dict.fromkeys(("int2", "int4", "int8"), WHOLE),
    **dict.fromkeys(("float4", "float8"), DOUBLE),
    "bool": TRUTH,
    "numeric": NUMERIC,
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "citext", "uuid"), TEXT),
    "timestamptz": ZONED,
}
_DATES = {"date", "timestamp", ZONED}
# By the rules for affinity: https://www.sqlite.org/datatype3.html#determination_of_column_affinity
_SQLITE_TYPES = (
    (re.compile(r"BOOL"), TRUTH),
    (re.compile(r"DATE|TIME"), ANY),
    (re.compile(r"INT"), WHOLE),
    (re.compile(r"CHAR|CLOB|TEXT"), TEXT),
    (re.compile(r"BLOB|^$"), ANY),
)


def columns_of(table: DatabaseTable) -> list[tuple[str, str]]:
    """Names of the columns and their types, as in `tables.formats.reader`; no row is read.

    SQLite does not enforce types: a column of whole numbers may contain text, which then counts as
    missing. The columns of a free query of SQLite have no type.
    """
    with connected(table) as connection:
        stated = stated_columns(connection, table)
    return [(name, DOUBLE if kind == NUMERIC else kind) for name, kind in stated]


def stated_columns(connection: sa.Connection, table: DatabaseTable) -> list[tuple[str, str]]:
    """As `columns_of`, with a connection that is open; exact decimals are `NUMERIC`."""
    check_kind(connection, table)
    none = sa.select(sa.text("*")).select_from(_relation(table)).limit(0)
    cursor: Any = connection.execute(none).cursor
    stated = [(str(each[0]), each[1]) for each in cursor.description]
    if connection.dialect.name == "postgresql":
        types = _postgresql_types(connection, [oid for _, oid in stated])
        stated = [(name, types[oid]) for name, oid in stated]
    elif table.query is not None:
        stated = [(name, ANY) for name, _ in stated]
    else:
        stated = [
            (row[1], next((k for p, k in _SQLITE_TYPES if p.search(row[2].upper())), DOUBLE))
            for row in sqlite_columns(connection, table)
        ]
    virtual = virtual_columns(connection, table)
    stated = [(name, VIRTUAL if name in virtual else kind) for name, kind in stated]
    check_condition(connection, table, dict(stated))
    return stated


def statement(
    table: DatabaseTable, columns: Mapping[str, tuple[str, int]], *, sqlite: bool
) -> sa.Select[Any]:
    """The statement that reads columns, with their types and the most bytes of a text in them."""
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


def _postgresql_cell(name: str, kind: str, most_bytes: int) -> sa.ColumnElement[Any]:
    """A cell; of text, and of exact decimals, only what can be a value.

    Any value can be cast to text.
    """
    cell: sa.ColumnElement[Any] = sa.column(name)
    if kind in {WHOLE, DOUBLE, TRUTH}:
        return cell
    text: sa.ColumnElement[Any] = sa.cast(cell, sa.Text)
    if kind == NUMERIC:
        return sa.case((sa.func.octet_length(text) <= most_bytes, cell))
    if kind in _DATES:
        text = sa.func.replace(text, " ", "T")  # as ISO 8601 writes it
    return sa.case((sa.func.octet_length(text) <= most_bytes, text))


def _sqlite_cell(name: str, kind: str, most_bytes: int) -> sa.ColumnElement[Any]:
    """A cell; any column may contain text of any length, and the length of text ends at a NUL."""
    cell: sa.ColumnElement[Any] = sa.column(name)
    bytes_of_cell = sa.func.length(sa.cast(cell, sa.LargeBinary))
    return sa.case((bytes_of_cell <= most_bytes, cell))


_ENCODINGS = {"UTF8", "SQL_ASCII"}
_OLDEST = (12,)  # version of PostgreSQL; before, it does not state how columns are generated
_VIRTUAL = 2  # `hidden` of a column of SQLite that is computed when it is read
# Types of PostgreSQL whose comparisons with a value are possible for every cell.
_COMPARABLE = (
    *("int2", "int4", "int8", "float4", "float8", "numeric", "bool", "uuid"),
    *("text", "varchar", "bpchar", "name", "date", "timestamp", "timestamptz"),
)


def check_kind(connection: sa.Connection, table: DatabaseTable) -> None:
    """Refuse a view where the contract says table, whose rows need no assertion."""
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
    if postgresql:
        # Whether policies apply to this role; those of a view are the view's.
        active = sa.text("SELECT row_security_active(to_regclass(:relation))")
        if connection.execute(active, {"relation": _quoted(connection, table)}).scalar():
            raise families.DATABASE_READ(
                "{source}: policies of row-level security apply to this table, and may leave out "
                "rows.",
                "Use a role of PostgreSQL with BYPASSRLS, or export the table as Parquet.",
                source=table.display_name,
            )
        return
    master = sa.table("sqlite_master", sa.column("name"), sa.column("sql"), schema=where)
    text = connection.execute(sa.select(master.c.sql).where(master.c.name == name)).scalar()
    if " ".join(str(text).split()[:2]).upper() == "CREATE VIRTUAL":
        raise families.DATABASE_READ(
            "{source}: this is a virtual table of SQLite, whose rows are computed by a module.",
            "Copy it to an ordinary table, or export it as Parquet.",
            source=table.display_name,
        )


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
    """Refuse a condition that names unknown columns, or columns whose comparisons may fail."""
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


@contextmanager
def open_rows(
    table: DatabaseTable, columns: CopiedColumns
) -> Iterator[tuple[pa.Schema, Iterator[list[pa.Array]]]]:
    """The columns of a copy, and the batches of its rows."""
    with connected(table) as connection:
        stated = {nfc(name): (name, kind) for name, kind in stated_columns(connection, table)}
        types = {name: kind for name, (_, kind) in stated.items()}
        sqlite = connection.dialect.name == "sqlite"
        selected = {
            stated[name][0]: (types[name], columns.coding(name).most_bytes)
            for name in columns.names
        }
        convert: dict[str, Convert] = {}
        fields: list[tuple[str, pa.DataType]] = []
        for name in columns.names:
            if name not in columns.published:  # SQLite does not enforce types
                enforced = types[name] == WHOLE and not sqlite
                kind, convert[name] = _WHOLE_NUMBERS if enforced else _IDENTIFIERS
            elif columns.coding(name).is_text:
                kind, convert[name] = _TEXTS
            else:
                kind = pa.float64()
                convert[name] = partial(numbers, notation=table.notation)
            fields.append((name, kind))
        select = statement(table, selected, sqlite=sqlite)
        options = connection.execution_options(yield_per=columns.rows_at_once)
        yield pa.schema(fields), _batches(options.execute(select), list(convert.values()))


def first_rows(
    table: DatabaseTable, columns: Sequence[str], rows: int, most_bytes: int
) -> pa.Table:
    """Some rows as they are stored: numbers where all cells of a column are numbers, else text."""
    with connected(table) as connection:
        stated = {nfc(name): (name, kind) for name, kind in stated_columns(connection, table)}
        selected = {name: (kind, most_bytes) for name, kind in map(stated.__getitem__, columns)}
        sqlite = connection.dialect.name == "sqlite"
        fetched = connection.execute(statement(table, selected, sqlite=sqlite).limit(rows)).all()
    cells = zip(*fetched, strict=True) if fetched else ([] for _ in columns)
    return pa.table({name: _stored(each) for name, each in zip(columns, cells, strict=True)})


def _stored(cells: Cells) -> pa.Array:
    if any(isinstance(cell, str | bytes) for cell in cells):
        return texts(cells)
    try:
        return pa.array(cells)
    except _NOT_OF_THE_TYPE:
        return numbers(cells)


def _batches(found: Any, convert: list[Convert]) -> Iterator[list[pa.Array]]:
    for fetched in found.partitions():
        cells = zip(*fetched, strict=True)
        yield [to_arrow(column) for to_arrow, column in zip(convert, cells, strict=True)]


Cells = Sequence[Any]
_NOT_OF_THE_TYPE = (ValueError, TypeError, OverflowError)  # errors of Arrow among them


def numbers(cells: Cells, notation: NumberNotation = PLAIN) -> pa.Array:
    """Double-precision numbers; null where a cell is neither a number nor text of a number."""
    try:
        return pa.array(cells, pa.float64())
    except _NOT_OF_THE_TYPE:
        pass  # large integers, exact decimals, truth values, or text
    converted = np.array([_number(cell) for cell in cells], np.float64)
    if any(isinstance(cell, str) for cell in cells):
        written = texts([cell if isinstance(cell, str) else None for cell in cells])
        converted = np.where(np.isnan(converted), Numbers(notation).floats(written), converted)
    return pa.array(converted)


def _number(cell: Any) -> float:
    """A number; every decimal becomes the double next to it, and infinite if there is none."""
    if not isinstance(cell, int | float | Decimal):
        return np.nan
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf
    except ValueError:  # a signalling NaN
        return np.nan


def whole_numbers(cells: Cells) -> pa.Array:
    """Whole numbers of 64 bits."""
    return pa.array(cells, pa.int64())


def texts(cells: Cells) -> pa.Array:
    """Text; null where a cell is binary and not UTF-8."""
    try:
        return pa.array(cells, pa.string())
    except _NOT_OF_THE_TYPE:  # SQLite stores numbers in columns of text
        return pa.array([_text(cell) for cell in cells], pa.string())


def identifiers(cells: Cells) -> pa.Array:
    """Text of persons or dates: 7.0 is 7, and other doubles are null.

    SQLite stores a number as it was inserted. The double next to a large whole number, which some
    programs write instead of it, would be another name of the same person.
    """
    named: list[Any] = []
    for cell in cells:
        is_name = not isinstance(cell, float) or (abs(cell) < EXACT and cell.is_integer())
        named.append(None if not is_name else int(cell) if isinstance(cell, float) else cell)
    return texts(named)


def _text(cell: Any) -> str | None:
    """As Arrow would read the cell, so that it does not matter which other cells there are."""
    if isinstance(cell, bytes):
        try:
            return cell.decode()
        except UnicodeDecodeError:
            return None
    try:
        return None if cell is None else str(cell).encode("utf-8", "replace").decode()
    except ValueError:  # a whole number of thousands of digits
        return None


Convert = Callable[[Cells], pa.Array]
_TEXTS = pa.string(), texts
_WHOLE_NUMBERS = pa.int64(), whole_numbers
_IDENTIFIERS = pa.string(), identifiers
