"""New SQLite ledgers with copies of the tables that the migrations made in the first one.

Alembic takes a tenth of the time of a small release, and few tests are about it.
"""

from __future__ import annotations

from sqlalchemy import Connection

from gramercy.ledger import schema_upgrade
from gramercy.ledger.migrations.carry_over import carry_over

migrate = schema_upgrade._upgrade
_TABLES: list[str] = []
_TRIGGERS: list[str] = []


def copy_or_migrate(db: Connection, version: str | None) -> None:
    """In place of `schema_upgrade._upgrade`: copy for every new SQLite ledger after the first."""
    new = version is None and db.dialect.name == "sqlite"
    if not (new and _TABLES):
        migrate(db, version)
    if not new:
        return
    if not _TABLES:
        for kind, sql in db.exec_driver_sql("SELECT type, sql FROM sqlite_master ORDER BY rowid"):
            (_TRIGGERS if kind == "trigger" else _TABLES).extend([sql] if sql else [])
        return
    for statement in _TABLES:
        db.exec_driver_sql(statement)
    insert = f"INSERT INTO {schema_upgrade._VERSION_TABLE} VALUES (?)"
    db.exec_driver_sql(insert, (schema_upgrade.NEWEST,))
    carry_over(db)  # the first entry
    for statement in _TRIGGERS:
        db.exec_driver_sql(statement)
