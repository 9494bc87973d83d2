"""The rows of a database's table, in one statement.

One statement sees one snapshot of the database. Reading a changing table in several statements
could read a row twice that was moved in between, and the sensitivity would double.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from gramercy.schemas.database import DatabaseTable
from gramercy.tables.formats.copies import cells as as_arrow
from gramercy.tables.formats.copies.copying import CopiedColumns
from gramercy.tables.formats.database.connection import connected
from gramercy.tables.formats.database.relation import WHOLE, stated_columns, statement


@contextmanager
def open_rows(
    table: DatabaseTable, columns: CopiedColumns
) -> Iterator[tuple[pa.Schema, Iterator[list[pa.Array]]]]:
    """The columns of a copy, and the batches of its rows.

    Raises
    ------
    TableError
        If the database cannot be read, or lacks a column.
    """
    with connected(table) as connection:
        types = dict(stated_columns(connection, table))
        sqlite = connection.dialect.name == "sqlite"
        selected = {name: (types[name], columns.most_bytes(name)) for name in columns.names}
        convert = {name: _converter(columns, name, types[name], sqlite) for name in selected}
        select = statement(table, selected, sqlite=sqlite)
        options = connection.execution_options(yield_per=columns.rows_at_once)
        schema = pa.schema([(name, as_arrow.TYPES[convert[name]]) for name in selected])
        yield schema, _batches(options.execute(select), list(convert.values()))


def _converter(columns: CopiedColumns, name: str, kind: str, sqlite: bool) -> as_arrow.Convert:
    if name in columns.published:
        return as_arrow.numbers if columns.is_number(name) else as_arrow.texts
    enforced = kind == WHOLE and not sqlite
    return as_arrow.whole_numbers if enforced else as_arrow.identifiers


def _batches(found: Any, convert: list[as_arrow.Convert]) -> Iterator[list[pa.Array]]:
    for fetched in found.partitions():
        cells = zip(*fetched, strict=True)
        yield [to_arrow(column) for to_arrow, column in zip(convert, cells, strict=True)]
