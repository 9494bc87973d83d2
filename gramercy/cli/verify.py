"""``gramercy verify``: recompute what releases state."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from rich.text import Text

from gramercy.application.context import Context
from gramercy.application.readable_ledger import readable_ledger
from gramercy.application.verification import select_releases, verify_release
from gramercy.cli.archive_options import archive_of_options
from gramercy.cli.options import ArchiveLocation, AsJson, PublicKeys, ReleaseNames
from gramercy.cli.output import terminal
from gramercy.schemas.errors import Invalid
from gramercy.schemas.problems.warnings import ledger_not_read


def verify(
    names: ReleaseNames = None,
    archive: ArchiveLocation = None,
    key: PublicKeys = None,
    json: AsJson = False,
) -> None:
    """Recompute what releases state, and name what differs.

    Checks seals, signatures and charges as well. The exit code is 2 if something differs.

    Example: gramercy verify clinic --archive copy --key curator.pub
    """
    context = Context.default()
    store = archive_of_options(context, archive, key)
    ledger, missing = readable_ledger(context) if archive is None else (None, "")
    done = []
    for dataset, name in select_releases(store, ledger, names or []):
        facts: dict[str, Any] = {"release": f"{dataset}/{name}"}
        try:
            verified = verify_release(store, dataset, name, ledger)
            facts["checks"] = list(verified.checks)
            facts["unchecked"] = [str(notice) for notice in verified.unchecked]
            if missing:
                facts["unchecked"].append(str(ledger_not_read(missing)))
        except Invalid as error:  # a damaged bundle must not hide the others
            facts["error"] = str(error)
        done.append(facts)
        if not json:
            _print(facts)
    if json:
        terminal.print_json(done)
    if any("error" in facts for facts in done):
        sys.exit(Invalid.exit_code)


def _print(facts: Mapping[str, Any]) -> None:
    """Print what was checked of a release, and what is wrong with it."""
    terminal.say(terminal.bold(facts["release"]))
    for statement in facts.get("checks", ()):
        terminal.say(Text("  ✓ ", style="green"), statement)
    for statement in facts.get("unchecked", ()):
        terminal.say(Text("  ? ", style="yellow"), statement)
    if "error" in facts:
        terminal.say(Text("  ✗ ", style="red"), facts["error"])
