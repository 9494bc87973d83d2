"""Bring a database to the schema of this version: made when empty, migrated when older."""

from __future__ import annotations

import logging

from sqlalchemy import Connection, Engine, inspect, text

from gramercy.ledger.database import WRITES
from gramercy.schemas.errors import LedgerError

HEAD = "3"  # the newest of ledger/migrations/versions
_VERSION = "gramercy_version"  # a name of our own: others may keep theirs beside it
_LOCK = 7_261_993  # of PostgreSQL, while a schema is made: any number, always the same


def migrate(engine: Engine) -> None:
    """Make or migrate the schema, once, however many processes come at the same time.

    Raises
    ------
    LedgerError
        If a newer version has migrated it before.
    """
    with engine.begin() as db:
        if _version(db) == HEAD:
            return
    with engine.connect().execution_options(**WRITES) as db, db.begin():
        if db.dialect.name == "postgresql":
            db.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        found = _version(db)
        if found == HEAD:
            return
        if found is not None and (not found.isdigit() or int(found) > int(HEAD)):
            raise LedgerError(
                f"The ledger's schema is {found:.20}, and this version knows {HEAD} at most.",
                "Use the version of Gramercy that migrated it, or a newer one.",
            )
        _upgrade(db, found)


def _version(db: Connection) -> str | None:
    """Of the schema; None where nothing is. Before there were versions there was one schema."""
    tables = inspect(db).get_table_names()
    if _VERSION in tables:
        return str(db.scalar(text(f"SELECT version_num FROM {_VERSION}")))
    return "1" if "datasets" in tables else None


def _upgrade(db: Connection, found: str | None) -> None:
    from alembic import command  # half a second, and hardly ever needed
    from alembic.config import Config

    logging.getLogger("alembic").setLevel(logging.WARNING)
    config = Config(attributes={"connection": db, "version_table": _VERSION})
    config.set_main_option("script_location", "gramercy.ledger:migrations")
    config.set_main_option("path_separator", "os")
    if found == "1" and _VERSION not in inspect(db).get_table_names():
        command.stamp(config, "1")
    command.upgrade(config, "head")
