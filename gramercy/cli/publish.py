"""``gramercy release``, ``randomize`` and ``aggregate``: what is charged and published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from gramercy.application.context import Context
from gramercy.application.internal_record import page, recall
from gramercy.application.outlook import Outlook, outlook
from gramercy.application.planning import make_plan
from gramercy.application.yaml_files import read_request
from gramercy.cli import running
from gramercy.cli.options import AsJson, RequestPath, Yes, parts_of
from gramercy.cli.output import terminal
from gramercy.cli.output.plan_text import plan_text
from gramercy.cli.output.steward_notes import steward_notes
from gramercy.schemas.errors import RequestError

NewCharge = Annotated[
    bool, typer.Option("--new-charge", help="Pay again after an interrupted release.")
]


def release(
    request: RequestPath,
    yes: Yes = False,
    new_charge: NewCharge = False,
    json: AsJson = False,
) -> None:
    """Publish a release, or return the one that the same request published before.

    Example: gramercy release request.yaml --yes
    """
    _publish(request, yes, new_charge, json)


def randomize(
    request: RequestPath, yes: Yes = False, new_charge: NewCharge = False, json: AsJson = False
) -> None:
    """Make one noisy report of every row, where the rows are: for the mechanism 'local'.

    Example: gramercy randomize request.yaml --yes
    """
    if read_request(request).mechanism.name != "local":
        raise RequestError(f"{request}: asks for another mechanism.", "Write 'name: local'.")
    _publish(request, yes, new_charge, json)


def aggregate(
    request: RequestPath,
    reports: Annotated[
        list[Path],
        typer.Argument(metavar="REPORTS...", help="Releases of 'gramercy randomize': folders."),
    ],
    yes: Yes = False,
    new_charge: NewCharge = False,
    json: AsJson = False,
) -> None:
    """Publish the average of noisy reports from one or more sources.

    Example: gramercy aggregate request.yaml north/release south/release
    """
    _publish(request, yes, new_charge, json, [str(path.absolute()) for path in reports])


def _publish(
    request: Path, yes: bool, new_charge: bool, json: bool, reports: Sequence[str] | None = None
) -> None:
    context = Context.default()
    planned = make_plan(context, read_request(request), averaging=reports is not None)
    seen = outlook(context, planned)
    if new_charge:
        planned = planned.instead_of(_interrupted(seen))
    if not json:
        plan_text(planned, seen)
    if not yes:
        terminal.confirm("Publish? A charge is never refunded.", "Add --yes to publish.")
    done = running.publish(context, planned, seen, reports or ())
    steward_notes(recall(context.home, *parts_of(done.release)))
    for problem in done.problems:
        terminal.warn("It is published, but: ", problem)
    if json:
        terminal.as_json(asdict(done))
        return
    words = "Published before, nothing charged" if done.replayed else "Published"
    terminal.say(f"{words}: ", terminal.bold(done.release), f"\n{done.path}")
    terminal.say(f"Report: {done.report or 'none'}")
    if reports is None:
        internal = page(context.home, *parts_of(done.release))
        terminal.say(f"For you alone: {internal}", to=terminal.err)


def _interrupted(seen: Outlook) -> str | None:
    """The release that was charged for this request and then interrupted."""
    charge = seen.answered
    return charge.release if charge is not None and charge.state != "published" else None
