"""What a run of a cumulative series is to publish: every step that is complete and missing.

Steps are published in order. A run for the last complete step first publishes those that are
missing before it; and a scheduled one also the last steps of the window before, if that was begun.
"""

from __future__ import annotations

import datetime

from gramercy.ledger import Charge
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan, make_plan
from gramercy.pipeline.plan.request_files import read_contract
from gramercy.pipeline.plan.request_model import Request
from gramercy.pipeline.plan.step_charges import missing_steps
from gramercy.schemas.ledger_history import ChargeState
from gramercy.schemas.periods import label_of
from gramercy.schemas.request import PERIOD

_ONE_DAY = datetime.timedelta(days=1)


def nothing_due(context: Context, request: Request, at: datetime.datetime) -> datetime.date | None:
    """The day on which a scheduled series has its first step complete; None if it has one now.

    Where no step of a window is complete, the run is for the last step of the window before. A
    series that was not begun in that window is not begun when it is over.
    """
    cumulative = request.cumulative
    if cumulative is None or PERIOD not in request.version or request.period is not None:
        return None
    contract = read_contract(context.home.contract(request.dataset))
    today, per = request.day_of(contract, at), contract.budget.per
    days = cumulative.window_at(per, today)
    if days.complete(today, cumulative.lag):
        return None
    if per != "lifetime":
        plan = make_plan(context, request, at=at)
        if _charges(context, plan, plan.request):
            return None
    return days.starts[1] + cumulative.lag * _ONE_DAY


def plans_in_order(context: Context, plan: Plan) -> list[Plan]:
    """The plans that are to be published, the given one last.

    Raises
    ------
    SpentFailure
        If a step before it is spent.
    """
    return [*_of_window_before(context, plan), *missing_steps(context, plan), plan]


def _of_window_before(context: Context, plan: Plan) -> list[Plan]:
    """What is missing in the window before, if its series was begun and no step of it is spent."""
    cumulative, facts, per = plan.request.cumulative, plan.spec.cumulative, plan.contract.budget.per
    if cumulative is None or facts is None or per == "lifetime" or PERIOD not in plan.pattern:
        return []
    before = cumulative.series(per, label_of(per, facts.starts[0] - _ONE_DAY))
    update = {"version": before.labels[-1], "period": None, "new_charge": None}
    last = plan.request.model_copy(update=update)
    charges = _charges(context, plan, last)
    steps = {each.series.step: each.state for each in charges if each.series is not None}
    published = [step for step, state in steps.items() if state is ChargeState.PUBLISHED]
    is_closed = any(state.is_closed for state in steps.values())
    if not steps or is_closed or len(published) == before.count:
        return []
    planned = make_plan(context, last, at=plan.planned_for)
    own = [] if before.count in published else [planned]
    return [*missing_steps(context, planned), *own]


def _charges(context: Context, plan: Plan, step: Request) -> list[Charge]:
    """The charges of the series that has a step, oldest first; `plan`: of any step of its kind."""
    key, ledger = step.series_key(plan.contract, plan.spec.scaling), context.existing_ledger
    charges = ledger.charges(plan.contract.id) if ledger is not None else ()
    return [each for each in charges if each.series is not None and each.series.series == key]
