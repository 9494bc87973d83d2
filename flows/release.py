"""Publish one release of a data set."""

from __future__ import annotations

from collections.abc import Callable

from gramercy.application.context import Context
from gramercy.application.internal_record import record
from gramercy.application.planning import Plan, make_plan, now, refuse_late
from gramercy.application.request_model import Request
from gramercy.tasks.announce import announce
from gramercy.tasks.history import hold_to_history
from gramercy.tasks.policy import private_flow
from gramercy.tasks.run_artifacts import scheduled, show_release, tag
from gramercy.tasks.steps import accumulate, publish, replay, validate


@private_flow
def release(request: Request) -> str:
    """Validate, accumulate, publish; or return what the same request has published before.

    Parameters
    ----------
    request
        Data set, version, mechanism and normalisation: public facts, all of them. A version such
        as ``%G-W%V`` takes the day for which the run is scheduled.

    Returns
    -------
    str
        ``<dataset>/<release id>``.
    """
    context = Context.default()
    return _steps(context, make_plan(context, request, at=scheduled()))


def release_as_planned(context: Context, plan: Plan) -> Callable[[Request], str]:
    """The flow, for whoever has made its plan already, and opened what it needs."""

    @private_flow
    def release(request: Request) -> str:
        return _steps(context, plan)

    return release


def _steps(context: Context, plan: Plan) -> str:
    dataset = plan.contract.id
    tag(context, dataset, charges=True)
    hold_to_history(context.ledger)
    done, sampled = replay(context, plan), None
    if done is None:
        refuse_late(plan, now())
        sampled = validate(plan.contract)
        done = publish(context, plan, accumulate(plan))
    announce(context.home, plan, done)  # before anything that may still fail
    if sampled is not None:
        record(context.home, dataset, done, sampled)
    tag(context, dataset, done, charges=True)
    show_release(context, dataset, done)
    return f"{dataset}/{done}"
