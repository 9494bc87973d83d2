"""Changed, removed, moved or truncated entries of a large ledger are detected.

The attacker owns the database, and removes its triggers and constraints first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from gramercy.ledger import Ledger
from gramercy.ledger.database import entries, head
from gramercy.ledger.entry import Entry
from gramercy.ledger.integrity import find_inconsistencies
from gramercy.ledger.journal import head_anchor, read, read_all
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas import families
from gramercy.schemas.ledger_history import Anchor
from gramercy.schemas.model import canonical_json
from gramercy.schemas.problem import Family
from tests.support.factories import at_scale
from tests.support.ledgers import TENTH, charge, contract, remove_triggers
from tests.support.problems import like

MANY = at_scale(600, 100_000)  # every check is of one entry, or of neighbouring ones
SMALL = Guarantee(1e-3)


def more_entries(ledger: Ledger, count: int) -> Iterator[Entry]:
    """Entries as charges would append them, without waiting for the disk."""
    *_, last = ledger.entries()
    total, turn = last.total, last.fact("turn", int)
    state = "reserved"
    for _ in range(count):
        state = {"reserved": "drawn", "drawn": "spent", "spent": "reserved"}[state]
        facts = '{"reason":"interrupted"}' if state == "spent" else "{}"
        entry = Entry(state, "toy", f"v-r{turn}", facts=facts)
        if state == "reserved":
            total, turn = total.plus(SMALL), turn + 1
            facts_of_charge = {
                "version": "v",
                "turn": turn,
                "total": str(total),
                "fingerprint": "",
                "source": "",
            }
            charged = Entry(state, "toy", f"v-r{turn}", "", f"request {turn}", SMALL.mu, 0.0)
            entry = replace(charged, facts=canonical_json(facts_of_charge))
        chained = replace(entry, seq=last.seq + 1, at="2026", salt="0" * 32, previous=last.hash)
        last = replace(chained, hash=chained.digest())
        yield last


def fill(ledger: Ledger) -> None:
    charge(ledger, "v", TENTH, contract(budget={"epsilon": 900.0, "delta": 1e-5}))
    rows = [asdict(entry) for entry in more_entries(ledger, MANY)]
    with ledger._writing() as db:
        db.execute(sa.insert(entries), rows)
        db.execute(sa.update(head).values(seq=rows[-1]["seq"], hash=rows[-1]["hash"]))


def edit(db: sa.Connection, seq: int) -> None:
    db.execute(sa.update(entries).where(entries.c.seq == seq).values(at="2025"))


def cheapen(db: sa.Connection, seq: int) -> None:
    """Lower the cost of the nearest charge, and recompute its hash."""
    seq += (-seq) % 3  # of the three entries of a charge, the first
    (entry,) = read(db, entries.c.seq == seq)
    assert entry.kind == "reserved"
    cheaper = replace(entry, mu=1e-9)
    values = {"mu": 1e-9, "hash": cheaper.digest()}
    db.execute(sa.update(entries).where(entries.c.seq == seq).values(**values))


def delete(db: sa.Connection, seq: int) -> None:
    db.execute(sa.delete(entries).where(entries.c.seq == seq))


def swap(db: sa.Connection, seq: int) -> None:
    for old, new in ((seq, 10**9), (seq + 1, seq), (10**9, seq + 1)):
        db.execute(sa.update(entries).where(entries.c.seq == old).values(seq=new))


TAMPERINGS: dict[str, tuple[Callable[[sa.Connection, int], None], Family[Any]]] = {
    "edited": (edit, families.ENTRY),
    "cheapened": (cheapen, families.ENTRY),
    "deleted": (delete, families.ENTRY),
    "reordered": (swap, families.ENTRY),
}


@pytest.fixture(params=["sqlite", "postgresql"])
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    from tests.support.databases import ledger_location

    ledger = Ledger(ledger_location(request.param, tmp_path))
    fill(ledger)
    return ledger


def test_every_tampering_is_found_by_entry(filled: Ledger) -> None:
    assert filled.find_inconsistencies([filled.head()]) == []
    for tampering, (tamper, problem) in TAMPERINGS.items():
        for seq in (5, MANY // 2, MANY - 5):
            with filled._writing() as db, db.begin_nested() as undone:
                remove_triggers(db)
                tamper(db, seq)
                began = time.monotonic()
                findings = find_inconsistencies(read_all(db), head_anchor(db), [])
                elapsed = time.monotonic() - began
                undone.rollback()
            near = [f.notice.code for f in findings if abs(f.entry - seq) <= 2]
            assert problem.code in near, (tampering, seq, findings[:3])
            assert elapsed < 5 * at_scale(4, 1)
    assert filled.find_inconsistencies([filled.head()]) == []


def test_truncated_ledger_is_found_by_the_anchor(filled: Ledger) -> None:
    """The head is changed as well: only an anchor outside the ledger reveals it."""
    anchor = filled.head()
    with filled._writing() as db:
        remove_triggers(db)
        db.execute(sa.delete(entries).where(entries.c.seq > anchor.seq - 7))
        last = db.execute(sa.select(entries.c.seq, entries.c.hash).order_by(-entries.c.seq)).first()
        assert last is not None
        db.execute(sa.update(head).values(seq=last.seq, hash=last.hash))
    assert filled.find_inconsistencies() == []
    (finding,) = filled.find_inconsistencies([anchor])
    assert finding.entry == anchor.seq - 6
    assert finding.notice == like(families.ENTRY, last=anchor.seq - 7, anchored=anchor.seq)


def test_changed_head_is_found(database: Path | str) -> None:
    ledger = Ledger(database)
    charge(ledger, "v")
    with ledger._writing() as db:
        db.execute(sa.update(head).values(hash="0" * 64))
    (finding,) = ledger.find_inconsistencies()
    assert finding.notice == like(families.ENTRY, last=3, head=3)
    assert ledger.head() == Anchor(ledger=ledger.head().ledger, seq=3, hash="0" * 64)
