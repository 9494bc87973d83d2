"""Open a journal, and copy the four tables of the first schema into it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, insert, inspect, text

from gramercy.ledger import new_entries
from gramercy.ledger.database_tables import head
from gramercy.ledger.entry import FIRST_PREVIOUS, Entry
from gramercy.ledger.journal import append
from gramercy.ledger.location import location_of
from gramercy.mechanisms.accounting.composition import Total
from gramercy.schemas.model import canonical_json

_TABLES = ("marks", "charges", "budgets", "datasets")


def carry_over(db: Connection) -> None:
    """Open the journal; copy the older tables into it, if there are any, and drop them."""
    db.execute(insert(head).values(id=1, seq=0, hash=FIRST_PREVIOUS))
    append(db, new_entries.opened(location_of(db)))
    if "datasets" not in inspect(db).get_table_names():
        return
    for entry in _older_entries(db):
        append(db, entry)
    # A move, because the archive has no anchor of this journal yet.
    append(db, new_entries.moved(location_of(db), "migrated"))
    for table in _TABLES:
        db.execute(text(f"DROP TABLE {table}"))


def _older_entries(db: Connection) -> Iterator[Entry]:
    for row in db.execute(text("SELECT * FROM datasets ORDER BY at, id")).all():
        facts = {"terms": row.terms, "rows": row.rows, "per": "lifetime", "reason": "registered"}
        first, *raised = _rows(db, "budgets", row.id)
        registered = Entry("registered", row.id, facts=canonical_json(facts))
        yield replace(registered, epsilon=first.epsilon, delta=first.delta, at=first.at)
        for each in raised:
            reason = canonical_json({"per": "lifetime", "reason": each.reason, "rows": row.rows})
            budget = {"epsilon": each.epsilon, "delta": each.delta}
            yield Entry("raised", row.id, facts=reason, at=each.at, **budget)
        yield from _charges(db, row.id)


def _charges(db: Connection, dataset: str) -> Iterator[Entry]:
    total = Total()
    marks = text("SELECT * FROM marks WHERE dataset = :d AND release = :r ORDER BY at, rowid")
    for number, row in enumerate(_rows(db, "charges", dataset), 1):
        entry = Entry(
            "reserved",
            dataset,
            row.release,
            window="",
            request=row.request,
            mu=row.mu,
            delta0=row.delta0,
            pure=row.pure,
            at=row.at,
        )
        total = total.plus(entry.guarantee)
        facts = {"version": row.version, "fingerprint": row.fingerprint, "turn": number}
        yield replace(entry, facts=canonical_json(facts | {"total": str(total)}))
        for mark in db.execute(marks, {"d": dataset, "r": row.release}).all():
            details = {"sealed": {"sha256": mark.detail}, "spent": {"reason": mark.detail}}
            detail = canonical_json(details.get(mark.mark, {}))
            yield Entry(mark.mark, dataset, row.release, facts=detail, at=mark.at)


def _rows(db: Connection, table: str, dataset: str) -> list[Row[Any]]:
    # The table's name is a constant of this module.
    query = text(f"SELECT * FROM {table} WHERE dataset = :d ORDER BY seq")  # noqa: S608
    return list(db.execute(query, {"d": dataset}).all())
