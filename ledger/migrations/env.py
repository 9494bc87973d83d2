"""Run migrations on the connection, and within the transaction, that `ledger.migrate` holds."""

from __future__ import annotations

from alembic import context

from ledger.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
