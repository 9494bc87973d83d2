"""``gramercy verify``: recompute what releases state."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from gramercy.archive.seal.signing import signing_public_key
from gramercy.archive.store.archive import Archive
from gramercy.cli import terminal
from gramercy.cli.options import (
    ArchiveLocation,
    AsJson,
    IsCopy,
    PublicKeys,
    ReleaseNames,
    archive_of_options,
)
from gramercy.pipeline.context import Context
from gramercy.pipeline.verify.verification import (
    listing_problem,
    missing_listing,
    readable_ledger,
    select_releases,
    verify_release,
)
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import Invalid, UntrustedLedger


def verify(
    names: ReleaseNames = None,
    archive: ArchiveLocation = None,
    key: PublicKeys = None,
    copy: IsCopy = False,
    json: AsJson = False,
) -> None:
    """Recompute what releases state, and name what differs.

    Checks seals, signatures, charges and the ledger as well. The exit code is 2 if something
    differs.

    Example: gramercy verify clinic --archive copy --key curator.pub
    """
    context = Context.default()
    store, done = archive_of_options(context, archive, key), []
    for facts in _facts(context, store, names or [], of_home=archive is None, of_copy=copy):
        done.append(facts)
        if not json:
            _print(facts)
    if json:
        terminal.print_json(done)
    if any("error" in facts for facts in done):
        sys.exit(Invalid.exit_code)


def _facts(
    context: Context, archive: Archive, names: list[str], *, of_home: bool, of_copy: bool
) -> Iterator[dict[str, Any]]:
    """What was checked of each release, the listing and the ledger, and what is wrong with it."""
    ledger, missing = readable_ledger(context) if of_home else (None, "")
    releases, intact = select_releases(archive, ledger, names), []
    for dataset, name in releases:
        facts: dict[str, Any] = {"release": f"{dataset}/{name}"}
        try:
            verified = verify_release(archive, dataset, name, ledger)
            facts["checks"] = list(verified.checks)
            facts["unchecked"] = [str(notice) for notice in verified.unchecked]
            if ledger is None:
                notice = families.NOT_CHECKED(
                    "The charge was not compared with a ledger, because none was read."
                )
                if missing:
                    notice = wordings.ledger_not_read(missing)
                facts["unchecked"].append(str(notice))
                if unlisted := missing_listing(archive):
                    facts["unchecked"].append(str(unlisted))
            intact.append((dataset, name))
        except (Invalid, UntrustedLedger) as error:  # must not hide the others
            facts["error"] = str(error)
        yield facts
    if (problem := listing_problem(archive, intact, ledger)) is not None:
        yield {"ledger": "listing", "error": str(problem)}
    if ledger is not None:
        from gramercy.pipeline.verify.auditing import check_ledger  # needs SQLAlchemy

        check = check_ledger(ledger, archive, releases, context.witness, of_copy=of_copy)
        for subject, wrong in check.problems:
            yield {"ledger": subject, "error": str(wrong)}
        if check.notes:
            yield {"ledger": "ledger", "unchecked": [str(note) for note in check.notes]}
    elif of_home and not missing and signing_public_key(context.home.keys) is not None:
        yield {"ledger": "ledger", "error": str(wordings.no_ledger(str(context.home.ledger)))}


def _print(facts: Mapping[str, Any]) -> None:
    """Print what was checked of a release or the ledger, and what is wrong with it."""
    terminal.say(terminal.bold(facts.get("release") or facts["ledger"]))
    for statement in facts.get("checks", ()):
        terminal.say(Text("  ✓ ", style="green"), statement)
    for statement in facts.get("unchecked", ()):
        terminal.say(Text("  ? ", style="yellow"), statement)
    if "error" in facts:
        terminal.say(Text("  ✗ ", style="red"), facts["error"])
