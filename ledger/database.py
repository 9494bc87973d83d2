"""The database under the ledger: durable, and one writer at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool

_BUSY_SECONDS = 60


def sqlite(path: Path) -> Engine:
    """An engine whose every transaction takes the write lock first, and is durable when it ends."""
    engine = create_engine(
        f"sqlite:///{path}", poolclass=NullPool, connect_args={"timeout": _BUSY_SECONDS}
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        for pragma in ("foreign_keys=ON", "journal_mode=DELETE", "synchronous=EXTRA"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
