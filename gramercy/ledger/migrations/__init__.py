"""Versions of the ledger's schema; `ledger.schema_upgrade` runs them."""
