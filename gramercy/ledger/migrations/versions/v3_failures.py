"""A share of every budget's delta is set aside for failures; a file's location names the machine.

Both are recorded as entries; the tables stay as they are. Version 0.1 refuses a ledger of this
version, because it would charge by the older rule.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import Connection, select

from gramercy.ledger.database_tables import entries
from gramercy.ledger.entry import Entry
from gramercy.ledger.journal import append, read
from gramercy.ledger.location import location_of, resolved_path
from gramercy.schemas.model import canonical_json

revision = "3"
down_revision = "2"

_REFUSAL = "the ledger was upgraded"
# A process of version 0.1 that opened the ledger before the upgrade could still charge by its own
# rule. It is recognised by its charges, which do not state their source.
_ONLY_NEW_CHARGES = {
    "sqlite": [
        "CREATE TRIGGER charges_of_this_version BEFORE INSERT ON entries "
        "WHEN NEW.kind = 'reserved' AND instr(NEW.facts, '\"source\"') = 0 "
        f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
    ],
    "postgresql": [
        "CREATE FUNCTION gramercy_charges_of_this_version() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN IF NEW.kind = 'reserved' AND position('\"source\"' in NEW.facts) = 0 THEN "
        f"RAISE EXCEPTION '{_REFUSAL}' USING ERRCODE = 'integrity_constraint_violation'; "
        "END IF; RETURN NEW; END $$",
        "CREATE TRIGGER charges_of_this_version BEFORE INSERT ON entries "
        "FOR EACH ROW EXECUTE FUNCTION gramercy_charges_of_this_version()",
    ],
}
_BUDGETS = entries.c.kind.in_(["registered", "raised", "lowered"])
_MOVES = entries.c.kind.in_(["opened", "moved"])


def upgrade() -> None:
    """Repeat the budgets with their failure shares, and the location with its machine."""
    db = op.get_bind()
    registered = select(entries.c.dataset).where(entries.c.kind == "registered")
    for dataset in sorted(db.scalars(registered)):
        (last,) = read(db, entries.c.dataset == dataset, _BUDGETS, last=True)
        append(db, _with_failure_share(last))
    _record_machine(db)
    for statement in _ONLY_NEW_CHARGES[op.get_context().dialect.name]:
        op.execute(statement)


def _with_failure_share(last: Entry) -> Entry:
    budget = last.budget
    facts = {
        "reason": "upgraded: a tenth of delta is set aside for failures",
        "rows": last.fact("rows", int),
        "per": budget.per,
        "failures": budget.failure_share,
        "upgraded": True,
    }
    return Entry(
        "raised",
        last.dataset,
        epsilon=budget.epsilon,
        delta=budget.delta,
        facts=canonical_json(facts),
    )


def _record_machine(db: Connection) -> None:
    """Except for a copy, which keeps the location of its original."""
    (last,) = read(db, _MOVES, last=True)
    if db.dialect.name == "sqlite" and last.fact("place", str) == resolved_path(db):
        facts = {"place": location_of(db), "reason": "upgraded", "upgraded": True}
        append(db, Entry("moved", facts=canonical_json(facts)))
