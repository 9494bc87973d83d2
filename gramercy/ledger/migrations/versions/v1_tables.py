"""SQLite's schema before the journal: tables of data sets, budgets, charges and marks."""

from __future__ import annotations

revision = "1"
down_revision = None


def upgrade() -> None:
    """Do nothing: only older ledgers have these tables."""
