"""Run the flows in this process, one after the other, where nobody has scheduled them."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.text import Text

from gramercy import view
from schemas.errors import GramercyError, ServerError
from schemas.home import Home


def today(asked: Any) -> Any:
    """The request as it is asked for now: a version that is a pattern becomes a label."""
    return asked.on(datetime.datetime.now(datetime.UTC))


def publish(asked: Any) -> dict[str, Any]:
    """Release, estimate, report; what was done, as plain data."""
    from archive.release import PAGE
    from archive.store import Archive
    from ledger import Ledger
    from tasks.plan import make_plan, outlook

    home = Home.default()
    charged = outlook(make_plan(asked), Ledger(home.ledger)).before.charges
    start_prefect()
    from flows.estimate import estimate as estimate_flow
    from flows.release import release as release_flow
    from flows.report import report as report_flow

    done = _run(release_flow, asked)
    dataset, name = done.split("/")
    archive, problems = Archive(home.archive), []
    page: Path | None = None
    for flow in (estimate_flow, report_flow):
        try:
            made = _run(flow, done, asked.estimates)
        except GramercyError as error:  # published it is, all the same
            problems.append(str(error))
        else:
            page = archive.report(dataset, name, made) / PAGE if flow is report_flow else None
    asked_for = {each.id for each in asked.estimates}
    return {
        "release": done,
        "path": str(archive.release(dataset, name)),
        "estimates": [each for each in archive.estimates(dataset, name) if each in asked_for],
        "report": str(page) if page else None,
        "problems": problems,
        "replayed": name in {charge.release for charge in charged},
    }


def estimate(release: str, estimator: Any) -> str:
    """Estimate from a release; id of the estimate."""
    start_prefect()
    from flows.estimate import estimate as flow

    (done,) = _run(flow, release, (estimator,))
    return str(done)


def start_prefect() -> None:
    """Prefect as the command line wants it: patient at its start, silent on the terminal.

    Prefect reads these settings once, when it is first imported.
    """
    os.environ["GRAMERCY_PROGRESS"] = "1"
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")
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
