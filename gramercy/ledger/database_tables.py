"""The ledger's tables with their constraints, and the number of their schema."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, Column, Index, Integer, String, Table

from gramercy.ledger.entry import FIRST_PREVIOUS
from gramercy.schemas import families

SCHEMA = 1

metadata = sa.MetaData()

_NUMBER = sa.BigInteger().with_variant(Integer, "sqlite")
_REAL = sa.Float(53)

_KINDS = (
    "kind IN ('opened', 'moved', 'registered', 'raised', 'lowered', 'reserved', 'drawn', 'sealed',"
    " 'published', 'spent', 'withdrawn', 'derived')"
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

# The append-only log; see `ledger.entry.Entry`.
entries = Table(
    "entries",
    metadata,
    Column("seq", _NUMBER, primary_key=True, autoincrement=False),
    Column("kind", String, nullable=False),
    Column("dataset", String),
    Column("release", String),
    Column("window", String),
    Column("request", String),
    Column("mu", _REAL),
    Column("delta0", _REAL),
    Column("pure", _REAL),
    Column("epsilon", _REAL),
    Column("delta", _REAL),
    Column("facts", String, nullable=False),
    Column("at", String, nullable=False),
    Column("salt", String, nullable=False),
    Column("previous", String, nullable=False),
    Column("hash", String, nullable=False),
    CheckConstraint("seq > 0", name="numbers"),
    CheckConstraint(_KINDS, name="kinds"),
    CheckConstraint(_CHARGE, name="charges"),
    CheckConstraint(_BUDGET, name="budgets"),
    Index("by_request", "dataset", "request"),
    Index("by_window", "dataset", "kind", "window", "seq"),
    Index("by_kind", "dataset", "kind", "seq"),
    Index("by_release", "dataset", "release", "seq"),
)


def _unique(name: str, columns: tuple[str, ...], condition: str) -> None:
    where = sa.text(condition)
    keys = [entries.c[column] for column in columns]
    Index(name, *keys, unique=True, sqlite_where=where, postgresql_where=where)


# A release enters each state once, and a data set is registered once.
_unique("once", ("dataset", "release", "kind"), "kind <> 'derived'")
_unique("registered_once", ("dataset",), "kind = 'registered'")

# Number and hash of the last entry: the only row that changes. Writers lock it.
head = Table(
    "head",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
    Column("seq", _NUMBER, nullable=False),
    Column("hash", String, nullable=False),
)

# The only row of this table. Other programs may use the database, too.
_schema = Table("gramercy_schema", metadata, Column("number", Integer, nullable=False))

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


def create_tables(db: sa.Connection) -> None:
    """Create the tables in an empty database, with one row in each of the two small ones."""
    metadata.create_all(db, checkfirst=False)
    for statement in _APPEND_ONLY[db.dialect.name]:
        db.exec_driver_sql(statement)
    db.execute(sa.insert(_schema).values(number=SCHEMA))
    db.execute(sa.insert(head).values(id=1, seq=0, hash=FIRST_PREVIOUS))


def has_tables(db: sa.Connection) -> bool:
    """Whether the tables exist.

    Raises
    ------
    LedgerError
        If they are of another schema.
    """
    tables = sa.inspect(db).get_table_names()
    if not {entries.name, _schema.name} & {*tables}:
        return False
    stated = db.scalar(sa.select(_schema.c.number)) if _schema.name in tables else None
    if stated != SCHEMA:
        raise families.LEDGER(
            "The ledger has schema {schema:.20}, but this version of Gramercy knows schema "
            "{known} only.",
            "Use the version of Gramercy that created the ledger.",
            schema=f"{stated}",
            known=SCHEMA,
        )
    return True
