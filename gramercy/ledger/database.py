"""The ledger's database: SQLite or PostgreSQL, with durable commits and one writer at a time."""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from gramercy.common.disk import make_folder
from gramercy.schemas import families
from gramercy.schemas.url import without_secrets

BUSY_SECONDS = 60  # how long to wait for a lock, or for a connection

_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ")

WRITES = {"writes": True}  # an execution option of a connection whose transaction writes


def open_engine(where: Path | str) -> Engine:
    """An engine whose commits are durable and whose writers take turns.

    Parameters
    ----------
    where
        Path of an SQLite file, created if it does not exist, or the URL of a PostgreSQL database.

    Raises
    ------
    LedgerError
        If it is neither, or PostgreSQL's driver is not installed.
    """
    if isinstance(where, Path):
        return _sqlite(where)
    try:
        url = make_url(where)
    except (ArgumentError, ValueError):
        url = URL.create("none")
    if url.get_backend_name() == "sqlite" and Path(url.database or "").is_absolute():
        return _sqlite(Path(str(url.database)))
    if url.get_backend_name() == "postgresql":
        return _postgresql(url.set(drivername="postgresql+psycopg"))
    raise families.LEDGER(
        "GRAMERCY_LEDGER_URL must be the URL of a PostgreSQL database, or of an SQLite file by "
        "its absolute path.",
        "Write postgresql://user@host/database or sqlite:////path/of/ledger.sqlite.",
    )


def display_location(engine: Engine) -> str:
    """The file or the URL of the database, without user, password and query."""
    if engine.dialect.name == "sqlite":
        return str(engine.url.database)
    url = engine.url.set(drivername="postgresql")
    return without_secrets(url.render_as_string(hide_password=False))


def shows_damage(error: Exception) -> bool:
    """Whether an error says that the file of the database is cut short or malformed."""
    driver = error.orig if isinstance(error, DBAPIError) else error
    name = str(getattr(driver, "sqlite_errorname", ""))
    return isinstance(error, UnicodeDecodeError) or name.startswith(_DAMAGED)


def error_name(error: Exception) -> str:
    """The class of an error, or of its cause in the driver: the message may contain the URL."""
    driver = error.orig if isinstance(error, DBAPIError) else None
    return type(driver or error).__name__


def _sqlite(path: Path) -> Engine:
    if not path.exists():
        make_folder(path.parent, 0o700)
        path.touch(mode=0o600)  # it contains fingerprints of private files
    return _sqlite_engine(path)


@lru_cache(16)  # no connection stays open, and compiled statements are kept
def _sqlite_engine(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=NullPool,
        hide_parameters=True,  # errors must not quote them: fingerprints are among them
        connect_args={"timeout": BUSY_SECONDS},
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        for pragma in ("foreign_keys=ON", "journal_mode=DELETE", "synchronous=EXTRA"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A writer takes the lock first, so that nothing it reads can change before it writes.
        writes = connection.get_execution_options().get("writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgresql(url: URL) -> Engine:
    try:
        import psycopg
    except ImportError:
        raise families.LEDGER(
            "GRAMERCY_LEDGER_URL needs the PostgreSQL driver, which is not installed.",
            "Run pip install 'gramercy[postgresql]'.",
        ) from None
    # READ COMMITTED: after waiting for the lock, a writer sees what the others have committed.
    engine = create_engine(
        url, poolclass=NullPool, hide_parameters=True, isolation_level="READ COMMITTED"
    )

    @event.listens_for(engine, "do_connect")
    def _wait_for_connection(_: Any, __: Any, args: Any, settings: dict[str, Any]) -> Any:
        deadline = time.monotonic() + BUSY_SECONDS
        settings.setdefault("connect_timeout", BUSY_SECONDS)
        while True:
            try:
                return psycopg.connect(*args, **settings)
            except psycopg.OperationalError as refused:
                crowded = "too many clients" in str(refused) or "connection slots" in str(refused)
                if not crowded or time.monotonic() > deadline:
                    raise
            time.sleep(0.05)

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _: Any) -> None:
        with connection.cursor() as cursor:
            # A server can be configured to acknowledge commits that it may lose: not here.
            cursor.execute("SET synchronous_commit = on")
            cursor.execute(f"SET lock_timeout = '{BUSY_SECONDS}s'")
            cursor.execute(f"SET statement_timeout = '{2 * BUSY_SECONDS}s'")
        connection.commit()

    return engine
