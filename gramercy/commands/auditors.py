"""Commands of those who check that ledger and archive tell one story."""

from __future__ import annotations

import sys
from json import loads
from pathlib import Path
from typing import Annotated, Any

import typer

from gramercy import running, view
from gramercy.commands.common import AsJson
from schemas.errors import Discrepancies, RequestError


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
    """
    if runs and key:
        raise RequestError("--runs and --key: one at a time.", "Give the command twice.")
    page = running.audit(output) if runs else _without_prefect(output, key, json)
    found: dict[str, Any] = loads(page.with_name("audit.json").read_text(encoding="utf-8"))
    if json:
        view.as_json(found)
    else:
        view.audit_text(found, page)
    if found["discrepancies"]:
        sys.exit(Discrepancies.exit_code)


def _without_prefect(output: Path | None, key: list[Path] | None, quiet: bool) -> Path:
    from archive.keys import read_public
    from tasks.audit import make_audit, write_audit

    trusted = frozenset(map(read_public, key)) if key else None
    with view.doing("verifying", quiet) as on_release:
        return write_audit(make_audit(on_release=on_release, trusted=trusted), output)
