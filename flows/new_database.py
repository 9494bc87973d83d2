"""The tables of a new home of Prefect, made at once.

A server that finds no database runs all of Prefect's migrations, which takes longer than a release.
`prefect_tables.sql` is what they lead to; ``tools/prefect_tables.py`` writes it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import uuid
from pathlib import Path

import prefect
from prefect.settings import get_current_settings

TABLES = Path(__file__).with_name("prefect_tables.sql")


def header() -> str:
    """The first line of the tables of this version of Prefect."""
    return f"-- Prefect {prefect.__version__}"


def make_tables() -> None:
    """Make the tables of Prefect's own database, if it has no file yet.

    Does nothing if another database is configured, or if the tables are those of another version:
    Prefect then makes them.
    """
    settings = get_current_settings()
    database = settings.home / "prefect.db"
    # Prefect fills in the address of its own database, without counting it as set.
    is_configured = "connection_url" in settings.server.database.model_fields_set
    if is_configured or database.exists():
        return
    if not TABLES.read_text(encoding="utf-8").startswith(f"{header()}\n"):
        return
    settings.home.mkdir(parents=True, exist_ok=True)
    made = settings.home / f".{uuid.uuid4().hex}.db"
    try:
        write_tables(made)
        # Another server was first, or there are no links here: then Prefect makes the tables.
        with contextlib.suppress(OSError):
            database.hardlink_to(made)
    finally:
        made.unlink(missing_ok=True)


def write_tables(database: Path) -> None:
    """Write a database with the tables into a new file."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.executescript(TABLES.read_text(encoding="utf-8"))
