"""Whether the period of a release is over."""

from __future__ import annotations

from gramercy.pipeline.plan.planning import Plan
from gramercy.schemas import families
from gramercy.schemas.periods import days_of
from gramercy.schemas.problem import Notice


def unfinished_period(plan: Plan) -> Notice | None:
    """A warning if a release is planned before the period of its data is over.

    It is charged to that period, and a release of all its rows needs another charge.
    """
    contract, per = plan.contract, plan.contract.budget.per
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
