"""One journal, chained by hashes, into which the four older tables are copied."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from gramercy.ledger.migrations.carry_over import carry_over

revision = "2"
down_revision = "1"

_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")

_KINDS = (
    "kind IN ('opened', 'moved', 'registered', 'raised', 'lowered',"
    " 'reserved', 'drawn', 'sealed', 'published', 'spent', 'withdrawn')"
)
# NaN is NULL in SQLite and larger than every number in PostgreSQL: neither passes.
_CHARGE = (
    "kind <> 'reserved' OR (mu IS NOT NULL AND mu > 0 AND mu < 1e9"
    " AND delta0 IS NOT NULL AND delta0 >= 0 AND delta0 < 1"
    " AND (pure IS NULL OR (pure > 0 AND pure < 1e9)))"
)
_BUDGET = (
    "kind NOT IN ('registered', 'raised', 'lowered') OR (epsilon IS NOT NULL AND epsilon > 0 AND"
    " epsilon <= 1000 AND delta IS NOT NULL AND delta > 0 AND delta < 1)"
)
_REFUSAL = "the ledger is append-only"
_APPEND_ONLY = {
    "sqlite": [
        *(
            f"CREATE TRIGGER entries_no_{verb.lower()} BEFORE {verb} ON entries "
            f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
            for verb in ("UPDATE", "DELETE")
        ),
        # INSERT OR REPLACE fires neither of them.
        "CREATE TRIGGER entries_in_order BEFORE INSERT ON entries "  # noqa: S608  a constant
        "WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM entries) "
        f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END",
    ],
    "postgresql": [
        "CREATE FUNCTION gramercy_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}' USING ERRCODE = 'integrity_constraint_violation'; "
        "END $$",
        "CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON entries "
        "FOR EACH STATEMENT EXECUTE FUNCTION gramercy_append_only()",
    ],
}


def upgrade() -> None:
    """Create the journal and its first entry."""
    text, real = sa.String, sa.Float(53)
    op.create_table(
        "entries",
        sa.Column("seq", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("kind", text, nullable=False),
        sa.Column("dataset", text),
        sa.Column("release", text),
        sa.Column("window", text),
        sa.Column("request", text),
        sa.Column("mu", real),
        sa.Column("delta0", real),
        sa.Column("pure", real),
        sa.Column("epsilon", real),
        sa.Column("delta", real),
        sa.Column("facts", text, nullable=False),
        sa.Column("at", text, nullable=False),
        sa.Column("salt", text, nullable=False),
        sa.Column("previous", text, nullable=False),
        sa.Column("hash", text, nullable=False),
        sa.CheckConstraint("seq > 0", name="numbers"),
        sa.CheckConstraint(_KINDS, name="kinds"),
        sa.CheckConstraint(_CHARGE, name="charges"),
        sa.CheckConstraint(_BUDGET, name="budgets"),
    )
    op.create_table(
        "head",
        sa.Column("id", sa.Integer, sa.CheckConstraint("id = 1"), primary_key=True),
        sa.Column("seq", _NUMBER, nullable=False),
        sa.Column("hash", text, nullable=False),
    )
    # A release enters each state once, and a data set is registered once.
    op.create_index("once", "entries", ["dataset", "release", "kind"], unique=True)
    registered = sa.text("kind = 'registered'")
    op.create_index(
        "registered_once",
        "entries",
        ["dataset"],
        unique=True,
        sqlite_where=registered,
        postgresql_where=registered,
    )
    op.create_index("by_request", "entries", ["dataset", "request"])
    op.create_index("by_window", "entries", ["dataset", "kind", "window", "seq"])
    op.create_index("by_kind", "entries", ["dataset", "kind", "seq"])
    carry_over(op.get_bind())
    for statement in _APPEND_ONLY[op.get_context().dialect.name]:
        op.execute(statement)
