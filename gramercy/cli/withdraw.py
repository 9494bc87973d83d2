"""``gramercy withdraw``: withdraw a release."""

from __future__ import annotations

from typing import Annotated

import typer

from gramercy.api.release import Release
from gramercy.cli import terminal
from gramercy.cli.flow_runner import collect_problems
from gramercy.cli.options import AsJson, ReleaseName, Yes, split_name
from gramercy.pipeline.catalogue.catalogue_pages import write_site
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.step_charges import withdrawal_of_step
from gramercy.pipeline.publish.attachments import withdraw as withdraw_release
from gramercy.schemas import wordings


def withdraw(
    name: ReleaseName,
    reason: Annotated[str, typer.Option(help="Why; one line, public in the catalogue.")] = "",
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Withdraw a release. It stays readable, and its charge stays spent.

    Example: gramercy withdraw clinic/2026-11-r1 --reason "wrong table"
    """
    context, parts = Context.default(), split_name(name)
    release = Release(context.archive, *parts)
    if not release.withdrawn:
        notice_of_step = withdrawal_of_step(context.ledger, *parts)
        if notice_of_step is not None:
            terminal.warn(notice_of_step)
    if not yes:
        question = f"Withdraw {release.id}? Nothing is refunded."
        terminal.confirm(question, "Pass --yes to confirm.")
    notice = withdraw_release(context, *parts, reason)
    withdrawn = Release(context.archive, *parts)
    path = withdrawn.shown(notice)
    problems: list[str] = []
    with collect_problems(problems):
        write_site(context, parts)
    for problem in problems:
        terminal.warn(wordings.later_step_failed("The release is withdrawn", problem))
    if json:
        facts = {"release": withdrawn.id, "withdrawn": withdrawn.withdrawn, "path": path}
        terminal.print_json({**facts, "problems": problems})
    else:
        details = f": {withdrawn.withdrawn}\n{path}"
        terminal.say("Withdrawn: ", terminal.bold(withdrawn.id), details)
