"""New entries of each kind; the journal adds their number, time and hash."""

from __future__ import annotations

import math
import uuid

from gramercy.ledger.entry import DERIVED, Entry
from gramercy.ledger.sources import normalised_source
from gramercy.mechanisms.accounting.composition import Total
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.budget import Budget
from gramercy.schemas.contract import Contract
from gramercy.schemas.model import canonical_json


def opened(location: str) -> Entry:
    """The first entry of a journal: a random id of the ledger, and its location."""
    facts = {"ledger": uuid.uuid4().hex, "place": location}
    return Entry("opened", facts=canonical_json(facts))


def moved(location: str, reason: str) -> Entry:
    """The ledger is at another location now, or its archive is another."""
    return Entry("moved", facts=canonical_json({"place": location, "reason": reason}))


def registered(contract: Contract) -> Entry:
    """A data set's terms, and its first budget."""
    terms = contract.terms()
    terms.pop("budget")
    facts = {"terms": canonical_json(terms), "reason": "registered"}
    return _budget("registered", contract.id, contract.budget, contract.count, facts)


def budget_changed(kind: str, dataset: str, budget: Budget, rows: int, reason: str) -> Entry:
    """A budget that was ``raised`` or ``lowered``."""
    return _budget(kind, dataset, budget, rows, {"reason": reason})


def reserved(
    contract: Contract,
    version: str,
    request: str,
    number: int,
    guarantee: Guarantee,
    total: Total,
    fingerprint: str,
) -> Entry:
    """A charge: the data set's charge of this `number`, and the `total` including it."""
    facts = {
        "version": version,
        "turn": number,
        "total": str(total),
        "fingerprint": fingerprint,
        "source": normalised_source(contract.source),
    }
    return Entry(
        "reserved",
        contract.id,
        f"{version}-r{number}",
        contract.window(version),
        request,
        mu=float(guarantee.mu),
        delta0=float(guarantee.delta0),
        pure=float(guarantee.pure) if guarantee.pure < math.inf else None,
        facts=canonical_json(facts),
    )


def marked(dataset: str, release: str, state: str, facts: dict[str, str]) -> Entry:
    """A release's new state."""
    return Entry(state, dataset, release, facts=canonical_json(facts))


def derived(dataset: str, release: str, kind: str, name: str, sha256: str) -> Entry:
    """An estimate or a report of a release, by the digest of its SHA256SUMS."""
    facts = {"artifact": kind, "name": name, "sha256": sha256}
    return Entry(DERIVED, dataset, release, facts=canonical_json(facts))


def _budget(kind: str, dataset: str, budget: Budget, rows: int, facts: dict[str, str]) -> Entry:
    text = canonical_json(
        facts | {"rows": rows, "per": budget.per, "failures": budget.failure_share}
    )
    return Entry(kind, dataset, epsilon=budget.epsilon, delta=budget.delta, facts=text)
