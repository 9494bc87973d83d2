"""What a run of a cumulative series is to publish: every step that is complete and missing.

Steps are published in order. A run for the last complete step first publishes those that are
missing before it; a scheduled one also the last steps of the window before, if that was begun.
"""

from __future__ import annotations

import datetime

from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan, make_plan, utc_now
from gramercy.pipeline.plan.request_files import read_contract
from gramercy.pipeline.plan.request_model import Request
from gramercy.pipeline.plan.step_charges import charged_series
from gramercy.schemas.ledger_history import ChargeState
from gramercy.schemas.periods import label_of
from gramercy.schemas.request import PERIOD

_ONE_DAY = datetime.timedelta(days=1)


def waits_until(context: Context, request: Request, at: datetime.datetime) -> datetime.date | None:
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
        if charged_series(context.existing_ledger, plan).charges:
            return None
    return days.starts[1] + cumulative.lag * _ONE_DAY


def first_time(context: Context, request: Request) -> datetime.datetime:
    """The first time from now on at which a schedule has something to publish."""
    day = waits_until(context, request, utc_now())
    if day is None:
        return utc_now()
    return datetime.datetime.combine(day, datetime.time(12), datetime.UTC)  # this day in all zones


def unfinished_window(context: Context, plan: Plan) -> Plan | None:
    """The last step of the window before that of a scheduled series, if steps are missing there.

    None if the series of that window was not begun, or if a step of it is spent or withdrawn: then
    the steward decides.
    """
    cumulative, facts, per = plan.request.cumulative, plan.spec.cumulative, plan.contract.budget.per
    if cumulative is None or facts is None or per == "lifetime" or PERIOD not in plan.pattern:
        return None
    before = cumulative.series(per, label_of(per, facts.starts[0] - _ONE_DAY))
    update = {"version": before.labels[-1], "period": None, "new_charge": None}
    last = plan.request.model_copy(update=update)
    charges = charged_series(context.existing_ledger, plan, last).charges
    states = {each.series.step: each.state for each in charges if each.series is not None}
    published = [state is ChargeState.PUBLISHED for state in states.values()]
    is_closed = any(state.is_closed for state in states.values())
    if not states or is_closed or sum(published) == before.count:
        return None
    return make_plan(context, last, at=plan.planned_for)
