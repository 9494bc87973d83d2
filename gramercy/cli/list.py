"""``gramercy list``: the releases of the archive."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from gramercy.api.release import Release
from gramercy.application.context import Context
from gramercy.application.verification import list_releases, readable_ledger
from gramercy.archive.protocol import Archive
from gramercy.cli.options import AsJson
from gramercy.cli.output import terminal
from gramercy.cli.output.phrases import normalisation_text, privacy_loss_text
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.problems.warnings import ledger_not_read


def list_archive(json: AsJson = False) -> None:
    """List the releases of the archive.

    Example: gramercy list --json
    """
    context = Context.default()
    archive = context.archive
    ledger, missing = readable_ledger(context)
    if missing:
        terminal.warn(ledger_not_read(missing))
    listed = [_facts(archive, *key) for key in list_releases(archive, ledger)]
    if json:
        terminal.print_json(listed)
        return
    for facts in listed:
        name = terminal.bold(facts["release"])
        if "error" in facts:
            terminal.say(name, "  ", facts["error"])
        else:
            guarantee = privacy_loss_text(facts["epsilon"], facts["delta"])
            noise = ", ".join(filter(None, (facts["mechanism"], facts["normalisation"])))
            line = f"  {guarantee}  {noise}  {facts['published']}  {facts['title']}"
            withdrawn = f"  withdrawn: {facts['withdrawn']}" if facts["withdrawn"] else ""
            terminal.say(name, line, Text(withdrawn, style="red"))
    if not listed:
        terminal.say(f"No release in {archive.location} yet.")


def _facts(archive: Archive, dataset: str, name: str) -> dict[str, Any]:
    try:
        release = Release(archive, dataset, name)
    except GramercyError as error:  # a damaged bundle must not hide the others
        return {"release": f"{dataset}/{name}", "error": str(error)}
    manifest, guarantee = release.manifest, release.guarantee
    return {
        "release": release.id,
        "title": manifest.dataset.title,
        "published": manifest.published,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "mu": guarantee.mu,
        "mechanism": manifest.mechanism["name"],
        "normalisation": None
        if release.kind == "marginals"
        else normalisation_text(manifest.normalisation),
        "path": release.where,
        "withdrawn": release.withdrawn,
    }
