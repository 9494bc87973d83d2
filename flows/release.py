"""Publish one release of a data set, from its table or from reports of its sources."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from gramercy.flows.untrusted import check_request
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan, check_scheduled_version, make_plan, utc_now
from gramercy.pipeline.plan.request_model import Request
from gramercy.pipeline.plan.step_charges import missing_steps
from gramercy.pipeline.publish.private_table import (
    copy_folder,
    remove_abandoned_copies,
    sums_of_step,
)
from gramercy.schemas.errors import GramercyError
from gramercy.tasks import steps
from gramercy.tasks.history import (
    attach_release,
    emit_published,
    log_ledger_head,
    scheduled_time,
    tag_run,
    verify_against_history,
)
from gramercy.tasks.policy import private_flow


@private_flow
def release(request: Request) -> str:
    """Validate, accumulate, publish; or return what the same request has published before.

    Of a cumulative series, all missing steps up to that of the version are published in order.

    Parameters
    ----------
    request
        Data set, version, mechanism and normalisation; all are public. The data set is the id of
        a registered contract. A version such as ``%G-W%V`` is formatted with the time for which
        the run is scheduled.

    Returns
    -------
    str
        ``<dataset>/<release id>``.
    """
    context = Context.default()
    check_request(context, request)
    return _steps(context, make_plan(context, request, at=scheduled_time()))


def release_as_planned(context: Context, plan: Plan) -> Callable[[Request], str]:
    """The same flow for a plan that was made before, with stores that are open."""

    @private_flow
    def release(request: Request) -> str:
        return _steps(context, plan)

    return release


def aggregate_as_planned(context: Context, plan: Plan) -> Callable[[Request, list[str]], str]:
    """The flow that publishes the average of reports, to which the sources have added noise.

    It cannot be deployed: only a steward's own command may name the paths of the reports.
    """

    @private_flow
    def aggregate(request: Request, reports: list[str]) -> str:
        return _steps(context, plan, reports)

    return aggregate


def _steps(context: Context, plan: Plan, reports: Sequence[str] | None = None) -> str:
    dataset = plan.contract.id
    remove_abandoned_copies(context.home)
    tag_run(context, dataset, charges=True)
    verify_against_history(context.ledger)
    log_ledger_head(context)
    missing, published = missing_steps(context, plan), list[str]()
    name = steps.replay(context, plan)
    if name is not None and reports is not None:
        steps.check_same_sources(context, plan, name, reports)
    elif reports is not None:
        name = steps.publish(context, plan, steps.sum_reports(plan, reports))
    elif name is None:
        check_scheduled_version(plan, utc_now())
        with copy_folder(context.home, plan.contract) as folder:
            if folder is not None:
                plan = steps.copy_table(plan, folder)
            steps.validate(plan.contract)
            data = steps.accumulate(plan)
            for earlier in missing:  # of a series, oldest first
                published.append(steps.publish(context, earlier, sums_of_step(earlier, data)))
                emit_published(context.home, earlier, published[-1])
                tag_run(context, dataset, *published, charges=True)
                attach_release(context, dataset, published[-1])
            name = steps.publish(context, plan, data)
    emit_published(context.home, plan, name)  # before anything that may still fail
    tag_run(context, dataset, *published, name, charges=True)
    attach_release(context, dataset, name)
    with contextlib.suppress(GramercyError):  # the report writes its pages again
        steps.catalogue(context, dataset, name)
    return f"{dataset}/{name}"
