"""The journal: open it, append entries at its end, one at a time, and query them.

Queries are within a transaction that is already open.
"""

from __future__ import annotations

import contextlib
import datetime
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields, replace
from typing import TypeVar

from pydantic import ValidationError
from sqlalchemy import ColumnElement, Connection, Engine, insert, select, text, update

from gramercy.common.similar_names import most_similar_first
from gramercy.ledger.database import (
    WRITES,
    create_tables,
    display_location,
    entries,
    has_tables,
    head,
    location_of,
)
from gramercy.ledger.entry import (
    BUDGET_KINDS,
    DERIVED,
    LEDGER_KINDS,
    RELEASE_KINDS,
    Entry,
)
from gramercy.ledger.series import ChargedSeries
from gramercy.ledger.statement import BudgetChange, Charge, Statement, current
from gramercy.mechanisms.accounting.composition import Total
from gramercy.schemas import families
from gramercy.schemas.errors import UntrustedLedger
from gramercy.schemas.ledger_history import Anchor, ChargeState

Stated = TypeVar("Stated", Anchor, Entry)

_COLUMNS = select(*(entries.c[each.name] for each in fields(Entry)))
PARTS = {"yield_per": 2000}  # rows that are fetched at a time, so that memory stays small
_LOCK = 7_261_993  # of PostgreSQL, while tables are created: an arbitrary number


def open_journal(engine: Engine, copied: Sequence[Entry] = ()) -> None:
    """Create the tables and the first entry, once, however many processes try at the same time.

    Parameters
    ----------
    copied
        The entries of another copy of the ledger, instead of a first entry.
    """
    with engine.begin() as db:
        if has_tables(db):
            return
    with engine.connect().execution_options(**WRITES) as db, db.begin():
        if db.dialect.name == "postgresql":
            db.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        if not has_tables(db):
            create_tables(db)
            if not copied:
                append(db, Entry.opened(location_of(db)))
                return
            append_copies(db, copied)
            if recorded_location(db) == location_of(db):
                raise families.UNTRUSTED(
                    "{ledger}: a ledger that is restored to its own place would look as if nothing "
                    "was charged after the backup.",
                    "Name a database of another name in GRAMERCY_LEDGER_URL.",
                    ledger=display_location(db.engine),
                )


def lock_head(db: Connection) -> tuple[int, str]:
    """Wait for the write lock; returns number and hash of the last entry."""
    query = select(head.c.seq, head.c.hash).where(head.c.id == 1).with_for_update()
    seq, digest = db.execute(query).one()
    return int(seq), str(digest)


def append(db: Connection, entry: Entry) -> Entry:
    """Append an entry, chained to the last one; returns it as it was written."""
    last, previous = lock_head(db)
    written = replace(
        entry,
        seq=last + 1,
        previous=previous,
        salt=uuid.uuid4().hex,
        at=entry.at or datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )
    written = replace(written, hash=written.digest())
    _insert(db, written)
    return written


def append_copies(db: Connection, copies: Sequence[Entry]) -> None:
    """Append the next entries of another copy of this ledger, as they are."""
    check_chain(*lock_head(db), copies)
    _insert(db, *copies)


def check_chain(last: int, previous: str, copies: Iterable[Entry]) -> None:
    """Refuse entries that do not follow each other, the first one after an entry."""
    for entry in copies:
        if (entry.seq, entry.previous, entry.hash) != (last + 1, previous, entry.digest()):
            raise families.UNTRUSTED(
                "Entry {entry} of the copy does not follow the entry before it.",
                "Use another copy of the ledger.",
                entry=entry.seq,
            )
        last, previous = entry.seq, entry.hash


