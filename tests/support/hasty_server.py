"""Prefect's own program, whose server waits for a lock of its SQLite file for two seconds.

By itself it waits for a minute, also where it holds the lock itself: so it stands still, when
several runs of deployments with a limit begin at once, before it tries again.
"""

from __future__ import annotations

from typing import Any

from prefect.cli import app
from prefect.server.database.configurations import AioSqliteConfiguration

_set_up = AioSqliteConfiguration.setup_sqlite


def _set_up_hastily(self: AioSqliteConfiguration, connection: Any, record: Any) -> None:
    _set_up(self, connection, record)
    cursor = connection.cursor()
    cursor.execute("PRAGMA busy_timeout = 2000;")
    cursor.close()


if __name__ == "__main__":
    AioSqliteConfiguration.setup_sqlite = _set_up_hastily  # type: ignore[method-assign, assignment]
    app()
