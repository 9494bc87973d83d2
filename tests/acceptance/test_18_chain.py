"""A changed, removed or moved entry among a hundred thousand is found, and so is a lost end.

The attacker owns the database, and removes its triggers and constraints first.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from gramercy.ledger import Finding, Ledger
from gramercy.ledger.database_tables import entries, head
from gramercy.ledger.entry import Entry
from gramercy.ledger.examine import examine
from gramercy.ledger.journal import read, walk
from gramercy.ledger.queries import head_of
from gramercy.mechanisms.accounting.composition import NOTHING
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.model import canonical
from tests.support.factories import at_scale
from tests.support.ledger_writers import TENTH, charge, contract

MANY = at_scale(3_000, 100_000)
SMALL = Guarantee(1e-3)


def more_entries(ledger: Ledger, count: int) -> Iterator[Entry]:
    """Entries as charges would append them, without waiting for the disk."""
    *_, last = ledger.entries()
    total, turn = last.total, last.says("turn", int)
    state = "reserved"
    for _ in range(count):
        state = {"reserved": "drawn", "drawn": "spent", "spent": "reserved"}[state]
        facts = '{"reason":"interrupted"}' if state == "spent" else "{}"
        entry = Entry(state, "toy", f"v-r{turn}", facts=facts)
        if state == "reserved":
            total, turn = total.plus(SMALL), turn + 1
            told = {
                "version": "v",
                "turn": turn,
                "total": str(total),
                "fingerprint": "",
                "source": "",
            }
            charged = Entry(state, "toy", f"v-r{turn}", "", f"request {turn}", SMALL.mu, 0.0)
            entry = replace(charged, facts=canonical(told))
        made = replace(entry, seq=last.seq + 1, at="2026", salt="0" * 32, previous=last.hash)
        last = replace(made, hash=made.digest())
        yield last


def fill(ledger: Ledger) -> None:
    charge(ledger, "v", TENTH, contract(budget={"epsilon": 900.0, "delta": 1e-5}))
    rows = [asdict(entry) for entry in more_entries(ledger, MANY)]
    with ledger._writing() as db:
        db.execute(sa.insert(entries), rows)
        db.execute(sa.update(head).values(seq=rows[-1]["seq"], hash=rows[-1]["hash"]))


def unguarded(db: sa.Connection) -> None:
    """Remove triggers and constraints."""
    if db.dialect.name == "sqlite":
        for name in ("update", "delete"):
            db.execute(sa.text(f"DROP TRIGGER IF EXISTS entries_no_{name}"))
    else:
        db.execute(sa.text("DROP TRIGGER IF EXISTS entries_append_only ON entries"))


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


TAMPERINGS: dict[str, tuple[Callable[[sa.Connection, int], None], str]] = {
    "edited": (edit, "was changed"),
    "cheapened": (cheapen, "does not add up"),
    "deleted": (delete, "before it is missing"),
    "reordered": (swap, "was changed"),
}


@pytest.fixture(params=["sqlite", "postgresql"])
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    from tests.support.databases import ledger_location

    ledger = Ledger(ledger_location(request.param, tmp_path))
    fill(ledger)
    return ledger


def test_every_tampering_is_found_by_entry(filled: Ledger) -> None:
    assert filled.examine([filled.head()]) == []
    for tampering, (tamper, told) in TAMPERINGS.items():
        for seq in (5, MANY // 2, MANY - 5):
            with filled._writing() as db, db.begin_nested() as undone:
                unguarded(db)
                tamper(db, seq)
                began = time.monotonic()
                findings = examined(db)
                elapsed = time.monotonic() - began
                undone.rollback()
            named = [f for f in findings if abs(f.entry - seq) <= 2 and told in f.words]
            assert named, (tampering, seq, findings[:3])
            assert elapsed < 5 * at_scale(4, 1)
    assert filled.examine([filled.head()]) == []


def examined(db: sa.Connection) -> list[Finding]:
    return examine(walk(db), head_of(db), [])


def test_truncated_ledger_is_found_by_the_anchor(filled: Ledger) -> None:
    """Including the head: only an anchor outside the ledger can reveal it."""
    anchor = filled.head()
    with filled._writing() as db:
        unguarded(db)
        db.execute(sa.delete(entries).where(entries.c.seq > anchor.seq - 7))
        last = db.execute(sa.select(entries.c.seq, entries.c.hash).order_by(-entries.c.seq)).first()
        assert last is not None
        db.execute(sa.update(head).values(seq=last.seq, hash=last.hash))
    assert filled.examine() == []
    (found,) = filled.examine([anchor])
    assert found.entry == anchor.seq - 6
    assert f"its anchor outside has seen entry {anchor.seq}" in found.words


def test_rewritten_ledger_is_found_by_the_anchor(tmp_path: Path) -> None:
    """Everything after some entry is rewritten consistently."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    for turn in range(8):
        charge(ledger, f"v{turn}")
    anchors = [ledger.head()]
    charge(ledger, "v8")
    total, kept, previous = NOTHING, list[Entry](), ""
    for entry in ledger.entries():
        made = entry
        if entry.kind == "reserved":
            mu = 1e-6 if entry.release == "v3-r4" else entry.mu
            made = replace(entry, mu=mu)
            total = total.plus(made.guarantee)
            made = replace(made, facts=canonical(json.loads(entry.facts) | {"total": str(total)}))
        made = replace(made, previous=previous or entry.previous)
        kept.append(replace(made, hash=made.digest()))
        previous = kept[-1].hash
    with ledger._writing() as db:
        unguarded(db)
        db.execute(sa.delete(entries))
        db.execute(sa.insert(entries), [asdict(entry) for entry in kept])
        db.execute(sa.update(head).values(hash=previous))
    assert ledger.examine() == []
    (found,) = ledger.examine(anchors)
    assert found.entry == anchors[0].seq
    assert "another entry than its anchor" in found.words


