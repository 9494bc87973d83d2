"""Publish the average of reports that were noisy before they left their sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gramercy.application.context import Context
from gramercy.application.planning import Plan, make_plan
from gramercy.application.request_model import Request
from gramercy.tasks.announce import announce
from gramercy.tasks.history import hold_to_history
from gramercy.tasks.policy import private_flow
from gramercy.tasks.run_artifacts import scheduled, show_release, tag
from gramercy.tasks.steps import gather, publish, refuse_other_sources, replay


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
    context = Context.default()
    plan = make_plan(context, request, at=scheduled(), averaging=True)
    return _steps(context, plan, reports)


def aggregate_as_planned(context: Context, plan: Plan) -> Callable[[Request, list[str]], str]:
    """The flow, for whoever has made its plan already, and opened what it needs."""

    @private_flow
    def aggregate(request: Request, reports: list[str]) -> str:
        return _steps(context, plan, reports)

    return aggregate


def _steps(context: Context, plan: Plan, reports: Sequence[str]) -> str:
    dataset = plan.contract.id
    tag(context, dataset, charges=True)
    hold_to_history(context.ledger)
    done = replay(context, plan)
    if done is None:
        done = publish(context, plan, gather(plan, reports))
    else:
        refuse_other_sources(context, plan, done, reports)
    announce(context.home, plan, done)
    tag(context, dataset, done, charges=True)
    show_release(context, dataset, done)
    return f"{dataset}/{done}"
