"""Run the flows in this process, one after the other.

Prefect takes seconds to import, and reads its settings at import. So the flows are imported where
they are run, in `start_prefect`, and errors in the input are reported before.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

from rich.text import Text

from gramercy.api.release import Release
from gramercy.archive.bundles.bundle_kinds import read_estimate
from gramercy.archive.seal.bundle import SUMS
from gramercy.archive.store.archive import Archive
from gramercy.cli import terminal
from gramercy.cli.interruption import interruptible
from gramercy.cli.options import split_name
from gramercy.cli.prefect_server import shared_server, start_ahead
from gramercy.estimators import Estimator
from gramercy.ledger import Ledger
from gramercy.mechanisms.sampling import sampler
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.plan.step_charges import charged_series, earlier_charges
from gramercy.pipeline.progress import PROGRESS_VARIABLE, part_of_run
from gramercy.pipeline.publish.attachments import estimator_from_settings
from gramercy.pipeline.publish.charging import finished_release
from gramercy.pipeline.verify.auditing import new_audit_folder
from gramercy.schemas import families
from gramercy.schemas.errors import Discrepancies, GramercyError

NOTHING_CHARGED = "Nothing was charged or published."
UNKNOWN_CHARGE = "The ledger cannot be read: 'gramercy history' shows later what was charged."
CHARGED = "{release} was charged, and is not published."
OUTCOMES = {  # by the state of the charge
    "sealed": "{release} was charged, and its publication is not complete.",
    "published": "{release} was charged and published.",
}

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Published:
    """The result of a request."""

    release: str  # DATASET/RELEASE
    path: str
    estimates: list[str]  # ids of the requested ones that were made
    report: str | None
    problems: list[str]  # messages of the steps after the release that failed
    replayed: bool  # whether the release had been charged before
    # of a cumulative series, DATASET/RELEASE of the missing steps that were published first
    earlier_steps: list[str] = field(default_factory=list)


def publish(context: Context, plan: Plan, reports: Sequence[str] = ()) -> Published:
    """Publish a release, or the average of these reports; then estimate and report."""
    for folder in reports:
        if not (Path(folder) / SUMS).is_file():
            raise families.REPORTS(
                "{path} is not a sealed release.",
                "Name the folder 'release' in the output of 'gramercy randomize'.",
                path=folder,
            )
    charged = context.ledger.releases(plan.contract.id)
    archive, dataset = context.archive, plan.contract.id
    requested = {estimator.id for estimator in plan.request.estimates}
    problems: list[str] = []
    with interruptible(lambda: charge_outcome(context, plan, charged)):
        finished = finished_release(context, plan)
        made = [finished] if finished else _run_flows(context, plan, reports, problems)
        *earlier, name = made
        done = Published(
            release=f"{dataset}/{name}",
            path=archive.display_path(archive.release(dataset, name)),
            estimates=[each for each in archive.estimates(dataset, name) if each in requested],
            report=_report_path(archive, f"{dataset}/{name}"),
            problems=problems,
            replayed=name in charged,
            earlier_steps=[f"{dataset}/{each}" for each in earlier],
        )
    return done


def _run_flows(
    context: Context, plan: Plan, reports: Sequence[str], problems: list[str]
) -> list[str]:
    """The ids of the releases, that of the plan last.

    Messages of the steps after a release that fail are collected.
    """
    request = plan.request
    with start_prefect():
        from gramercy.flows.estimate import estimate_without_pages
        from gramercy.flows.release import aggregate_as_planned, release_as_planned
        from gramercy.flows.report import report, report_without_pages

        if plan.averaging:
            done = _run(aggregate_as_planned(context, plan), request, list(reports))
        else:
            # Load what a release will need while its server starts.
            import matplotlib.backends.backend_svg
            import matplotlib.figure  # noqa: F401
            import networkx  # noqa: F401

            sampler.self_test()
            done = _run(release_as_planned(context, plan), request)
        unfinished = [each for each in _without_report(context, plan) if each not in done]
        names = [*unfinished, *done]
        for number, name in enumerate(names, 1):
            for caveat in Release(context.archive, *split_name(name)).warnings:
                if caveat.kind == "count":
                    terminal.warn(caveat.notice)
            with part_of_run(split_name(name)[1], number, len(names)):
                with collect_problems(problems):
                    _run(estimate_without_pages(), name, request.estimates)
                with collect_problems(problems):
                    # The last report writes the pages of all releases.
                    report_flow = report if name == names[-1] else report_without_pages()
                    _run(report_flow, name, request.estimates)
    return [split_name(name)[1] for name in done]


def _without_report(context: Context, plan: Plan) -> list[str]:
    """Earlier steps of a series that were published by a run that ended before their reports."""
    dataset = plan.contract.id
    published = [
        each.release
        for each in earlier_charges(context.existing_ledger, plan)
        if each is not None and each.is_published
    ]
    return [f"{dataset}/{each}" for each in published if not context.archive.reports(dataset, each)]


@contextlib.contextmanager
def collect_problems(problems: list[str]) -> Iterator[None]:
    """Collect the message of a step that fails after the main result is complete."""
    try:
        yield
    except GramercyError as error:
        problems.append(str(error))


def estimate(
    context: Context, release: str, estimator: Estimator
) -> tuple[str, str | None, list[str]]:
    """Estimate from a release, and make a report with all its estimates.

    Returns the id of the estimate, the path of the report, and messages of later steps that failed.
    """
    archive, (dataset, name) = context.archive, split_name(release)
    problems: list[str] = []
    with interruptible(lambda: NOTHING_CHARGED), start_prefect():
        from gramercy.flows.estimate import estimate as estimate_flow
        from gramercy.flows.report import report as report_flow

        (done,) = _run(estimate_flow, release, (estimator,))
        with collect_problems(problems):
            ids = archive.estimates(dataset, name)
            folders = [archive.estimate(dataset, name, each) for each in ids]
            settings = [read_estimate(folder).manifest.estimator for folder in folders]
            _run(report_flow, release, tuple(map(estimator_from_settings, settings)))
    return done, _report_path(archive, release), problems


def audit(context: Context, folder: Path | None) -> Path:
    """Audit with Prefect's run history; returns the path of the page.

    Discrepancies raise no error: the caller reads them from the audit's JSON file.
    """
    target = folder or new_audit_folder(context.home)
    with interruptible(lambda: NOTHING_CHARGED), start_prefect():
        from gramercy.flows.audit import audit_into

        with contextlib.suppress(Discrepancies):
            _run(audit_into(target.absolute()))
    return target / "audit.html"


def charge_outcome(context: Context, plan: Plan, charged: Collection[str]) -> str:
    """What this command has charged until now, in a sentence; `charged` was charged before it."""
    try:
        ledger = Ledger.of(context.home)  # not the one that is in use: this may be another thread
        charges, series = ledger.charges(plan.contract.id), charged_series(ledger, plan).charges
    except GramercyError:
        return UNKNOWN_CHARGE
    of_plan = (each for each in charges if each.version == plan.request.version or each in series)
    new = [each for each in of_plan if each.release not in charged]
    if not new:
        return NOTHING_CHARGED
    name = f"{plan.contract.id}/{new[-1].release}"
    return OUTCOMES.get(new[-1].state, CHARGED).format(release=name)


@contextlib.contextmanager
def start_prefect() -> Iterator[None]:
    """Say that Prefect starts; flows in the block use its server, which is started if need be."""
    os.environ[PROGRESS_VARIABLE] = "1"
    terminal.say(Text("Starting Prefect ...", style="dim"), to=terminal.err)
    start_ahead()
    with shared_server():
        yield


def _run(flow: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """Run a flow; an error that is not a `GramercyError` comes from Prefect itself."""
    try:
        return flow(*arguments, **named)
    except GramercyError:
        raise
    except Exception as caught:
        reason = type(caught).__name__
    raise families.SERVER(
        "Prefect could not run the flow ({reason}).",
        "Run the same command again: it shows what became of the release. If PREFECT_API_URL is "
        "set, check that the server answers.",
        reason=reason,
    )


def _report_path(archive: Archive, release: str) -> str | None:
    page = Release(archive, *split_name(release)).report
    return archive.display_path(page) if page else None