def _insert(db: Connection, *written: Entry) -> None:
    """Insert entries after the last one, and make the last of them the head."""
    if not written:
        return
    db.execute(insert(entries), [*map(asdict, written)])
    unchanged = (head.c.id == 1) & (head.c.seq == written[0].seq - 1)
    last = {"seq": written[-1].seq, "hash": written[-1].hash}
    updated = db.execute(update(head).where(unchanged).values(last))
    if updated.rowcount != 1:
        raise families.LEDGER(
            "The ledger's database does not make writers wait for each other.",
            "Keep the ledger on SQLite or PostgreSQL, with the tables as Gramercy created them.",
        )


def read(
    db: Connection, *where: ColumnElement[bool], last: bool = False, first: bool = False
) -> list[Entry]:
    """Entries in order; with `last` or `first`, at most that one."""
    query = _COLUMNS.where(*where).order_by(entries.c.seq.desc() if last else entries.c.seq)
    rows = db.execute(query.limit(1) if last or first else query)
    return [Entry(*row) for row in rows.all()]


def read_all(db: Connection, *where: ColumnElement[bool]) -> Iterator[Entry]:
    """All entries in order, or some, fetched in parts, so that memory stays small."""
    query = _COLUMNS.where(*where).order_by(entries.c.seq).execution_options(**PARTS)
    for rows in db.execute(query).partitions():
        yield from (Entry(*row) for row in rows)


Conditions = tuple[ColumnElement[bool], ...]

_ABOUT_LEDGER = entries.c.dataset.is_(None) & entries.c.kind.in_(LEDGER_KINDS)


def is_charge(dataset: str) -> Conditions:
    """Conditions that select a data set's charges."""
    return entries.c.dataset == dataset, entries.c.kind == ChargeState.RESERVED.value


def is_charged_alone() -> Conditions:
    """Conditions that select charges, without the steps that the charge of a series includes."""
    included = entries.c.facts.contains('"included":"') & ~entries.c.facts.contains('"included":""')
    return entries.c.kind == ChargeState.RESERVED.value, ~included


def has_budget(dataset: str) -> Conditions:
    """Conditions that select the entries of a data set's budgets, the registered one first."""
    return entries.c.dataset == dataset, entries.c.kind.in_(BUDGET_KINDS)


def head_anchor(db: Connection) -> Anchor:
    """The last entry, as the ledger's head names it."""
    last = db.execute(select(head.c.seq, head.c.hash).where(head.c.id == 1)).first()
    if last is None:
        raise _head_missing(db)
    ledger = _entry_about_ledger(db, first=True).fact("ledger", str)
    with contextlib.suppress(ValidationError):
        return Anchor(ledger=ledger, seq=last.seq, hash=last.hash)
    raise _head_missing(db)


def foreign(db: Connection, those: Sequence[Stated]) -> list[Stated]:
    """Those of the anchors or entries, the oldest first, that are not of this ledger."""
    if not those:
        return []
    query = select(entries.c.seq, entries.c.hash).where(entries.c.seq >= those[0].seq)
    own = {(int(seq), digest) for seq, digest in db.execute(query)}
    return [each for each in those if (each.seq, each.hash) not in own]


def recorded_location(db: Connection) -> str:
    """The location of the ledger, as its last entry about itself states it."""
    return last_move(db).fact("place", str)


def last_move(db: Connection) -> Entry:
    """The last entry by which the ledger was opened or moved."""
    return _entry_about_ledger(db, last=True)


def derived(db: Connection, dataset: str, release: str) -> dict[tuple[str, str], str]:
    """The digests of a release's estimates and reports, by (kind, id); the last ones recorded."""
    of_release = (entries.c.dataset == dataset, entries.c.release == release)
    return {
        (each.fact("artifact", str), each.fact("name", str)): each.fact("sha256", str)
        for each in read(db, *of_release, entries.c.kind == DERIVED)
    }


def is_registered(db: Connection, dataset: str) -> bool:
    """Whether a data set was charged before: its first charge registers it."""
    return bool(read(db, entries.c.dataset == dataset, entries.c.kind == "registered"))


