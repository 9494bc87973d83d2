"""Publish one release of a data set."""

from __future__ import annotations

from gramercy.application.internal_record import record
from gramercy.application.planning import make_plan, refuse_late
from gramercy.application.request_model import Request
from gramercy.tasks.accumulate import accumulate
from gramercy.tasks.announce import announce
from gramercy.tasks.history import hold_to_history
from gramercy.tasks.policy import private_flow
from gramercy.tasks.publish import publish, replay
from gramercy.tasks.run_artifacts import now, scheduled, show_release, tag
from gramercy.tasks.validate import validate


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
    plan = make_plan(request.on(scheduled()))
    dataset = plan.contract.id
    tag(dataset, charges=True)
    hold_to_history()
    done, sampled = replay(plan), None
    if done is None:
        refuse_late(request, scheduled(), now())
        sampled = validate(plan.contract)
        done = publish(plan, accumulate(plan))
    announce(dataset, done, request.estimates)  # before anything that may still fail
    if sampled is not None:
        record(dataset, done, sampled)
    tag(dataset, done, charges=True)
    show_release(dataset, done)
    return f"{dataset}/{done}"
