"""Decide what a request leads to, and preview what it would do to the budget."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from gramercy.ledger import Charge, Statement, check_budget, spent_failure
from gramercy.ledger.entry import datasets_with_same_source
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.plan.step_charges import check_closed, due, earlier_charges, unpublished
from gramercy.reports.steps import PlannedStep, StepNoise
from gramercy.schemas import families
from gramercy.schemas.budget import BudgetEffect
from gramercy.schemas.errors import BudgetRefused, SpentFailure
from gramercy.schemas.facts import CumulativeFacts
from gramercy.schemas.ledger_history import ChargeState
from gramercy.schemas.periods import days_of
from gramercy.schemas.problem import Notice


class Decision(Enum):
    """What a request leads to, given the charge of an earlier run of it.

    CHARGE
        A new charge.
    ANSWER
        The published release, at no charge.
    FINISH
        The publication of the sealed release, with the same bytes and at no charge.
    REFUSE
        Nothing: the charge is spent, or will be by the run that finds it interrupted.
    """

    CHARGE = "charge"
    ANSWER = "answer"
    FINISH = "finish"
    REFUSE = "refuse"


def decide(plan: Plan, charge: Charge | None) -> Decision:
    """What the request of a plan leads to; `charge` is that of an earlier run, if there is one."""
    if charge is None or (
        charge.state not in _ANSWERS and plan.request.new_charge == charge.release
    ):
        return Decision.CHARGE
    return _ANSWERS.get(charge.state, Decision.REFUSE)


_ANSWERS = {ChargeState.PUBLISHED: Decision.ANSWER, ChargeState.SEALED: Decision.FINISH}


@dataclass(frozen=True)
class BudgetPreview:
    """What the ledger records about the budget and the request of a plan."""

    statement: Statement  # the budget before the release, registered or as the contract declares it
    due: Guarantee  # what the release would be charged, if it is not free
    # the charge of an earlier run of the same request, published or spent
    previous_charge: Charge | None
    earlier: tuple[Charge | None, ...] = ()  # of a step, the charges of all steps before it
    # other data sets that read the same table; their budgets are separate from this one
    sharing_datasets: tuple[str, ...] = ()


def preview_budget(context: Context, plan: Plan) -> BudgetPreview:
    """Look up a plan in the ledger; changes nothing."""
    ledger, contract = context.ledger, plan.contract
    statement = ledger.preview(contract, plan.request.version)
    sharing = datasets_with_same_source(ledger.sources(), contract.id, [contract.source])
    previous = ledger.find_charge(contract.id, plan.key)
    earlier = tuple(earlier_charges(ledger, plan))
    return BudgetPreview(statement, due(ledger, plan), previous, earlier, sharing)


def budget_effect(plan: Plan, preview: BudgetPreview) -> BudgetEffect:
    """Whether the release would be charged, be free or be refused, as the ledger is now."""
    previous = preview.previous_charge
    decision = decide(plan, previous)
    if previous is not None and decision is Decision.ANSWER:
        words = f"Already published as {previous.release}: nothing would be charged."
        return BudgetEffect("free", words)
    if previous is not None and decision is Decision.FINISH:
        words = f"Already sealed as {previous.release}: its publication would be completed."
        return BudgetEffect("free", words)
    if previous is not None and decision is Decision.REFUSE:
        return BudgetEffect("refused", str(spent_failure(plan.contract.id, previous)))
    try:
        check_preview(plan, preview)
    except (BudgetRefused, SpentFailure) as refusal:
        return BudgetEffect("refused", str(refusal))
    if preview.due.mu == 0:
        words = "The charge of the first step includes it: nothing more would be charged."
        return BudgetEffect("included", words)
    return BudgetEffect("charged", "It would be charged. A charge is never refunded.")


def check_preview(plan: Plan, preview: BudgetPreview) -> None:
    """Refuse a request that does not fit the budget or was withdrawn, as the ledger is now.

    The ledger decides again when it is charged. A charge without a release is not refused here: the
    release may be on its way in another process.
    """
    previous = preview.previous_charge
    if decide(plan, previous) is Decision.CHARGE:
        check_closed(plan, preview.earlier)
        check_budget(plan.contract.id, preview.statement, preview.due)
    elif previous is not None and previous.state is ChargeState.WITHDRAWN:
        raise spent_failure(plan.contract.id, previous)


def reads_table(plan: Plan, preview: BudgetPreview) -> bool:
    """Whether the release would read the table, as the ledger is now.

    An average of reports has no table, a published release is returned from the archive, and an
    interrupted one is refused unless it is charged again.
    """
    return not plan.averaging and decide(plan, preview.previous_charge) is Decision.CHARGE


def planned_step(plan: Plan, preview: BudgetPreview) -> PlannedStep | None:
    """The step of a series that a plan publishes; None without a series."""
    facts = plan.spec.cumulative
    if facts is None:
        return None
    charged_before = preview.previous_charge is not None
    again = charged_before and decide(plan, preview.previous_charge) is Decision.CHARGE
    return PlannedStep(
        facts=facts,
        noise=StepNoise.of(facts),
        published=(*unpublished(plan, preview.earlier), plan.request.version),
        included=not again and (charged_before or preview.due.mu == 0),
        again=again,
        rows_are_public=plan.contract.neighbours.count_is_public,
    )


def unfinished_period(plan: Plan) -> Notice | None:
    """A warning if a release is planned before the period of its data is over.

    It is charged to that period, and a release of all its rows needs another charge.
    """
    contract, per = plan.contract, plan.contract.budget.per
    if plan.spec.cumulative is not None:
        return _unfinished_step(plan, plan.spec.cumulative)
    if per == "lifetime":
        return None
    period = contract.window(plan.request.version)
    days = days_of(per, period)
    if days is None or days[1] < plan.request.day_of(contract, plan.planned_for):
        return None
    return families.VERSION_NOT_FINAL(
        "{period} ends on {last_day}: rows that are added until then would not be in this release.",
        "Publish it when it is over: another release of the same period needs a "
        "version such as '{period}.2', and another charge.",
        period=period,
        last_day=days[1].isoformat(),
    )


def _unfinished_step(plan: Plan, step: CumulativeFacts) -> Notice | None:
    """A warning if a step is planned before its rows are complete, according to the request."""
    if step.complete_on <= plan.request.day_of(plan.contract, plan.planned_for):
        return None
    return families.VERSION_NOT_FINAL(
        "{version} is complete on {day}: a row that is added later counts in part only.",
        "Publish it when it is complete: '{{period}}' in the version waits for that.",
        version=plan.request.version,
        day=step.complete_on.isoformat(),
    )
