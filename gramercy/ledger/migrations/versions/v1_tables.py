"""Data sets, budgets, charges and marks, a table each: SQLite's schema before the journal."""

from __future__ import annotations

revision = "1"
down_revision = None


def upgrade() -> None:
    """Nothing: a ledger that has these tables was made with them, and a new one needs none."""
