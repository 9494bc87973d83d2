"""``gramercy verify``: recompute what releases state."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

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
from gramercy.estimators.tuning.parallel import parallel_results
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
from gramercy.schemas.problem import Notice

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
    # Of many in a folder, every core verifies some.
    results = parallel_results if archive.is_folder else map
    verified = results(partial(_verified, archive, ledger), releases)
    for name, facts in zip(releases, verified, strict=True):
        if "error" not in facts:
            intact.append(name)
            if ledger is None:
                facts["unchecked"] += map(str, _without_ledger(archive, missing))
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


def _verified(archive: Archive, ledger: Ledger | None, name: tuple[str, str]) -> dict[str, Any]:
    """What was checked of a release, or what is wrong with it, which must not hide the others."""
    facts: dict[str, Any] = {"release": "/".join(name)}
    try:
        result = verify_release(archive, *name, ledger)
    except (Invalid, UntrustedLedger) as error:
        return facts | {"error": str(error)}
    return facts | {"checks": [*result.checks], "unchecked": [*map(str, result.unchecked)]}


def _without_ledger(archive: Archive, missing: str) -> Iterator[Notice]:
    """What was not checked, because no ledger was read. `missing`: what installs its packages."""
    yield (
        wordings.ledger_not_read(missing)
        if missing
        else families.NOT_CHECKED(
            "The charge was not compared with a ledger, because none was read."
        )
    )
    if unlisted := missing_listing(archive):
        yield unlisted


def _print(facts: Mapping[str, Any]) -> None:
    """Print what was checked of a release or the ledger, and what is wrong with it."""
    terminal.say(terminal.bold(facts.get("release") or facts["ledger"]))
    for statement in facts.get("checks", ()):
        terminal.say(Text("  ✓ ", style="green"), statement)
    for statement in facts.get("unchecked", ()):
        terminal.say(Text("  ? ", style="yellow"), statement)
    if "error" in facts:
        terminal.say(Text("  ✗ ", style="red"), facts["error"])
