"""Checks before an entry is appended, and before a ledger is trusted."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

from sqlalchemy import Connection, select

from gramercy.ledger.database import display_location
from gramercy.ledger.database_tables import entries
from gramercy.ledger.entry import STATES_BEFORE
from gramercy.ledger.journal import read
from gramercy.ledger.location import location_of
from gramercy.ledger.queries import has_budget, head_anchor, last_move, recorded_location
from gramercy.ledger.statement import Charge, Statement
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.budget import Budget
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import SpentFailure
from gramercy.schemas.model import canonical_json, single_line
from gramercy.schemas.problems import budget as budget_problems
from gramercy.schemas.problems import ledger as ledger_problems


def verify_location(db: Connection) -> None:
    """Verify that a ledger is where it says that it is.

    Raises
    ------
    UntrustedLedger
        If it is a copy.
    """
    recorded = recorded_location(db)
    if recorded != location_of(db):
        raise ledger_problems.ledger_copied(display_location(db.engine), recorded)


def verify_anchor(db: Connection, anchor: Anchor | None, witness: str) -> None:
    """Verify a ledger against an anchor; see `LedgerReader.verify_anchor`.

    Raises
    ------
    UntrustedLedger
        If the ledger is older than the anchor, is another one, or was rewritten.
    """
    head, ledger = head_anchor(db), display_location(db.engine)
    if anchor is None:
        drawn = (entries.c.kind == "drawn", entries.c.seq > last_move(db).seq)
        if read(db, *drawn, first=True):
            raise ledger_problems.anchor_missing(ledger, witness)
    elif anchor.ledger != head.ledger:
        raise ledger_problems.anchor_of_another_ledger(ledger, witness)
    elif anchor.seq > head.seq:
        raise ledger_problems.ledger_behind_anchor(ledger, head.seq, witness, anchor.seq)
    elif db.scalar(select(entries.c.hash).where(entries.c.seq == anchor.seq)) != anchor.hash:
        raise ledger_problems.ledger_differs_from_anchor(ledger, anchor.seq, witness)


def verify_terms(db: Connection, contract: Contract) -> None:
    """Verify that a contract states the terms with which its data set was registered.

    Raises
    ------
    TermsChanged
        Naming each term that differs; or if the table has grown so much that the budget's delta is
        1/rows or more.
    """
    first, *_ = budgets = read(db, *has_budget(contract.id))
    registered: dict[str, Any] = json.loads(first.fact("terms", str))
    stated = json.loads(canonical_json(contract.terms()))
    # A contract may state any budget that the data set has had; the last one is in use.
    earlier = [each.budget.model_dump() for each in budgets]
    registered["budget"] = stated["budget"] if stated["budget"] in earlier else earlier[-1]
    if changed := _differences(registered, stated):
        raise budget_problems.terms_changed(contract.id, tuple(changed))
    delta, limit = budgets[-1].budget.delta, 1 / contract.count
    if delta >= limit:
        raise budget_problems.table_outgrew_delta(contract.id, delta, contract.count_key, limit)


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


def checked_reason(reason: str) -> str:
    """A steward's reason, without blanks around it.

    Raises
    ------
    RequestError
        If it is empty, or not a single line of text.
    """
    if not reason.strip():
        raise budget_problems.reason_missing()
    with contextlib.suppress(ValueError):
        return single_line(reason.strip())
    raise budget_problems.reason_not_one_line()


def check_direction(dataset: str, current: Budget, new: Budget, *, lower: bool) -> None:
    """Refuse a new budget that is not larger, or not smaller if `lower`, than the current one.

    Raises
    ------
    RequestError
        With the current budget.
    """
    smaller, larger = (new, current) if lower else (current, new)
    if new == current or smaller.epsilon > larger.epsilon or smaller.delta > larger.delta:
        refusal = budget_problems.budget_not_lowered if lower else budget_problems.budget_not_raised
        raise refusal(dataset, current.epsilon, current.delta)


def check_delta(budget: Budget, rows: int) -> None:
    """Refuse a new budget at which a whole row could be published.

    Raises
    ------
    RequestError
        If its delta is 1/rows or more.
    """
    if budget.delta >= 1 / rows:
        raise budget_problems.delta_too_large(1 / rows)


def check_not_charged(dataset: str, earlier: Charge | None, instead_of: str | None) -> None:
    """Refuse to charge a request twice, unless it replaces a spent or withdrawn release.

    Parameters
    ----------
    dataset
        Id of the data set.
    earlier
        The earlier charge of the same request, if there is one.
    instead_of
        The release that a new charge is to replace.

    Raises
    ------
    SpentFailure
        If the request was charged before, and that release is not the one to be replaced.
    """
    closed = earlier and earlier.state in {"spent", "withdrawn"}
    if earlier is not None and not (closed and earlier.release == instead_of):
        raise spent_failure(dataset, earlier)


def check_transition(dataset: str, release: str, state: str, new_state: str) -> None:
    """Refuse a state that a release cannot enter from its present one.

    Raises
    ------
    SpentFailure
        Naming both.
    """
    if state not in STATES_BEFORE[new_state]:
        raise budget_problems.state_not_allowed(f"{dataset}/{release}", state, new_state)


def check_budget(dataset: str, statement: Statement, guarantee: Guarantee) -> None:
    """Refuse a charge that does not fit the budget.

    Raises
    ------
    BudgetRefused
        With what is needed, spent and left.
    """
    if statement.admits(guarantee):
        return
    budget, total = statement.budget, statement.total
    name = f"{dataset}, data of {statement.window}" if statement.window else dataset
    after = statement.after(guarantee).total
    if guarantee.delta0 and after.delta0 > budget.failure_share:
        raise budget_problems.failure_share_exceeded(
            name, guarantee.delta0, total.delta0, budget.failure_share
        )
    pure = guarantee.pure < math.inf
    raise budget_problems.budget_exceeded(
        name,
        needed=guarantee.epsilon(budget.delta),
        needed_mu=guarantee.mu,
        left=statement.remaining if pure else statement.remaining_gaussian,
        left_mu=statement.left.mu,
        epsilon=budget.epsilon,
        delta=budget.delta,
        spent=statement.spent,
        spent_mu=total.mu,
    )


def spent_failure(dataset: str, charge: Charge) -> SpentFailure:
    """The error for a charge that cannot be answered with a release."""
    name = f"{dataset}/{charge.release}"
    if charge.state == "withdrawn":
        return budget_problems.release_withdrawn(name, charge.reason.rstrip("."))
    return budget_problems.charge_interrupted(name, charge.guarantee.mu)
