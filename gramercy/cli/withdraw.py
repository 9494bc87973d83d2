"""``gramercy withdraw``: mark a bad release."""

from __future__ import annotations

from typing import Annotated

import typer

from gramercy.api.release import Release
from gramercy.application.catalogue_pages import write_site
from gramercy.application.context import Context
from gramercy.application.withdrawal import withdraw as withdraw_release
from gramercy.cli.options import AsJson, ReleaseName, Yes, parts_of
from gramercy.cli.output import terminal
from gramercy.cli.running import noted


def withdraw(
    name: ReleaseName,
    reason: Annotated[str, typer.Option(help="Why; public, in the catalogue.")] = "",
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Mark a bad release in the catalogue. It stays readable, and its charge stays spent.

    Example: gramercy withdraw clinic/2026-11-r1 --reason "wrong table"
    """
    context, parts = Context.default(), parts_of(name)
    release = Release(context.archive, *parts)
    if not yes:
        question = f"Withdraw {release.id}? Nothing is refunded."
        terminal.confirm(question, "Add --yes to withdraw it.")
    place = withdraw_release(context, *parts, reason)
    withdrawn = Release(context.archive, *parts)
    where = withdrawn.shown(place)
    problems: list[str] = []
    with noted(problems):  # everybody should see it
        write_site(context, parts)
    for problem in problems:
        terminal.warn("It is withdrawn, but: ", problem)
    if json:
        facts = {"release": withdrawn.id, "withdrawn": withdrawn.withdrawn, "path": where}
        terminal.as_json({**facts, "problems": problems})
    else:
        words = f": {withdrawn.withdrawn}\n{where}"
        terminal.say("Withdrawn: ", terminal.bold(withdrawn.id), words)
