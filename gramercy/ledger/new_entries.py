"""What an entry of each kind states, as it is made: the journal adds its number and its hash."""

from __future__ import annotations

import math
import uuid

from gramercy.ledger.entry import Entry
from gramercy.ledger.sources import declared
from gramercy.mechanisms.accounting.composition import Total
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.budget import Budget
from gramercy.schemas.contract import Contract
from gramercy.schemas.model import canonical


def opened(place: str) -> Entry:
    """The first entry of a journal: the ledger's name, which is random, and its place."""
    return Entry("opened", facts=canonical({"ledger": uuid.uuid4().hex, "place": place}))


def moved(place: str, reason: str) -> Entry:
    """The ledger, or its archive, has moved; `place` is where the ledger is now."""
    return Entry("moved", facts=canonical({"place": place, "reason": reason}))


def registered(contract: Contract) -> Entry:
    """A data set's terms, and its first budget."""
    terms = contract.terms()
    terms.pop("budget")
    facts = {"terms": canonical(terms), "reason": "registered"}
    return _budget("registered", contract.id, contract.budget, contract.count, facts)


def budget_changed(kind: str, dataset: str, budget: Budget, rows: int, reason: str) -> Entry:
    """A budget that was ``raised`` or ``lowered``."""
    return _budget(kind, dataset, budget, rows, {"reason": reason})


def reserved(
    contract: Contract,
    version: str,
    request: str,
    turn: int,
    guarantee: Guarantee,
    total: Total,
    fingerprint: str,
) -> Entry:
    """A charge; `turn` counts the data set's charges, and `total` is their sum with this one."""
    facts = {
        "version": version,
        "turn": turn,
        "total": str(total),
        "fingerprint": fingerprint,
        "source": declared(contract.source),
    }
    return Entry(
        "reserved",
        contract.id,
        f"{version}-r{turn}",
        contract.window(version),
        request,
        mu=float(guarantee.mu),
        delta0=float(guarantee.delta0),
        pure=float(guarantee.pure) if guarantee.pure < math.inf else None,
        facts=canonical(facts),
    )


def marked(dataset: str, release: str, state: str, facts: dict[str, str]) -> Entry:
    """A release's new state."""
    return Entry(state, dataset, release, facts=canonical(facts))


def _budget(kind: str, dataset: str, budget: Budget, rows: int, facts: dict[str, str]) -> Entry:
    said = canonical(facts | {"rows": rows, "per": budget.per, "failures": budget.failures})
    return Entry(kind, dataset, epsilon=budget.epsilon, delta=budget.delta, facts=said)
