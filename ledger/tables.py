"""The ledger's tables. Rows are appended, never changed: triggers refuse everything else."""

from __future__ import annotations

from sqlalchemy import (
    DDL,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    event,
)

metadata = MetaData()

datasets = Table(
    "datasets",
    metadata,
    Column("id", String, primary_key=True),
    Column("terms", String, nullable=False),
    Column("rows", Integer, CheckConstraint("rows > 0"), nullable=False),
    Column("at", String, nullable=False),
)

budgets = Table(
    "budgets",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("dataset", ForeignKey("datasets.id"), nullable=False, index=True),
    Column("epsilon", Float, CheckConstraint("epsilon > 0 AND epsilon <= 1000"), nullable=False),
    Column("delta", Float, CheckConstraint("delta > 0 AND delta < 1"), nullable=False),
    Column("reason", String, nullable=False),
    Column("at", String, nullable=False),
)

charges = Table(
    "charges",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("dataset", ForeignKey("datasets.id"), nullable=False, index=True),
    Column("release", String, nullable=False),
    Column("version", String, nullable=False),
    Column("request", String, nullable=False),
    Column("mu", Float, CheckConstraint("mu > 0 AND mu < 1e9"), nullable=False),
    Column("delta0", Float, CheckConstraint("delta0 >= 0 AND delta0 < 1"), nullable=False),
    # NULL where the mechanism has no pure epsilon.
    Column("pure", Float, CheckConstraint("pure IS NULL OR (pure > 0 AND pure < 1e9)")),
    # Digest of the raw files' names, sizes and dates: private, and kept nowhere else.
    Column("fingerprint", String, nullable=False),
    Column("at", String, nullable=False),
    UniqueConstraint("dataset", "release"),
)

marks = Table(
    "marks",
    metadata,
    Column("dataset", String, primary_key=True),
    Column("release", String, primary_key=True),
    Column(
        "mark",
        String,
        CheckConstraint("mark IN ('drawn', 'sealed', 'published', 'spent')"),
        primary_key=True,
    ),
    Column("detail", String, nullable=False),
    Column("at", String, nullable=False),
)

for _table in metadata.sorted_tables:
    for _verb in ("UPDATE", "DELETE"):
        event.listen(
            _table,
            "after_create",
            DDL(  # type: ignore[no-untyped-call]
                f"CREATE TRIGGER {_table.name}_no_{_verb.lower()} BEFORE {_verb} ON {_table.name} "
                "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
            ).execute_if(dialect="sqlite"),
        )
