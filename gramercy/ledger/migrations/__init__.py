"""Versions of the ledger's schema; `ledger.migrate` runs them."""
