"""Concurrent writers of one ledger, and an owner of its database who rewrites it consistently."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from gramercy.ledger import Ledger
from gramercy.ledger.database import entries, head
from gramercy.ledger.entry import FIRST_PREVIOUS, Entry
from gramercy.mechanisms.accounting.composition import NO_CHARGES, Total
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import BudgetRefused, SpentFailure
from gramercy.schemas.ledger_history import ChargeState
from gramercy.schemas.model import canonical_json
from tests.support.processes import processes as pool_of

FACTS: dict[str, Any] = {
    "id": "toy",
    "title": "A toy",
    "curator": "A curator",
    "source": "table.csv",
    "rows": 40,
    "intercept": False,
    "budget": {"epsilon": 3.0, "delta": 1e-5},
    "columns": {f"c{i}": {"lower": -5.0, "upper": 5.0} for i in range(3)},
}
TENTH = Guarantee(gdp_mu(3.0, 0.9e-5) / 10 * (1 - 1e-12))  # a hundred of these fill the budget


def contract(**changes: object) -> Contract:
    return Contract.model_validate(FACTS | changes)


def charge(
    ledger: Ledger, name: str, guarantee: Guarantee = TENTH, terms: Contract | None = None
) -> str:
    declared = terms or contract()
    return ledger.charge(declared, name, f"request {name}", guarantee, "").release


def charge_or_refused(job: tuple[Path | str, str]) -> str:
    location, name = job
    try:
        return charge(Ledger(location), name)
    except BudgetRefused:
        return "refused"


def charge_same_request(location: Path | str) -> str:
    try:
        return Ledger(location).charge(contract(), "v1", "same", TENTH, "").release
    except SpentFailure:
        return "spent"


def mark_drawn(job: tuple[Path | str, str]) -> str:
    location, release = job
    try:
        Ledger(location).mark("toy", release, ChargeState.DRAWN)
    except SpentFailure:
        return "refused"
    return "drawn"


def _charge_in_threads(jobs: list[tuple[Path | str, str]]) -> list[str]:
    with ThreadPoolExecutor(len(jobs)) as threads:
        return list(threads.map(charge_or_refused, jobs))


def charge_concurrently(jobs: list[tuple[Path | str, str]], processes: int) -> list[str]:
    """Charge all at once: a thread for each charge, in several processes."""
    shares = [jobs[k::processes] for k in range(processes)]
    with pool_of(processes) as pool:
        return [answer for share in pool.map(_charge_in_threads, shares) for answer in share]


def remove_triggers(db: sa.Connection) -> None:
    """Remove the triggers that make the journal append-only."""
    if db.dialect.name == "sqlite":
        for name in ("update", "delete"):
            db.execute(sa.text(f"DROP TRIGGER IF EXISTS entries_no_{name}"))
    else:
        db.execute(sa.text("DROP TRIGGER IF EXISTS entries_append_only ON entries"))


def rewritten(journal: Iterable[Entry], change: Callable[[Entry], Entry | None]) -> list[Entry]:
    """The entries after a change of each (None removes it), added up and chained again."""
    made, previous = list[Entry](), FIRST_PREVIOUS
    totals: dict[tuple[str | None, str | None], Total] = {}
    for entry in journal:
        changed = change(entry)
        if changed is None:
            continue
        if changed.kind == "reserved":
            budget = changed.dataset, changed.window
            totals[budget] = totals.get(budget, NO_CHARGES).plus(changed.guarantee)
            facts = json.loads(changed.facts) | {"total": str(totals[budget])}
            changed = replace(changed, facts=canonical_json(facts))
        changed = replace(changed, seq=len(made) + 1, previous=previous)
        made.append(replace(changed, hash=changed.digest()))
        previous = made[-1].hash
    return made


def rewrite(ledger: Ledger, change: Callable[[Entry], Entry | None]) -> None:
    """Rewrite a ledger, and its head."""
    made = rewritten(ledger.entries(), change)
    with ledger._writing() as db:
        remove_triggers(db)
        db.execute(sa.delete(entries))
        db.execute(sa.insert(entries), [asdict(entry) for entry in made])
        db.execute(sa.update(head).values(seq=made[-1].seq, hash=made[-1].hash))


def cheaper(release: str, mu: float = 1e-6, dataset: str | None = None) -> Callable[[Entry], Entry]:
    """The change by which a release has cost next to nothing."""

    def change(entry: Entry) -> Entry:
        is_charge = entry.kind == "reserved" and entry.release == release
        is_charge &= dataset in {None, entry.dataset}
        return replace(entry, mu=mu) if is_charge else entry

    return change
