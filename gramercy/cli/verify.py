"""``gramercy verify``: recompute what releases state."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from gramercy.application.context import Context
from gramercy.application.verification import readable_ledger, to_verify, verify_release
from gramercy.archive.open import open_archive
from gramercy.archive.signing_keys import read_public
from gramercy.cli.options import ArchivePlace, AsJson, ReleaseNames
from gramercy.cli.output import terminal
from gramercy.schemas.errors import Invalid


def verify(
    names: ReleaseNames = None,
    archive: ArchivePlace = None,
    key: Annotated[
        list[Path] | None,
        typer.Option(help="Public key of a curator; repeatable. All must be signed by one."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Recompute everything a release states, and name the file that is wrong.

    Example: gramercy verify clinic --archive copy --key curator.pub
    """
    context = Context.default()
    store = open_archive(archive) if archive else context.archive
    if key:
        store = replace(store, trusted=frozenset(map(read_public, key)))
    ledger, missing = readable_ledger(context) if archive is None else (None, "")
    done = []
    for dataset, name in to_verify(store, ledger, names or []):
        facts: dict[str, Any] = {"release": f"{dataset}/{name}"}
        try:
            verified = verify_release(store, dataset, name, ledger)
            facts["checks"], facts["unchecked"] = list(verified.checks), list(verified.unchecked)
            if missing:
                facts["unchecked"].append(f"ledger: was not read: that needs {missing}")
        except Invalid as error:  # one damaged bundle hides no other
            facts["error"] = str(error)
        done.append(facts)
        if not json:
            _print(facts)
    if json:
        terminal.as_json(done)
    if any("error" in facts for facts in done):
        sys.exit(Invalid.exit_code)


def _print(facts: Mapping[str, Any]) -> None:
    """What was checked of a release, or what is wrong with it."""
    terminal.say(terminal.bold(facts["release"]))
    for words in facts.get("checks", ()):
        terminal.say(Text("  ✓ ", style="green"), words)
    for words in facts.get("unchecked", ()):
        terminal.say(Text("  ? ", style="yellow"), words)
    if "error" in facts:
        terminal.say(Text("  ✗ ", style="red"), facts["error"])
