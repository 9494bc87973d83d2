"""Run the flows in this process, one after the other, where nobody has scheduled them."""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.text import Text

from gramercy.application.progress import SHOWN
from gramercy.cli.output import view
from gramercy.common.home import Home
from gramercy.schemas.errors import Discrepancies, GramercyError, RequestError, ServerError


def today(asked: Any) -> Any:
    """The request as it is asked for now: a version that is a pattern becomes a label."""
    return asked.on(datetime.datetime.now(datetime.UTC))


def publish(asked: Any, reports: list[str] | None = None) -> dict[str, Any]:
    """Release, or average reports; then estimate and report; what was done, as plain data."""
    from gramercy.application.planning import make_plan, outlook
    from gramercy.archive.bundle import SUMS
    from gramercy.archive.store import Archive
    from gramercy.ledger import Ledger
    from gramercy.tables.source import open_source

    home = Home.default()
    planned = make_plan(asked, averaging=reports is not None)
    ledger, archive = Ledger.of(home), Archive.of(home)
    seen = outlook(planned, ledger)
    dataset = planned.contract.id
    charged = ledger.releases(dataset)
    if seen.answered is None and reports is None:
        open_source(planned.contract.source)  # a wrong path is told before Prefect starts
    for place in reports or ():
        if not (Path(place) / SUMS).is_file():
            raise RequestError(f"{place}: is no sealed release.", "Name its folder 'release'.")
    start_prefect()
    from gramercy.flows.aggregate import aggregate as aggregate_flow
    from gramercy.flows.estimate import estimate as estimate_flow
    from gramercy.flows.release import release as release_flow
    from gramercy.flows.report import report as report_flow

    done = _run(aggregate_flow, asked, reports) if reports else _run(release_flow, asked)
    name = done.split("/")[1]
    problems: list[str] = []
    with noted(problems):
        _run(estimate_flow, done, asked.estimates)
    with noted(problems):
        _run(report_flow, done, asked.estimates)
    asked_for = {each.id for each in asked.estimates}
    return {
        "release": done,
        "path": archive.shown(archive.release(dataset, name)),
        "estimates": [each for each in archive.estimates(dataset, name) if each in asked_for],
        "report": _report_of(archive, done),
        "problems": problems,
        "replayed": name in charged,
    }


@contextlib.contextmanager
def noted(problems: list[str]) -> Iterator[None]:
    """Note what goes wrong after a release: published it is, all the same."""
    try:
        yield
    except GramercyError as error:
        problems.append(str(error))


def estimate(release: str, estimator: Any) -> tuple[str, str | None, list[str]]:
    """Estimate from a release, and report on all its estimates; the id, the page, and problems."""
    from gramercy.application.request_model import restored
    from gramercy.archive.estimate_bundle import read_estimate
    from gramercy.archive.store import Archive

    start_prefect()
    from gramercy.flows.estimate import estimate as estimate_flow
    from gramercy.flows.report import report as report_flow

    (done,) = _run(estimate_flow, release, (estimator,))
    dataset, name = release.split("/")
    archive = Archive.of(Home.default())
    problems: list[str] = []
    with noted(problems):
        ids = archive.estimates(dataset, name)
        places = [archive.estimate(dataset, name, each) for each in ids]
        known = tuple(restored(read_estimate(place).manifest.estimator) for place in places)
        _run(report_flow, release, known)
    return str(done), _report_of(archive, release), problems


def _report_of(archive: Any, release: str) -> str | None:
    """The page of a release that shows the most; also where something failed after it."""
    from gramercy.api.release import Release

    page = Release(archive, *release.split("/")).report
    return archive.shown(page) if page else None


def audit(folder: Path | None) -> Path:
    """Audit with Prefect's history; returns the page, whatever was found."""
    start_prefect()
    from gramercy.application.auditing import new_folder
    from gramercy.flows.audit import audit as audit_flow

    place = folder or new_folder()
    with contextlib.suppress(Discrepancies):
        _run(audit_flow, str(place.absolute()))
    return place / "audit.html"


def start_prefect() -> None:
    """Prefect as the command line wants it: patient at its start, silent on the terminal.

    Prefect reads these settings once, when it is first imported.
    """
    os.environ[SHOWN] = "1"
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    words = "Starting Prefect (half a minute where no server runs) ..."
    view.say(Text(words, style="dim"), to=view.err)


def _run(flow: Callable[..., Any], *arguments: Any) -> Any:
    """Run a flow; what is not one of our own errors comes from Prefect around it."""
    failure = ""
    try:
        return flow(*arguments)
    except GramercyError:
        raise
    except Exception as caught:
        failure = type(caught).__name__
    raise ServerError(
        f"Prefect could not run the flow ({failure}).",
        "Check that the server of PREFECT_API_URL answers, or unset it. The same command tells "
        "what became of the release.",
    )
