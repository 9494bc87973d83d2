"""Run migrations on the connection and in the transaction of `ledger.schema_upgrade`."""

from __future__ import annotations

from alembic import context

from gramercy.ledger.database_tables import metadata

_attributes = context.config.attributes
context.configure(
    connection=_attributes["connection"],
    target_metadata=metadata,
    version_table=_attributes["version_table"],
)
with context.begin_transaction():
    context.run_migrations()
