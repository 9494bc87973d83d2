"""What the ledger says of a plan, and what would become of it."""

from __future__ import annotations

from dataclasses import dataclass

from gramercy.application.context import Context
from gramercy.application.planning import Plan
from gramercy.ledger import Charge, Statement
from gramercy.ledger.sources import sharing
from gramercy.schemas.budget_effect import Effect


@dataclass(frozen=True)
class Outlook:
    """What the ledger says of a plan.

    Parameters
    ----------
    before
        The budget as it stands: registered, or as the contract declares it.
    answered
        The charge that this very request was given before, published or spent.
    shared
        Other data sets that read the same table: their budgets do not add up with this one's.
    """

    before: Statement
    answered: Charge | None
    shared: tuple[str, ...] = ()


def outlook(context: Context, plan: Plan) -> Outlook:
    """Look a plan up in the ledger; changes nothing.

    Raises
    ------
    TermsChanged
        If the data set was registered with other terms.
    """
    ledger, contract = context.ledger, plan.contract
    before = ledger.preview(contract, plan.request.version)
    shared = sharing(ledger.sources(), contract.id, [contract.source])
    return Outlook(before, ledger.find(contract.id, plan.key), shared)


def effect(plan: Plan, seen: Outlook) -> Effect:
    """What would become of a release, as the ledger stands."""
    done, before = seen.answered, seen.before
    if done and done.state == "published":
        words = f"published already, as {done.release}: nothing would be charged"
        return Effect("free", words)
    if done and done.state == "sealed":
        words = f"drawn and sealed, as {done.release}: would only be put in its place"
        return Effect("free", words)
    if done and plan.request.new_charge != done.release:
        became = "withdrawn" if done.state == "withdrawn" else "interrupted"
        words = f"charged before, as {done.release}, and {became}: needs --new-charge"
        return Effect("refused", words)
    if not before.admits(plan.guarantee):
        delta = before.budget.delta
        return Effect(
            "refused",
            "does not fit the budget: the release would be refused. It asks for epsilon "
            f"{plan.guarantee.epsilon(delta):.4g} at delta {delta:g}, and {before.remaining:.4g} "
            "is left: ask for less, or raise the budget with 'gramercy budget --raise'",
        )
    return Effect("charged", "it would be charged, and never refunded")
