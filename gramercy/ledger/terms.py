"""The terms of a data set are fixed by its first charge, because its guarantees depend on them."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection

from gramercy.ledger.entry import Entry
from gramercy.ledger.journal import read
from gramercy.ledger.queries import has_budget
from gramercy.schemas.contract import Contract
from gramercy.schemas.model import canonical_json
from gramercy.schemas.problems.budget import table_outgrew_delta, terms_changed


def terms_of(registered: Entry) -> dict[str, Any]:
    """The terms in the entry that registered a data set: everything but its budget."""
    terms: dict[str, Any] = json.loads(registered.fact("terms", str))
    return terms


def verify_terms(db: Connection, contract: Contract) -> None:
    """Verify that a contract states the terms with which its data set was registered.

    Raises
    ------
    TermsChanged
        Naming each term that differs; or if the table has grown so much that the budget's delta is
        1/rows or more.
    """
    first, *_ = budgets = read(db, *has_budget(contract.id))
    registered = terms_of(first)
    stated = json.loads(canonical_json(contract.terms()))
    # A contract may state any budget that the data set has had; the last one is in use.
    earlier = [each.budget.model_dump() for each in budgets]
    registered["budget"] = stated["budget"] if stated["budget"] in earlier else earlier[-1]
    if changed := _differences(registered, stated):
        raise terms_changed(contract.id, tuple(changed))
    delta, limit = budgets[-1].budget.delta, 1 / contract.count
    if delta >= limit:
        raise table_outgrew_delta(contract.id, delta, contract.count_key, limit)


def _differences(old: Any, new: Any, key: str = "") -> list[str]:
    """Keys of the terms that differ, columns by their names."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [*old, *(k for k in new if k not in old)]
        inner = [_differences(old.get(k), new.get(k), f"{key}.{k}".strip(".")) for k in keys]
        return [name for names in inner for name in names]
    if key == "columns" and [c["name"] for c in old] == [c["name"] for c in new]:
        pairs = zip(old, new, strict=True)
        return [x for a, b in pairs for x in _differences(a, b, f"columns.{a['name']}")]
    return [] if old == new else [key]