def test_charges_beyond_the_budget_are_found(tmp_path: Path) -> None:
    """Entries with correct hashes that exceed the budget are found by the budget rule."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    charge(ledger, "v", Guarantee(TENTH.mu * 9.999))
    extra = list(more_entries(ledger, 30))
    with ledger._writing() as db:
        db.execute(sa.insert(entries), [asdict(entry) for entry in extra])
        db.execute(sa.update(head).values(seq=extra[-1].seq, hash=extra[-1].hash))
    assert ledger.examine() == []  # 3e-3 more still fits
    before = next(e for e in reversed(extra) if e.kind == "reserved")
    turn, total = before.says("turn", int) + 1, before.total.plus(TENTH)
    over = replace(before, release=f"v-r{turn}", mu=TENTH.mu)
    facts = {"version": "v", "turn": turn, "fingerprint": "", "source": ""}
    over = replace(over, facts=canonical(facts | {"total": str(total)}), request="r")
    over = replace(over, seq=extra[-1].seq + 1, previous=extra[-1].hash)
    over = replace(over, hash=over.digest())
    with ledger._writing() as db:
        db.execute(sa.insert(entries), [asdict(over)])
        db.execute(sa.update(head).values(seq=over.seq, hash=over.hash))
    (found,) = ledger.examine()
    assert (found.entry, found.subject) == (over.seq, f"toy/v-r{turn}")
    assert found.words == "its total is more than the budget that was in force"


def test_changed_head_is_found(database: Path | str) -> None:
    ledger = Ledger(database)
    charge(ledger, "v")
    with ledger._writing() as db:
        db.execute(sa.update(head).values(hash="0" * 64))
    (found,) = ledger.examine()
    assert "ends at entry 3, and its head says 3" in found.words
    assert ledger.head() == Anchor(ledger=ledger.head().ledger, seq=3, hash="0" * 64)
