"""What a run of a cumulative series is to publish: every step that is complete and missing.

Steps are published in order. A run that is for the last complete step first publishes those that
are missing before it, also the last ones of the window before, if that was begun.
"""

from __future__ import annotations

import datetime

from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan, make_plan
from gramercy.pipeline.plan.request_files import read_contract
from gramercy.pipeline.plan.request_model import Request
from gramercy.pipeline.plan.step_charges import missing_steps, series_charges
from gramercy.schemas.periods import label_of
from gramercy.schemas.request import PERIOD

_ONE_DAY = datetime.timedelta(days=1)


def nothing_due(context: Context, request: Request, at: datetime.datetime) -> datetime.date | None:
    """The day on which a scheduled series has its first step complete; None if it has something.

    The window before is not begun late: whether its series exists is for the steward to decide.
    """
    cumulative = request.cumulative
    if cumulative is None or PERIOD not in request.version or request.period is not None:
        return None
    contract = read_contract(context.home.contract(request.dataset))
    today = request.day_of(contract, at)
    days = cumulative.window_at(contract.budget.per, today)
    if days.complete(today, cumulative.lag):
        return None
    if contract.budget.per != "lifetime" and _is_begun(context, make_plan(context, request, at=at)):
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
    cumulative, per = plan.request.cumulative, plan.contract.budget.per
    if cumulative is None or per == "lifetime" or PERIOD not in plan.pattern:
        return []
    first = cumulative.series(per, plan.contract.window(plan.request.version)).starts[0]
    label = cumulative.series(per, label_of(per, first - _ONE_DAY)).labels[-1]
    request = plan.request.model_copy(
        update={"version": label, "period": None, "new_charge": None}
    )
    last = make_plan(context, request, at=plan.planned_for)
    states = [each.state for each in series_charges(context, last)]
    if not states or any(each.is_closed for each in states):
        return []
    return [*missing_steps(context, last), last]


def _is_begun(context: Context, plan: Plan) -> bool:
    return bool(series_charges(context, plan))
