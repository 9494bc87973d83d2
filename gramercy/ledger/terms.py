"""The terms that a data set was registered with: fixed, because earlier guarantees rest on them."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection

from gramercy.ledger.entry import Entry
from gramercy.ledger.journal import read
from gramercy.ledger.queries import budgets_of
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import TermsChanged
from gramercy.schemas.model import canonical


def terms_of(registered: Entry) -> dict[str, Any]:
    """The terms in the entry that registered a data set; all but its budget."""
    terms: dict[str, Any] = json.loads(registered.says("terms", str))
    return terms


def hold_to_terms(db: Connection, contract: Contract) -> None:
    """Hold a contract to the terms that its data set was registered with.

    Raises
    ------
    TermsChanged
        Naming each fixed term that the contract now states differently; or if the table has grown
        so much that the budget's delta no longer lies below 1/rows.
    """
    first, *_ = budgets = read(db, *budgets_of(contract.id))
    then = terms_of(first)
    now = json.loads(canonical(contract.terms()))
    # A contract may still state a budget from before it was changed; the last one is in force.
    stated = [each.budget.model_dump() for each in budgets]
    then["budget"] = now["budget"] if now["budget"] in stated else stated[-1]
    changed = _differences(then, now)
    if changed:
        raise TermsChanged(
            f"Data set '{contract.id}' was registered with other terms: {', '.join(changed)}.",
            "They are fixed, because earlier guarantees rest on them: restore them (a budget is "
            "changed with 'gramercy budget --raise' or '--lower' before it is here), or give the "
            "data set a new id only if it shares no people with this one.",
        )
    if budgets[-1].budget.delta >= 1 / contract.count:
        raise TermsChanged(
            f"The budget's delta of '{contract.id}' is {budgets[-1].budget.delta:g}, and the "
            f"table has {contract.count} {contract.count_key} by now: it must lie below one "
            "over that.",
            "Lower it with 'gramercy budget --lower'.",
        )


def _differences(then: Any, now: Any, at: str = "") -> list[str]:
    """Names of the terms that differ, columns by their names."""
    if isinstance(then, dict) and isinstance(now, dict):
        keys = [*then, *(k for k in now if k not in then)]
        inner = [_differences(then.get(k), now.get(k), f"{at}.{k}".strip(".")) for k in keys]
        return [name for names in inner for name in names]
    if at == "columns" and [c["name"] for c in then] == [c["name"] for c in now]:
        pairs = zip(then, now, strict=True)
        return [x for a, b in pairs for x in _differences(a, b, f"columns.{a['name']}")]
    return [] if then == now else [at]
