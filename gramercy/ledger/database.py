"""The database under the ledger: SQLite or PostgreSQL, durable, and one writer at a time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from gramercy.schemas.errors import LedgerError
from gramercy.schemas.url import without_secrets

BUSY_SECONDS = 60  # that a writer waits for its turn, or for a connection

WRITES = {"writes": True}  # an execution option of a connection whose transaction writes


def engine_of(where: Path | str) -> Engine:
    """An engine whose transactions are durable when they end, and see each other's writes.

    Parameters
    ----------
    where
        Path of an SQLite file, made when absent, or the URL of a PostgreSQL database.

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
    raise LedgerError(
        "GRAMERCY_LEDGER_URL: names no database that can hold a ledger.",
        "Write postgresql://user@host/database or sqlite:////path/of/ledger.sqlite.",
    )


def described(engine: Engine) -> str:
    """The database, for people: without user, password and query."""
    if engine.dialect.name == "sqlite":
        return str(engine.url.database)
    url = engine.url.set(drivername="postgresql")
    return without_secrets(url.render_as_string(hide_password=False))


def failure_name(error: Exception) -> str:
    """The class of an error, or of the driver's below it: its words may quote the URL."""
    driver = error.orig if isinstance(error, DBAPIError) else None
    return type(driver or error).__name__


def _sqlite(path: Path) -> Engine:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)  # fingerprints of private files are in it
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=NullPool,
        hide_parameters=True,  # an error would quote them, and fingerprints are among them
        connect_args={"timeout": BUSY_SECONDS},
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        for pragma in ("foreign_keys=ON", "journal_mode=DELETE", "synchronous=EXTRA"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A writer takes the lock first: it reads nothing that another is about to change.
        writes = connection.get_execution_options().get("writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgresql(url: URL) -> Engine:
    try:
        import psycopg
    except ImportError:
        raise LedgerError(
            "GRAMERCY_LEDGER_URL: PostgreSQL's driver is not installed.",
            "Run pip install 'gramercy[postgresql]'.",
        ) from None
    # READ COMMITTED: after the wait for its turn, a writer sees what the others have written.
    engine = create_engine(
        url, poolclass=NullPool, hide_parameters=True, isolation_level="READ COMMITTED"
    )

    @event.listens_for(engine, "do_connect")
    def _wait_for_a_connection(_: Any, __: Any, args: Any, settings: dict[str, Any]) -> Any:
        end = time.monotonic() + BUSY_SECONDS
        settings.setdefault("connect_timeout", BUSY_SECONDS)
        while True:
            try:
                return psycopg.connect(*args, **settings)
            except psycopg.OperationalError as refused:
                crowded = "too many clients" in str(refused) or "connection slots" in str(refused)
                if not crowded or time.monotonic() > end:
                    raise
            time.sleep(0.05)

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _: Any) -> None:
        with connection.cursor() as cursor:
            # A server may be set to forget what it has acknowledged. Here it must not.
            cursor.execute("SET synchronous_commit = on")
            cursor.execute(f"SET lock_timeout = '{BUSY_SECONDS}s'")
            cursor.execute(f"SET statement_timeout = '{2 * BUSY_SECONDS}s'")
        connection.commit()

    return engine