def registered_datasets(db: Connection) -> list[str]:
    """Ids of the registered data sets."""
    registered = select(entries.c.dataset).where(entries.c.kind == "registered")
    return sorted(db.scalars(registered), key=str)


def budget_history(db: Connection, dataset: str) -> tuple[BudgetChange, ...]:
    """All budgets of a data set, the registered one first."""
    changes = read(db, *has_budget(dataset))
    if not changes:
        known = most_similar_first(dataset, registered_datasets(db))
        raise families.CHANGE(
            "Data set '{dataset}' is not registered in {ledger}.",
            "Its first release registers it. Registered data sets, most similar first: {known}.",
            dataset=dataset,
            ledger=display_location(db.engine),
            known=known,
        )
    return tuple(BudgetChange(each.budget, each.fact("reason", str), each.at) for each in changes)


def statement(db: Connection, dataset: str, window: str) -> Statement:
    """Budget and total of a registered data set; raises as `budget_history` does."""
    budget = budget_history(db, dataset)[-1].budget
    return Statement(budget, total(db, dataset, window), window)


def total(db: Connection, dataset: str, window: str, *where: ColumnElement[bool]) -> Total:
    """Sum of a data set's charges, or of the charges that further conditions select."""
    last = read(db, *is_charge(dataset), entries.c.window == window, *where, last=True)
    return last[0].total if last else Total()


def charge_count(db: Connection, dataset: str) -> int:
    """Number of charges of a data set."""
    last = read(db, *is_charge(dataset), last=True)
    return last[0].fact("turn", int) if last else 0


def releases(db: Connection, dataset: str) -> list[str]:
    """Ids of all releases of a data set that were charged, oldest first."""
    query = select(entries.c.release).where(*is_charge(dataset)).order_by(entries.c.seq)
    return [str(each) for each in db.scalars(query)]


def charges(db: Connection, dataset: str, *where: ColumnElement[bool]) -> Iterator[Charge]:
    """Charges with their present states, oldest first.

    With conditions, only those of releases with an entry that the conditions select.
    """
    of_releases = (entries.c.dataset == dataset, entries.c.kind.in_(RELEASE_KINDS))
    matching = select(entries.c.release).where(*of_releases, *where) if where else None
    selected = () if matching is None else (entries.c.release.in_(matching),)
    by_release: dict[str, list[Entry]] = {}
    for entry in read(db, *of_releases, *selected):
        by_release.setdefault(str(entry.release), []).append(entry)
    return map(Charge.of, by_release.values())


def state(db: Connection, dataset: str, release: str) -> ChargeState | None:
    """The present state of a release; None if it was never charged."""
    of_release = (entries.c.dataset == dataset, entries.c.release == release)
    last = read(db, *of_release, entries.c.kind.in_(RELEASE_KINDS), last=True)
    return ChargeState(last[0].kind) if last else None


def find_charge(db: Connection, dataset: str, request: str) -> Charge | None:
    """The charge of a request: the published one if there is one, otherwise the last."""
    return current(list(charges(db, dataset, entries.c.request == request)))


def series(db: Connection, dataset: str, window: str, key: str) -> ChargedSeries:
    """The charges of all steps of a series in one window; `key`: its digest."""
    states = (entries.c.window == window, entries.c.facts.contains(key, autoescape=True))
    found = charges(db, dataset, entries.c.kind == ChargeState.RESERVED.value, *states)
    return ChargedSeries(tuple(each for each in found if each.series and each.series.series == key))


def _entry_about_ledger(db: Connection, *, first: bool = False, last: bool = False) -> Entry:
    """The first or the last entry about the ledger itself: its id, or its location."""
    for entry in read(db, _ABOUT_LEDGER, first=first, last=last):
        return entry
    raise _head_missing(db)


def _head_missing(db: Connection) -> UntrustedLedger:
    return families.UNTRUSTED(
        "{ledger}: the first entry or the head of the ledger is missing or was changed.",
        "Restore the ledger from a copy.",
        ledger=display_location(db.engine),
    )
