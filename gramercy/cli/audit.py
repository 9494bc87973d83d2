"""``gramercy audit``: check that ledger, archive and run history agree."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from json import loads
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from gramercy.archive.seal.signing import read_public_key
from gramercy.cli import flow_runner, terminal
from gramercy.cli.options import AsJson, IsCopy
from gramercy.pipeline.context import Context
from gramercy.pipeline.verify.auditing import make_audit, new_audit_folder, write_audit
from gramercy.schemas import wordings
from gramercy.schemas.errors import Discrepancies


def audit(
    runs: Annotated[
        bool, typer.Option("--runs", help="Check Prefect's run history as well; starts Prefect.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder of the report; default: in the home."),
    ] = None,
    key: Annotated[
        list[Path] | None,
        typer.Option(
            help="File of a curator's public key, instead of the home's keys; repeatable."
        ),
    ] = None,
    copy: IsCopy = False,
    json: AsJson = False,
) -> None:
    """Check that ledger, archive and run history agree.

    Writes a report as HTML and JSON, and changes nothing else. The exit code is 2 if there is a
    discrepancy.

    Example: gramercy audit --runs --output audit
    """
    for option, given in (("--key", key), ("--copy", copy)):
        if runs and given:
            raise wordings.conflicting_options(("--runs", option))
    context = Context.default()
    if runs:
        page = flow_runner.audit(context, output)
    else:
        trusted = frozenset(map(read_public_key, key)) if key else None
        with terminal.progress("verifying", json) as on_release:
            result = make_audit(context, on_release=on_release, trusted=trusted, of_copy=copy)
        page = write_audit(context, result, output or new_audit_folder(context.home))
    facts: dict[str, Any] = loads(page.with_name("audit.json").read_text(encoding="utf-8"))
    if json:
        terminal.print_json(facts)
    else:
        _print(facts, page)
    if facts["discrepancies"]:
        sys.exit(Discrepancies.exit_code)


def _print(facts: Mapping[str, Any], page: Path) -> None:
    """Print the result of an audit."""
    discrepancies = facts["discrepancies"]
    for release in facts["releases"]:
        intact = release["bundle"] != "wrong"  # the discrepancies below give the details
        sign = Text("  ✓ ", style="green") if intact else Text("  ✗ ", style="red")
        state = Text(f"  {release['state']}; {release['bundle']}", style="dim")
        terminal.say(sign, release["release"], state)
    for note in facts["notes"]:
        terminal.say(Text("Note: ", style="yellow"), note)
    for discrepancy in discrepancies:
        label = Text(f"Discrepancy {discrepancy['code']}: ", style="red")
        terminal.say(label, terminal.bold(discrepancy["subject"]), f": {discrepancy['words']}")
    counts = f"Ledger entries: {facts['head']['seq']}; charges: {len(facts['releases'])}; "
    verdict = f"{len(discrepancies)} discrepancies." if discrepancies else "no discrepancies found."
    terminal.say(counts, terminal.bold(verdict))
    terminal.say(f"Report: {page}")
