"""Publish the average of reports to which the sources have added noise."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.plan.request_model import Request
from gramercy.schemas.errors import GramercyError
from gramercy.tasks.history import verify_against_history
from gramercy.tasks.policy import private_flow
from gramercy.tasks.release_event import emit_published
from gramercy.tasks.run_artifacts import attach_release, log_ledger_head, tag_run
from gramercy.tasks.steps import (
    catalogue,
    check_same_sources,
    publish,
    replay,
    sum_reports,
)


def aggregate_as_planned(context: Context, plan: Plan) -> Callable[[Request, list[str]], str]:
    """The flow for a plan that was made before, with stores that are open.

    It cannot be deployed: only a steward's own command may name the paths of the reports.
    """

    @private_flow
    def aggregate(request: Request, reports: list[str]) -> str:
        return _steps(context, plan, reports)

    return aggregate


def _steps(context: Context, plan: Plan, reports: Sequence[str]) -> str:
    dataset = plan.contract.id
    tag_run(context, dataset, charges=True)
    verify_against_history(context.ledger)
    log_ledger_head(context)
    name = replay(context, plan)
    if name is None:
        name = publish(context, plan, sum_reports(plan, reports))
    else:
        check_same_sources(context, plan, name, reports)
    emit_published(context.home, plan, name)
    tag_run(context, dataset, name, charges=True)
    attach_release(context, dataset, name)
    with contextlib.suppress(GramercyError):  # the report writes its pages again
        catalogue(context, dataset, name)
    return f"{dataset}/{name}"
