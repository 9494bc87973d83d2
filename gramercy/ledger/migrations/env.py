"""Run migrations on the connection, and within the transaction, that `ledger.migrate` holds."""

from __future__ import annotations

from alembic import context

from gramercy.ledger.database_tables import metadata

_given = context.config.attributes
context.configure(
    connection=_given["connection"],
    target_metadata=metadata,
    version_table=_given["version_table"],
)
with context.begin_transaction():
    context.run_migrations()
