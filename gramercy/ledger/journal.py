"""The journal itself: appended to at its end, one entry at a time, and read in order."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator
from dataclasses import asdict, fields, replace

from sqlalchemy import ColumnElement, Connection, insert, select, update

from gramercy.ledger.database_tables import entries, head
from gramercy.ledger.entry import Entry
from gramercy.schemas.errors import LedgerError

_CHOSEN = select(*(entries.c[each.name] for each in fields(Entry)))
_AT_ONCE = 10_000


def lock(db: Connection) -> tuple[int, str]:
    """Wait for the turn to write; returns number and hash of the last entry."""
    found = db.execute(select(head.c.seq, head.c.hash).where(head.c.id == 1).with_for_update())
    seq, digest = found.one()
    return int(seq), str(digest)


def append(db: Connection, entry: Entry) -> Entry:
    """Add an entry, chained to the last one; returns it as it was entered."""
    last, previous = lock(db)
    made = replace(
        entry, seq=last + 1, previous=previous, salt=uuid.uuid4().hex, at=entry.at or _now()
    )
    made = replace(made, hash=made.digest())
    db.execute(insert(entries).values(asdict(made)))
    here = (head.c.id == 1) & (head.c.seq == last)
    moved = db.execute(update(head).where(here).values(seq=made.seq, hash=made.hash))
    if moved.rowcount != 1:  # whoever made this database read what others had not written yet
        raise LedgerError(
            "The ledger's database does not let writers wait for each other.",
            "Keep it on SQLite or PostgreSQL as it made it itself.",
        )
    return made


def read(
    db: Connection, *where: ColumnElement[bool], last: bool = False, first: bool = False
) -> list[Entry]:
    """Entries in order; or the last one, or the first one, alone."""
    chosen = _CHOSEN.where(*where).order_by(entries.c.seq.desc() if last else entries.c.seq)
    rows = db.execute(chosen.limit(1) if last or first else chosen)
    return [Entry(*row) for row in rows]


def walk(db: Connection) -> Iterator[Entry]:
    """The whole journal in order, however long."""
    chosen = _CHOSEN.order_by(entries.c.seq).execution_options(yield_per=_AT_ONCE)
    for rows in db.execute(chosen).partitions():
        yield from (Entry(*row) for row in rows)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
