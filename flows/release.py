"""Publish one release of a data set, from its table or from reports of its sources."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from gramercy.flows.untrusted import check_request
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.due_steps import unfinished_window, waits_until
from gramercy.pipeline.plan.planning import Plan, check_scheduled_version, make_plan, utc_now
from gramercy.pipeline.plan.request_model import Request
from gramercy.pipeline.plan.step_charges import missing_steps
from gramercy.pipeline.progress import announce_step, part_of_run
from gramercy.pipeline.publish.private_table import (
    copy_folder,
    remove_abandoned_copies,
    sums_of_step,
)
from gramercy.pipeline.publish.table_validation import keep_outcome
from gramercy.pipeline.validation.outcome import Outcome
from gramercy.pipeline.validation.suite import Job
from gramercy.pipeline.validation.worker_process import worker
from gramercy.schemas.errors import GramercyError
from gramercy.tasks import steps
from gramercy.tasks.approval import approved
from gramercy.tasks.history import (
    attach_release,
    describe_run,
    emit_published,
    log_ledger_head,
    scheduled_time,
    verify_against_history,
)
from gramercy.tasks.policy import ended_before_the_flow, log_fact, private_flow


@private_flow
def release(request: Request) -> list[str]:
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
    list of str
        ``<dataset>/<release id>`` of each release, the requested one last; empty if no step of
        the series is complete.
    """
    context, at = Context.default(), scheduled_time()
    check_request(context, request)
    describe_run(context, request.dataset, request.version)  # its plan may be refused
    if (first_due := waits_until(context, request, at)) is not None:
        log_fact(
            f"Nothing to publish: the first step of the series is complete on {first_due}. "
            "Nothing was charged."
        )
        return []
    return _steps(context, make_plan(context, request, at=at))


def release_as_planned(context: Context, plan: Plan) -> Callable[[Request], list[str]]:
    """The same flow for a plan that was made before, with stores that are open."""

    @private_flow
    def release(request: Request) -> list[str]:
        return _steps(context, plan)

    return release


def aggregate_as_planned(context: Context, plan: Plan) -> Callable[[Request, list[str]], list[str]]:
    """The flow that publishes the average of reports, to which the sources have added noise.

    It cannot be deployed: only a steward's own command may name the paths of the reports.
    """

    @private_flow
    def aggregate(request: Request, reports: list[str]) -> list[str]:
        return _steps(context, plan, reports)

    return aggregate


def _steps(context: Context, plan: Plan, reports: Sequence[str] | None = None) -> list[str]:
    dataset, version, done = plan.contract.id, plan.request.version, list[str]()
    remove_abandoned_copies(context.home)
    describe_run(context, dataset, version, charges=True)
    verify_against_history(context.ledger)
    log_ledger_head(context)
    before = unfinished_window(context, plan)
    try:
        for last in (plan,) if before is None else (before, plan):
            for each, name in _published(context, last, reports):
                emit_published(context.home, each, name)  # before anything that may still fail
                done.append(f"{dataset}/{name}")
                describe_run(context, dataset, version, *done, charges=True)
                attach_release(context, dataset, name)
    finally:
        if done:
            with contextlib.suppress(GramercyError):  # the report writes its pages again
                steps.catalogue(context, dataset, name)  # with those of all others
    return done


def _published(
    context: Context, plan: Plan, reports: Sequence[str] | None
) -> Iterator[tuple[Plan, str]]:
    """Publish a plan, and the steps of a series that are missing before it, oldest first."""
    missing = missing_steps(context, plan)
    name = steps.replay(context, plan)
    if name is not None and reports is not None:
        steps.check_same_sources(context, plan, name, reports)
    elif reports is not None:
        name = steps.publish(context, plan, steps.sum_reports(plan, reports))
    elif name is None:
        check_scheduled_version(plan, utc_now())
        *missing, plan = approved(context, [*missing, plan])
        yield from _read_and_publish(context, plan, missing)
        return
    yield plan, name


def _read_and_publish(
    context: Context, plan: Plan, missing: Sequence[Plan]
) -> Iterator[tuple[Plan, str]]:
    """Read a table, validate it meanwhile, and publish; what cells show is for the steward."""
    with (
        ended_before_the_flow() as submitted,  # after the worker, which lets any caller go
        worker() as process,
        copy_folder(context.home, plan.contract) as folder,
    ):
        copied = plan if folder is None else steps.copy_table(plan, folder)
        steps.validate(copied.contract)
        outcome = Outcome(Job.of(context.home, plan.contract, copied.contract))
        validation = (context, copied, outcome, process)
        of_columns = steps.expectations.submit(*validation)
        of_cells = steps.sampled_expectations.submit(*validation, wait_for=[of_columns])
        submitted += [of_columns, of_cells]
        data = steps.accumulate(copied)
        with announce_step("expectations"):
            of_columns.result()
        if not outcome.columns:  # no row was read for it: the reason is not in the table
            log_fact(
                "Great Expectations did not validate columns and types; they were compared with "
                "the contract without it."
            )
        count = len(missing) + 1
        for number, earlier in enumerate(missing, 1):
            log_fact(f"Step {earlier.request.version}, {number} of {count}.")
            with part_of_run(earlier.request.version, number, count):
                name = steps.publish(context, earlier, sums_of_step(earlier, data))
            yield earlier, name
        with part_of_run(plan.request.version, count, count):
            name = steps.publish(context, copied, data)
        yield plan, name
        with announce_step("sampled_expectations"):
            of_cells.result()
        keep_outcome(context, plan.contract.id, name, outcome)
