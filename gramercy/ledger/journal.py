"""The journal: open it, append entries at its end, one at a time, and read them in order."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator
from dataclasses import asdict, fields, replace

from sqlalchemy import ColumnElement, Connection, Engine, insert, select, text, update

from gramercy.ledger import new_entries
from gramercy.ledger.database import WRITES
from gramercy.ledger.database_tables import create_tables, entries, has_tables, head
from gramercy.ledger.entry import Entry
from gramercy.ledger.location import location_of
from gramercy.schemas import families

_COLUMNS = select(*(entries.c[each.name] for each in fields(Entry)))
PARTS = {"yield_per": 2000}  # rows that are fetched at a time, so that memory stays small
_LOCK = 7_261_993  # of PostgreSQL, while tables are created: an arbitrary number


def open_journal(engine: Engine) -> None:
    """Create the tables and the first entry, once, however many processes try at the same time.

    Raises
    ------
    LedgerError
        If the database has a ledger of another schema.
    """
    with engine.begin() as db:
        if has_tables(db):
            return
    with engine.connect().execution_options(**WRITES) as db, db.begin():
        if db.dialect.name == "postgresql":
            db.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        if not has_tables(db):
            create_tables(db)
            append(db, new_entries.opened(location_of(db)))


def lock_head(db: Connection) -> tuple[int, str]:
    """Wait for the write lock; returns number and hash of the last entry."""
    query = select(head.c.seq, head.c.hash).where(head.c.id == 1).with_for_update()
    seq, digest = db.execute(query).one()
    return int(seq), str(digest)


def append(db: Connection, entry: Entry) -> Entry:
    """Append an entry, chained to the last one; returns it as it was written.

    Raises
    ------
    LedgerError
        If another writer has appended an entry meanwhile.
    """
    last, previous = lock_head(db)
    written = replace(
        entry, seq=last + 1, previous=previous, salt=uuid.uuid4().hex, at=entry.at or _now()
    )
    written = replace(written, hash=written.digest())
    db.execute(insert(entries).values(asdict(written)))
    unchanged = (head.c.id == 1) & (head.c.seq == last)
    updated = db.execute(update(head).where(unchanged).values(seq=written.seq, hash=written.hash))
    if updated.rowcount != 1:
        raise families.LEDGER(
            "The ledger's database does not make writers wait for each other.",
            "Keep the ledger on SQLite or PostgreSQL, with the tables as Gramercy created them.",
        )
    return written


def read(
    db: Connection, *where: ColumnElement[bool], last: bool = False, first: bool = False
) -> list[Entry]:
    """Entries in order; with `last` or `first`, at most that one."""
    query = _COLUMNS.where(*where).order_by(entries.c.seq.desc() if last else entries.c.seq)
    rows = db.execute(query.limit(1) if last or first else query)
    return [Entry(*row) for row in rows.all()]


def read_all(db: Connection) -> Iterator[Entry]:
    """All entries in order, fetched in parts, so that memory stays small."""
    query = _COLUMNS.order_by(entries.c.seq).execution_options(**PARTS)
    for rows in db.execute(query).partitions():
        yield from (Entry(*row) for row in rows)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
