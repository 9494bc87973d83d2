"""Queries that readers, writers and checks share, each on a transaction that is already open."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pydantic import ValidationError
from sqlalchemy import ColumnElement, Connection, select

from gramercy.ledger.database import described
from gramercy.ledger.database_tables import entries, head
from gramercy.ledger.entry import BUDGETS, OF_LEDGERS, OF_RELEASES, Entry
from gramercy.ledger.journal import read
from gramercy.ledger.statement import Charge, Raise, Statement
from gramercy.mechanisms.accounting.composition import Total
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.errors import RequestError, UntrustedLedger

Conditions = tuple[ColumnElement[bool], ...]

_OF_LEDGER = entries.c.dataset.is_(None) & entries.c.kind.in_(OF_LEDGERS)


def charged_to(dataset: str) -> Conditions:
    """Conditions that choose a data set's charges."""
    return entries.c.dataset == dataset, entries.c.kind == "reserved"


def budgets_of(dataset: str) -> Conditions:
    """Conditions that choose the entries of a data set's budgets, the registered one first."""
    return entries.c.dataset == dataset, entries.c.kind.in_(BUDGETS)


def head_of(db: Connection) -> Anchor:
    """The last entry, as the ledger's head names it."""
    last = db.execute(select(head.c.seq, head.c.hash).where(head.c.id == 1)).first()
    if last is None:
        raise _headless(db)
    name = _of_ledger(db, first=True).says("ledger", str)
    with contextlib.suppress(ValidationError):
        return Anchor(ledger=name, seq=last.seq, hash=last.hash)
    raise _headless(db)


def stated_place(db: Connection) -> str:
    """The place of the ledger, as its last entry about itself states it."""
    return _of_ledger(db, last=True).says("place", str)


def last_move(db: Connection) -> Entry:
    """The last entry by which somebody opened or moved the ledger; an upgrade is not one."""
    moves = [entry for entry in read(db, _OF_LEDGER) if not entry.states("upgraded")]
    if not moves:
        raise _headless(db)
    return moves[-1]


def is_registered(db: Connection, dataset: str) -> bool:
    """Whether a data set has been charged before: its first charge registers it."""
    return bool(read(db, entries.c.dataset == dataset, entries.c.kind == "registered"))


def raises(db: Connection, dataset: str) -> tuple[Raise, ...]:
    """Every budget that a data set has had, the registered one first.

    Raises
    ------
    RequestError
        If it is not registered.
    """
    found = read(db, *budgets_of(dataset))
    if not found:
        raise RequestError(
            f"No data set '{dataset}' in {described(db.engine)}.",
            "Release from its contract first.",
        )
    return tuple(Raise(each.budget, each.says("reason", str), each.at) for each in found)


def statement(db: Connection, dataset: str, window: str) -> Statement:
    """Budget and total of a registered data set; raises as `raises` does."""
    budget = raises(db, dataset)[-1].budget
    return Statement(budget, total(db, dataset, window), window)


def total(db: Connection, dataset: str, window: str, *where: ColumnElement[bool]) -> Total:
    """The sum of a data set's charges, or of those that other conditions choose."""
    found = read(db, *charged_to(dataset), entries.c.window == window, *where, last=True)
    return found[0].total if found else Total()


def turns(db: Connection, dataset: str) -> int:
    """How many charges a data set has."""
    found = read(db, *charged_to(dataset), last=True)
    return found[0].says("turn", int) if found else 0


def charges(db: Connection, dataset: str, *where: ColumnElement[bool]) -> Iterator[Charge]:
    """Charges with all that became of them, oldest first.

    Where conditions are given, those of the releases with an entry that they choose.
    """
    of_releases = (entries.c.dataset == dataset, entries.c.kind.in_(OF_RELEASES))
    asked = select(entries.c.release).where(*of_releases, *where) if where else None
    chosen = () if asked is None else (entries.c.release.in_(asked),)
    known: dict[str, list[Entry]] = {}
    for entry in read(db, *of_releases, *chosen):
        known.setdefault(str(entry.release), []).append(entry)
    return map(Charge.of, known.values())


def find(db: Connection, dataset: str, request: str) -> Charge | None:
    """The charge that answers this very request: the published one, else the last."""
    found = list(charges(db, dataset, entries.c.request == request))
    return next((c for c in found if c.answers), found[-1] if found else None)


def _of_ledger(db: Connection, *, first: bool = False, last: bool = False) -> Entry:
    """The first or the last entry about the ledger itself: its name, or where it is."""
    for entry in read(db, _OF_LEDGER, first=first, last=last):
        return entry
    raise _headless(db)


def _headless(db: Connection) -> UntrustedLedger:
    return UntrustedLedger(
        f"{described(db.engine)}: the entry that opened it, or its head, is gone or was changed.",
        "Restore the ledger from a copy.",
    )
