"""A share of every budget's delta is set aside for failures; a file's place names the machine.

Both are entered in the journal; the tables stay as they are. Version 0.1, which would go on
charging by the older rule, refuses a ledger of this version.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import Connection, select

from gramercy.ledger.database_tables import entries
from gramercy.ledger.entry import Entry
from gramercy.ledger.journal import append, read
from gramercy.ledger.place import place, resolved
from gramercy.schemas.model import canonical

revision = "3"
down_revision = "2"

_REFUSAL = "the ledger was upgraded"
# A process of version 0.1 that had opened the ledger before would go on charging by its own rule.
# Its charges do not state their source.
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
_PLACES = entries.c.kind.in_(["opened", "moved"])


def upgrade() -> None:
    """Enter the same budget again, with its share; and the same place, with its machine."""
    db = op.get_bind()
    registered = select(entries.c.dataset).where(entries.c.kind == "registered")
    for dataset in sorted(db.scalars(registered)):
        (last,) = read(db, entries.c.dataset == dataset, _BUDGETS, last=True)
        append(db, _with_failures(last))
    _name_the_machine(db)
    for statement in _ONLY_NEW_CHARGES[op.get_context().dialect.name]:
        op.execute(statement)


def _with_failures(last: Entry) -> Entry:
    budget = last.budget
    facts = {
        "reason": "upgraded: a tenth of delta is set aside for failures",
        "rows": last.says("rows", int),
        "per": budget.per,
        "failures": budget.failures,
        "upgraded": True,
    }
    return Entry(
        "raised",
        last.dataset,
        epsilon=budget.epsilon,
        delta=budget.delta,
        facts=canonical(facts),
    )


def _name_the_machine(db: Connection) -> None:
    """Not of a copy: it still belongs elsewhere."""
    (last,) = read(db, _PLACES, last=True)
    if db.dialect.name == "sqlite" and last.says("place", str) == resolved(db):
        facts = {"place": place(db), "reason": "upgraded", "upgraded": True}
        append(db, Entry("moved", facts=canonical(facts)))
