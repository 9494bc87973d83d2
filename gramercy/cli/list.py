"""``gramercy list``: the releases of the archive."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from gramercy.api.release import Release
from gramercy.application.context import Context
from gramercy.application.verification import known_releases, readable_ledger
from gramercy.archive.protocol import Archive
from gramercy.cli.options import AsJson
from gramercy.cli.output import terminal
from gramercy.cli.output.phrases import normalisation
from gramercy.schemas.errors import GramercyError


def list_releases(json: AsJson = False) -> None:
    """List the releases of the archive.

    Example: gramercy list --json
    """
    context = Context.default()
    archive = context.archive
    ledger, missing = readable_ledger(context)
    if missing:
        terminal.warn("The ledger was not read: ", f"that needs {missing}.")
    listed = [_facts(archive, *key) for key in known_releases(archive, ledger)]
    if json:
        terminal.as_json(listed)
        return
    for each in listed:
        if "error" in each:
            terminal.say(terminal.bold(each["release"]), "  ", each["error"])
        else:
            guarantee = f"epsilon {each['epsilon']:.4g} at delta {each['delta']:g}"
            noise = f"{each['mechanism']}, {each['normalisation']}"
            words = f"  {guarantee}  {noise}  {each['published']}  {each['title']}"
            gone = f"  withdrawn: {each['withdrawn']}" if each["withdrawn"] else ""
            terminal.say(terminal.bold(each["release"]), words, Text(gone, style="red"))
    if not listed:
        terminal.say(f"No release in {archive.where} yet.")


def _facts(archive: Archive, dataset: str, name: str) -> dict[str, Any]:
    try:
        release = Release(archive, dataset, name)
    except GramercyError as error:  # one damaged bundle hides no other
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
        "normalisation": normalisation(manifest.normalisation),
        "path": release.where,
        "withdrawn": release.withdrawn,
    }
