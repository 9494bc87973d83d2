"""Create the ledger's tables, or upgrade those of an older version."""

from __future__ import annotations

import logging

from sqlalchemy import Connection, Engine, inspect, text

from gramercy.ledger.database import WRITES
from gramercy.schemas.problems.ledger import schema_too_new

NEWEST = "4"  # the last revision of ledger/migrations/versions
_VERSION_TABLE = "gramercy_version"  # not Alembic's default: other programs may use the database
_LOCK = 7_261_993  # of PostgreSQL, during an upgrade: an arbitrary number that never changes


def upgrade_schema(engine: Engine) -> None:
    """Create or upgrade the tables, once, however many processes try at the same time.

    Raises
    ------
    LedgerError
        If a newer version of Gramercy has upgraded them.
    """
    with engine.begin() as db:
        if _version(db) == NEWEST:
            return
    with engine.connect().execution_options(**WRITES) as db, db.begin():
        if db.dialect.name == "postgresql":
            db.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        version = _version(db)
        if version == NEWEST:
            return
        if version is not None and (not version.isdigit() or int(version) > int(NEWEST)):
            raise schema_too_new(version, NEWEST)
        _upgrade(db, version)


def _version(db: Connection) -> str | None:
    """Version of the tables; None for an empty database. The first version did not record it."""
    tables = inspect(db).get_table_names()
    if _VERSION_TABLE in tables:
        return str(db.scalar(text(f"SELECT version_num FROM {_VERSION_TABLE}")))  # noqa: S608  a constant
    return "1" if "datasets" in tables else None


def _upgrade(db: Connection, version: str | None) -> None:
    from alembic import command  # takes half a second, and is rarely needed
    from alembic.config import Config

    logging.getLogger("alembic").setLevel(logging.WARNING)
    config = Config(attributes={"connection": db, "version_table": _VERSION_TABLE})
    config.set_main_option("script_location", "gramercy.ledger:migrations")
    config.set_main_option("path_separator", "os")
    if version == "1" and _VERSION_TABLE not in inspect(db).get_table_names():
        command.stamp(config, "1")
    command.upgrade(config, "head")
