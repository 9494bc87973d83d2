"""The ledger's tables for queries; ledger/migrations creates them, with their constraints."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Integer, MetaData, String, Table

metadata = MetaData()

NUMBER = BigInteger().with_variant(Integer, "sqlite")
REAL = Float(53)

# The append-only log; see `ledger.entry.Entry`.
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

# Number and hash of the last entry: the only row that changes. Writers lock it.
head = Table(
    "head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("seq", NUMBER, nullable=False),
    Column("hash", String, nullable=False),
)
