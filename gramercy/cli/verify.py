"""``gramercy verify``: recompute what releases state."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from gramercy.archive.seal.signing_keys import signing_public_key
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
from gramercy.pipeline.verify.listing_checks import listing_problem, missing_listing
from gramercy.pipeline.verify.verification import readable_ledger, select_releases, verify_release
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import Invalid, UntrustedLedger

if TYPE_CHECKING:
    from gramercy.ledger import Ledger


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
    store = archive_of_options(context, archive, key)
    ledger, missing = readable_ledger(context) if archive is None else (None, "")
    done, releases = [], select_releases(store, ledger, names or [])
    for dataset, name in releases:
        facts: dict[str, Any] = {"release": f"{dataset}/{name}"}
        try:
            verified = verify_release(store, dataset, name, ledger)
            facts["checks"] = list(verified.checks)
            facts["unchecked"] = [str(notice) for notice in verified.unchecked]
            if ledger is None:
                notice = (
                    wordings.ledger_not_read(missing)
                    if missing
                    else families.NOT_CHECKED(
                        "The charge was not compared with a ledger, because none was read.",
                    )
                )
                facts["unchecked"].append(str(notice))
                if unlisted := missing_listing(store):
                    facts["unchecked"].append(str(unlisted))
        except (Invalid, UntrustedLedger) as error:  # must not hide the others
            facts["error"] = str(error)
        done.append(facts)
        if not json:
            _print(facts)
    intact = [pair for pair, facts in zip(releases, done, strict=True) if "error" not in facts]
    if (problem := listing_problem(store, intact, ledger)) is not None:
        done.append({"ledger": "listing", "error": str(problem)})
        if not json:
            _print(done[-1])
    if archive is None and not missing:
        for facts in _ledger_facts(context, store, ledger, releases, of_copy=copy):
            done.append(facts)
            if not json:
                _print(facts)
    if json:
        terminal.print_json(done)
    if any("error" in facts for facts in done):
        sys.exit(Invalid.exit_code)


def _ledger_facts(
    context: Context,
    archive: Archive,
    ledger: Ledger | None,
    releases: list[tuple[str, str]],
    *,
    of_copy: bool,
) -> list[dict[str, Any]]:
    """What is wrong with the ledger of a home; that it is missing, if the home publishes."""
    if ledger is None:
        publishes = signing_public_key(context.home.keys) is not None
        missing = {"ledger": "ledger", "error": str(wordings.no_ledger(str(context.home.ledger)))}
        return [missing] if publishes else []
    from gramercy.pipeline.verify.auditing import check_ledger  # needs SQLAlchemy

    check = check_ledger(ledger, archive, releases, context.witness, of_copy=of_copy)
    notes = [str(note) for note in check.notes]
    return [
        *({"ledger": subject, "error": str(problem)} for subject, problem in check.problems),
        *([{"ledger": "ledger", "unchecked": notes}] if notes else []),
    ]


def _print(facts: Mapping[str, Any]) -> None:
    """Print what was checked of a release or the ledger, and what is wrong with it."""
    terminal.say(terminal.bold(facts.get("release") or facts["ledger"]))
    for statement in facts.get("checks", ()):
        terminal.say(Text("  ✓ ", style="green"), statement)
    for statement in facts.get("unchecked", ()):
        terminal.say(Text("  ? ", style="yellow"), statement)
    if "error" in facts:
        terminal.say(Text("  ✗ ", style="red"), facts["error"])
