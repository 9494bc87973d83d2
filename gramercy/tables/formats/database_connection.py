"""Connections to the database of a private table: read-only, and one snapshot for a statement.

Errors of drivers quote values and URLs: they are replaced by errors that name the table only.
"""

from __future__ import annotations

import itertools
import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from gramercy.common.extras import is_installed
from gramercy.schemas import families
from gramercy.schemas.database import DatabaseTable
from gramercy.schemas.errors import GramercyError, TableError
from gramercy.tables.formats.lines import replace_invalid_utf8


def _database_not_supported(source: str) -> TableError:
    return families.DATABASE_READ(
        "{source}: this kind of database is not supported.",
        "Use PostgreSQL (postgresql://...) or SQLite (sqlite:////path/file.db), or export the "
        "table as Parquet.",
        source=source,
    )


def _database_not_readable(source: str, reason: str) -> TableError:
    return families.DATABASE_READ(
        "{source}: the database cannot be read ({reason}).",
        "Check the URL of the database, the name of the table and your permissions.",
        source=source,
        reason=reason,
    )


_TIMEOUT = 60  # seconds to wait for a connection, or for a lock of SQLite
_LOG = "gramercy.source"
_DAMAGED = ("SQLITE_IOERR", "SQLITE_CORRUPT", "SQLITE_NOTADB")  # errors of SQLite
# How long reading takes depends on private cells. Some of the settings are those of newer versions.
_NO_TIMEOUTS = """
    SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('statement_timeout',
    'transaction_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout')
"""

# At the level DEBUG, SQLAlchemy logs every row.
logging.getLogger(f"sqlalchemy.engine.Engine.{_LOG}").setLevel(logging.WARNING)


@contextmanager
def connected(table: DatabaseTable) -> Iterator[sa.Connection]:
    """A connection to the database of a table, which can only read."""
    error: GramercyError | None = None
    try:
        engine = _engine(table)
        with engine.connect() as connection:
            yield connection
    except GeneratorExit:
        raise
    except GramercyError as caught:
        error = caught
    except Exception as caught:
        driver = getattr(caught, "orig", None) or caught
        error = _database_not_readable(table.display_name, type(driver).__name__)
        if (reason := str(getattr(driver, "sqlite_errorname", ""))).startswith(_DAMAGED):
            error = families.DATABASE_READ(
                "{source}: the database is damaged, or its disk cannot be read ({reason}).",
                "Check the disk, restore the database from a backup, and run the same "
                "command again. Nothing was charged.",
                source=table.display_name,
                reason=reason,
            )
    if error is not None:
        try:
            raise error from None
        finally:  # raising sets it to the handled error, which may quote data and URLs
            error.__context__ = None


def _engine(table: DatabaseTable) -> sa.Engine:
    url, error = _url(table), _database_not_supported(table.display_name)
    if url is not None and url.get_backend_name() == "sqlite":
        return _sqlite(table, url)
    if url is not None and url.get_backend_name() == "postgresql":
        return _postgresql(table, url)
    raise error


def _url(table: DatabaseTable) -> URL | None:
    """The URL of the database; None if it is not a URL."""
    text: str | None = table.url
    if table.variable is not None:
        text = os.environ.get(table.variable)
        if not text:
            raise families.DATABASE_READ(
                "The environment variable {variable}, which should contain the URL of the "
                "database, is not set.",
                "Set it for the process that reads the table: on a worker, in its own environment.",
                variable=table.variable,
            )
    try:
        return make_url(str(text))
    except (ArgumentError, ValueError):
        return None


def _sqlite(table: DatabaseTable, url: URL) -> sa.Engine:
    """One SELECT of SQLite is a read transaction, which sees one state of the file."""
    path = Path(url.database or "")
    error: TableError | None = None
    if not path.is_absolute():
        error = _database_not_supported(table.display_name)
    elif not path.is_file():  # SQLite would report it as unreadable
        error = _database_not_readable(table.display_name, "FileNotFoundError")
    if error is not None:
        raise error

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=_TIMEOUT)
        connection.text_factory = _text
        return connection

    return sa.create_engine("sqlite://", creator=connect, **_settings())


def _text(data: bytes) -> str:
    """A text of SQLite, which need not be UTF-8."""
    return replace_invalid_utf8(data).decode()


def _postgresql(table: DatabaseTable, url: URL) -> sa.Engine:
    if not is_installed("psycopg"):
        raise families.DATABASE_READ(
            "{source}: the driver of PostgreSQL is not installed.",
            "pip install 'gramercy[postgresql]'.",
            source=table.display_name,
        )
    from psycopg import ServerCursor
    from psycopg.pq import Format

    class BinaryCursor(ServerCursor[Any]):
        """Reads rows in the server's binary format: numbers need not be written and parsed."""

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.format = Format.BINARY

    engine = sa.create_engine(
        url.set(drivername="postgresql+psycopg"),
        isolation_level="REPEATABLE READ",
        connect_args={"connect_timeout": _TIMEOUT, "client_encoding": "utf8"},
        **_settings(),
    )

    @sa.event.listens_for(engine, "connect")
    def _connect(connection: Any, _: Any) -> None:
        connection.read_only = True
        connection.server_cursor_factory = BinaryCursor
        with connection.cursor() as cursor:
            # Dates and times become text, which must not depend on the server's settings.
            cursor.execute("SET datestyle = 'ISO'")
            cursor.execute("SET timezone = 'UTC'")
            # A policy that would leave out rows is an error: it might read other rows.
            cursor.execute("SET row_security = off")
            cursor.execute(_NO_TIMEOUTS)
        connection.commit()
        if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
            _accept_any_bytes(connection)

    return engine


def _accept_any_bytes(connection: Any) -> None:
    """Read text of a database that stores any bytes: a cell that is not UTF-8 must not fail.

    The server must not convert the bytes, and the driver must not decode them.
    """
    from psycopg.adapt import Loader
    from psycopg.pq import Format

    class AnyBytes(Loader):
        def load(self, data: Any) -> str:
            return _text(bytes(data))

    class AnyBinary(AnyBytes):
        format = Format.BINARY

    for name, loader in itertools.product(
        ("text", "varchar", "bpchar", "name"), (AnyBytes, AnyBinary)
    ):
        connection.adapters.register_loader(name, loader)
    connection.execute("SET client_encoding = 'SQL_ASCII'")
    connection.commit()


def _settings() -> dict[str, Any]:
    return {"poolclass": sa.NullPool, "hide_parameters": True, "logging_name": _LOG}
