"""``gramercy list``: the releases of the archive."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.text import Text

from gramercy.archive.listing.contents import Contents, Listed, ListedRelease
from gramercy.archive.store.archive import Archive
from gramercy.cli import terminal
from gramercy.cli.options import (
    ArchiveLocation,
    AsJson,
    DatasetName,
    PublicKeys,
    archive_of_options,
)
from gramercy.cli.terminal import normalisation_text, privacy_loss_text
from gramercy.common.similar_names import most_similar_first
from gramercy.pipeline.context import Context
from gramercy.pipeline.verify.verification import readable_ledger
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import GramercyError, printable
from gramercy.schemas.listing import ListedStep


def list_archive(
    dataset: DatasetName = None,
    archive: ArchiveLocation = None,
    key: PublicKeys = None,
    json: AsJson = False,
) -> None:
    """List the releases of an archive, or of one of its data sets.

    Shows what the signed listing of the archive states; gramercy verify checks the releases.

    Example: gramercy list clinic --archive https://example.org/archive --json
    """
    context = Context.default()
    store = archive_of_options(context, archive, key)
    ledger, missing = readable_ledger(context) if archive is None else (None, "")
    if missing:
        terminal.warn(wordings.ledger_not_read(missing))
    contents = Contents(store)
    if (problem := contents.unusable_listing()) is not None:
        terminal.warn(
            families.NOT_CHECKED(
                "The signed listing of the archive was not used: {problem}",
                "The releases themselves were read instead.",
                problem=str(problem),
            )
        )
    published = ledger.published() if ledger else set()
    results: Iterable[Listed]
    if dataset is None:
        results = contents.list_in_turn(published)
    else:  # in the archive, or published by the ledger
        wanted = {*contents.names(dataset), *(each for each in published if each[0] == dataset)}
        if not wanted:
            others = sorted({name for name, _ in (*contents.names(), *published)})
            known = most_similar_first(dataset, others)
            raise wordings.unknown_name(contents.archive.location, dataset, known)
        results = [contents.try_list(wanted)]
    listed = (_facts(store, *each) for part in results for each in part.items())
    if json:
        terminal.print_json_list(listed)
        return
    facts = None
    for facts in listed:
        name = terminal.bold(facts["release"])
        if "error" in facts:
            terminal.say(name, "  ", facts["error"])
        else:
            guarantee = privacy_loss_text(facts["epsilon"], facts["delta"])
            noise = ", ".join(filter(None, (facts["mechanism"], facts["normalisation"])))
            line = f"  {guarantee}  {noise}  {facts['published']}  {printable(facts['title'])}"
            if facts["step"] is not None:
                line += f"  {ListedStep(**facts['step']).in_words}"
            withdrawn = f"  withdrawn: {facts['withdrawn']}" if facts["withdrawn"] else ""
            terminal.say(name, line, Text(withdrawn, style="red"))
    if facts is None:
        terminal.say(f"No release in {store.location} yet.")


def _facts(
    archive: Archive, name: tuple[str, str], result: ListedRelease | GramercyError
) -> dict[str, Any]:
    if isinstance(result, GramercyError):  # a damaged bundle must not hide the others
        return {"release": "/".join(name), "error": str(result)}
    facts, guarantee = result.facts, result.facts.guarantee
    return {
        "release": result.name,
        "title": facts.dataset.title,
        "published": facts.published,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "mu": guarantee.mu,
        "step": facts.step and facts.step.model_dump(mode="json"),
        "mechanism": facts.mechanism.name,
        "normalisation": normalisation_text(facts.normalisation)
        if facts.publication.has_matrix
        else None,
        "path": archive.display_path(archive.root.joinpath(*name, "release")),
        "withdrawn": result.withdrawn,
    }
