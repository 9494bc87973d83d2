"""The ledger's tables, as queries see them; ledger/migrations makes them, and constrains them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Integer, MetaData, String, Table

metadata = MetaData()

NUMBER = BigInteger().with_variant(Integer, "sqlite")
REAL = Float(53)

# What happened, in order; see `ledger.entry.Entry`. Appended to, never changed.
entries = Table(
    "entries",
    metadata,
    Column("seq", NUMBER, primary_key=True, autoincrement=False),
    Column("kind", String, nullable=False),
    Column("dataset", String),
    Column("release", String),
    Column("window", String),
    Column("request", String),
    Column("mu", REAL),
    Column("delta0", REAL),
    Column("pure", REAL),
    Column("epsilon", REAL),
    Column("delta", REAL),
    Column("facts", String, nullable=False),
    Column("at", String, nullable=False),
    Column("salt", String, nullable=False),
    Column("previous", String, nullable=False),
    Column("hash", String, nullable=False),
)

# The place of the last entry: the one row that changes. Writers wait for each other here.
head = Table(
    "head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("seq", NUMBER, nullable=False),
    Column("hash", String, nullable=False),
)
