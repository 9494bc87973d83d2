"""``gramercy audit``: whether ledger, archive and run history agree."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from json import loads
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from gramercy.application.audit_record import new_folder, write_audit
from gramercy.application.auditing import make_audit
from gramercy.application.context import Context
from gramercy.archive.signing_keys import read_public
from gramercy.cli import running
from gramercy.cli.options import AsJson
from gramercy.cli.output import terminal
from gramercy.schemas.errors import Discrepancies, RequestError


def audit(
    runs: Annotated[
        bool, typer.Option("--runs", help="Ask Prefect's run history, too; starts Prefect.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the report goes.")
    ] = None,
    key: Annotated[
        list[Path] | None,
        typer.Option(help="Public key of a curator, instead of the home's own; repeatable."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Hold ledger, archive and run history against each other. Changes nothing.

    Exit code 2 if anything does not agree. The report is written in any case, as HTML and JSON.

    Example: gramercy audit --runs --output audit
    """
    if runs and key:
        raise RequestError("--runs and --key: one at a time.", "Give the command twice.")
    context = Context.default()
    page = running.audit(context, output) if runs else _without_prefect(context, output, key, json)
    found: dict[str, Any] = loads(page.with_name("audit.json").read_text(encoding="utf-8"))
    if json:
        terminal.as_json(found)
    else:
        _print(found, page)
    if found["discrepancies"]:
        sys.exit(Discrepancies.exit_code)


def _without_prefect(
    context: Context, output: Path | None, key: list[Path] | None, quiet: bool
) -> Path:
    trusted = frozenset(map(read_public, key)) if key else None
    with terminal.doing("verifying", quiet) as on_release:
        made = make_audit(context, on_release=on_release, trusted=trusted)
    return write_audit(made, output or new_folder(context.home))


def _print(found: Mapping[str, Any], page: Path) -> None:
    """What the audit found."""
    wrong = found["discrepancies"]
    for each in found["releases"]:
        # What is wrong with it is said below.
        sign = Text("  ✗ ", style="red") if each["bundle"] == "wrong" else Text("  ✓ ", "green")
        state = Text(f"  {each['state']}; {each['bundle']}", style="dim")
        terminal.say(sign, each["release"], state)
    for each in found["notes"]:
        terminal.say(Text("Note: ", style="yellow"), each)
    for each in wrong:
        subject = terminal.bold(each["subject"])
        terminal.say(Text("Discrepancy: ", style="red"), subject, f": {each['words']}")
    entries, charges = found["head"]["seq"], len(found["releases"])
    words = f"{entries} entries of the ledger, {charges} charges: "
    verdict = "everything agrees." if not wrong else f"{len(wrong)} discrepancies."
    terminal.say(words, terminal.bold(verdict))
    terminal.say(f"Report: {page}")
