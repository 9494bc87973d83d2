"""Publish the average of reports that were noisy before they left their sources."""

from __future__ import annotations

from gramercy.application.planning import make_plan
from gramercy.application.request_model import Request
from gramercy.tasks.announce import announce
from gramercy.tasks.gather import gather, refuse_other_sources
from gramercy.tasks.history import hold_to_history
from gramercy.tasks.policy import private_flow
from gramercy.tasks.publish import publish, replay
from gramercy.tasks.run_artifacts import scheduled, show_release, tag


@private_flow
def aggregate(request: Request, reports: list[str]) -> str:
    """Gather, publish; or return what the same request has published before.

    Parameters
    ----------
    request
        As it was made at the sources, with the server's own contract.
    reports
        Folders of the sealed releases of ``gramercy randomize``.

    Returns
    -------
    str
        ``<dataset>/<release id>``.
    """
    plan = make_plan(request.on(scheduled()), averaging=True)
    dataset = plan.contract.id
    tag(dataset, charges=True)
    hold_to_history()
    done = replay(plan)
    if done is None:
        done = publish(plan, gather(plan, reports))
    else:
        refuse_other_sources(plan, done, reports)
    announce(dataset, done, request.estimates)
    tag(dataset, done, charges=True)
    show_release(dataset, done)
    return f"{dataset}/{done}"
