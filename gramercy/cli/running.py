"""Run the flows in this process, one after the other, where nobody has scheduled them.

Prefect takes seconds to import and reads its settings while it is: so the flows are imported where
they are run, after `start_prefect`, and a mistake is told before.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from rich.text import Text

from gramercy.api.release import Release
from gramercy.application.audit_record import new_folder
from gramercy.application.context import Context
from gramercy.application.estimating import restored
from gramercy.application.outlook import Outlook
from gramercy.application.planning import Plan
from gramercy.application.progress import SHOWN
from gramercy.archive.bundle import SUMS
from gramercy.archive.estimate_bundle import read_estimate
from gramercy.archive.protocol import Archive
from gramercy.cli.options import parts_of
from gramercy.cli.output import terminal
from gramercy.estimators import Estimator
from gramercy.schemas.errors import Discrepancies, GramercyError, RequestError, ServerError
from gramercy.tables.source import open_source

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Published:
    """What was done for a request.

    Parameters
    ----------
    release, path
        DATASET/RELEASE, and where it is, for people.
    estimates, report
        Ids of the estimates that were asked for and made; the report, if there is one.
    problems
        What went wrong after the release.
    replayed
        Whether it had been charged before.
    """

    release: str
    path: str
    estimates: list[str]
    report: str | None
    problems: list[str]
    replayed: bool


def publish(context: Context, plan: Plan, seen: Outlook, reports: Sequence[str] = ()) -> Published:
    """Release, or average reports; then estimate and report.

    Parameters
    ----------
    context
        Where it is charged and published.
    plan, seen
        What is asked for, and what the ledger says of it.
    reports
        Those to average, where that is the plan.
    """
    archive, dataset = context.archive, plan.contract.id
    charged = context.ledger.releases(dataset)
    if seen.answered is None and not plan.averaging:
        open_source(plan.contract.source)
    for place in reports:
        if not (Path(place) / SUMS).is_file():
            raise RequestError(f"{place}: is no sealed release.", "Name its folder 'release'.")
    start_prefect()
    from gramercy.flows.aggregate import aggregate_as_planned
    from gramercy.flows.estimate import estimate as estimate_flow
    from gramercy.flows.release import release_as_planned
    from gramercy.flows.report import report as report_flow

    asked = plan.request
    if plan.averaging:
        done = _run(aggregate_as_planned(context, plan), asked, list(reports))
    else:
        done = _run(release_as_planned(context, plan), asked)
    _, name = parts_of(done)
    problems: list[str] = []
    with noted(problems):
        _run(estimate_flow, done, asked.estimates)
    with noted(problems):
        _run(report_flow, done, asked.estimates)
    asked_for = {each.id for each in asked.estimates}
    return Published(
        release=done,
        path=archive.shown(archive.release(dataset, name)),
        estimates=[each for each in archive.estimates(dataset, name) if each in asked_for],
        report=_report_of(archive, done),
        problems=problems,
        replayed=name in charged,
    )


@contextlib.contextmanager
def noted(problems: list[str]) -> Iterator[None]:
    """Note what goes wrong after a release: published it is, all the same."""
    try:
        yield
    except GramercyError as error:
        problems.append(str(error))


def estimate(
    context: Context, release: str, estimator: Estimator
) -> tuple[str, str | None, list[str]]:
    """Estimate from a release, and report on all its estimates; the id, the page, and problems."""
    start_prefect()
    from gramercy.flows.estimate import estimate as estimate_flow
    from gramercy.flows.report import report as report_flow

    (done,) = _run(estimate_flow, release, (estimator,))
    archive, (dataset, name) = context.archive, parts_of(release)
    problems: list[str] = []
    with noted(problems):
        ids = archive.estimates(dataset, name)
        places = [archive.estimate(dataset, name, each) for each in ids]
        known = tuple(restored(read_estimate(place).manifest.estimator) for place in places)
        _run(report_flow, release, known)
    return done, _report_of(archive, release), problems


def audit(context: Context, folder: Path | None) -> Path:
    """Audit with Prefect's history; returns the page, whatever was found."""
    start_prefect()
    from gramercy.flows.audit import audit as audit_flow

    place = folder or new_folder(context.home)
    with contextlib.suppress(Discrepancies):
        _run(audit_flow, str(place.absolute()))
    return place / "audit.html"


def start_prefect() -> None:
    """Prefect as the command line wants it: patient at its start, silent on the terminal."""
    os.environ[SHOWN] = "1"
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    words = "Starting Prefect (half a minute where no server runs) ..."
    terminal.say(Text(words, style="dim"), to=terminal.err)


def _run(flow: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """Run a flow; what is not one of our own errors comes from Prefect around it."""
    failure = ""
    try:
        return flow(*arguments, **named)
    except GramercyError:
        raise
    except Exception as caught:
        failure = type(caught).__name__
    raise ServerError(
        f"Prefect could not run the flow ({failure}).",
        "Check that the server of PREFECT_API_URL answers, or unset it. The same command tells "
        "what became of the release.",
    )


def _report_of(archive: Archive, release: str) -> str | None:
    """The page of a release that shows the most; also where something failed after it."""
    page = Release(archive, *parts_of(release)).report
    return archive.shown(page) if page else None
