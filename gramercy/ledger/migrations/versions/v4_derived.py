"""Estimates and reports have entries of their own; from here on, anchors are signed.

A process of an earlier version that opened the ledger before the upgrade can still charge: its
charges follow the same rule.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from gramercy.ledger import new_entries
from gramercy.ledger.journal import append
from gramercy.ledger.queries import anchors_signed_from, recorded_location

revision = "4"
down_revision = "3"

_KINDS = (
    "kind IN ('opened', 'moved', 'registered', 'raised', 'lowered',"
    " 'reserved', 'drawn', 'sealed', 'published', 'spent', 'withdrawn', 'derived')"
)


def upgrade() -> None:
    """Allow the new kind, several times for one release; and say that anchors are signed."""
    if op.get_context().dialect.name == "postgresql":
        op.drop_constraint("kinds", "entries")
        op.create_check_constraint("kinds", "entries", _KINDS)
    else:
        _recreate_with_kinds()
    op.drop_index("once", "entries")
    is_state = sa.text("kind <> 'derived'")
    op.create_index(
        "once",
        "entries",
        ["dataset", "release", "kind"],
        unique=True,
        sqlite_where=is_state,
        postgresql_where=is_state,
    )
    op.create_index("by_release", "entries", ["dataset", "release", "seq"])
    db = op.get_bind()
    if anchors_signed_from(db) is None:
        append(db, new_entries.anchors_signed(recorded_location(db)))


def _recreate_with_kinds() -> None:
    """SQLite cannot change a constraint: copy the table, with its indexes and triggers."""
    db = op.get_bind()
    made = sa.text("SELECT type, sql FROM sqlite_master WHERE tbl_name = 'entries' AND sql <> ''")
    statements: dict[str, list[str]] = {kind: [] for kind in ("table", "index", "trigger")}
    for kind, statement in db.execute(made).all():
        statements[kind].append(statement)
    (table,) = statements["table"]
    before, after = table.split("'withdrawn'")
    op.execute("ALTER TABLE entries RENAME TO entries_before")
    for name in ("once", "registered_once", "by_request", "by_window", "by_kind"):
        op.execute(f"DROP INDEX {name}")
    op.execute(f"{before}'withdrawn', 'derived'{after}")
    op.execute("INSERT INTO entries SELECT * FROM entries_before ORDER BY seq")
    op.execute("DROP TABLE entries_before")
    for statement in [*statements["index"], *statements["trigger"]]:
        op.execute(statement)
