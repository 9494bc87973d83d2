"""The catalogue's pages, written into the archive from public facts: its bundles and the ledger."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from gramercy import mechanisms
from gramercy.application.context import Context
from gramercy.application.release_changes import compared
from gramercy.archive.bundle import SEAL, SIGNATURE, SUMS, content, file_digest
from gramercy.archive.card import meaning
from gramercy.archive.estimate_bundle import EstimateBundle, read_estimate
from gramercy.archive.layout import GLOSSARY, INDEX
from gramercy.archive.listing import Listed, attempted
from gramercy.archive.package import DESCRIPTOR
from gramercy.archive.protocol import Archive
from gramercy.archive.release_bundle import PAGE, read_release, read_report
from gramercy.common.process_lock import on_this_machine
from gramercy.estimators.uncertainty.difference import comparable
from gramercy.ledger import Ledger
from gramercy.reports.catalogue_page import (
    Download,
    Shelf,
    dataset_page,
    glossary_page,
    index_page,
    release_page,
)
from gramercy.reports.change_summary import Compared
from gramercy.schemas.errors import BundleError, Invalid

_AGAIN = 5  # times: others may publish while these pages are written

Watcher = Callable[[str], None]


def catalogue(context: Context, dataset: str, release: str) -> None:
    """Write the pages that a release changes."""
    write_site(context, (dataset, release))


def write_site(
    context: Context,
    only: tuple[str, str] | None = None,
    watch: Watcher = lambda name: None,
) -> int:
    """Write the pages of a release and all that list it; or all pages there are.

    Parameters
    ----------
    context
        The archive, where the bundles lie and the pages go; and the ledger, if there is one.
    only
        (data set, release id); default: all of them.
    watch
        Told of each release whose page is written.

    Returns
    -------
    int
        How many releases' pages were written.

    Raises
    ------
    ArchiveError
        If a page cannot be written.
    """
    archive, ledger = context.archive, context.known_ledger
    with on_this_machine(context.home.locks, "catalogue.pages"):
        for _ in range(_AGAIN):
            known = archive.releases(), archive.withdrawals()
            written = _write(archive, ledger, known[0], only, watch)
            if (archive.releases(), archive.withdrawals()) == known:
                break
    return written


def _write(
    archive: Archive,
    ledger: Ledger | None,
    known: list[tuple[str, str]],
    only: tuple[str, str] | None,
    watch: Watcher,
) -> int:
    shelves = {name: _shelf(archive, ledger, name, known) for name in dict(known)}
    written = 0
    for name, shelf in shelves.items():
        if only and only[0] != name:
            continue
        damaged = set(shelf.damaged)
        for each in shelf.releases:
            if only and only[1] != each.facts.release:
                continue
            watch(each.name)
            try:
                archive.write_page(f"{each.name}/{INDEX}", _release(archive, each))
                written += 1
            except BundleError:
                damaged.add(each.name)
        shelves[name] = shelf.without(damaged)
        page = dataset_page(shelves[name], _compared(archive, shelves[name]))
        archive.write_page(f"{name}/{INDEX}", page)
    archive.write_page(INDEX, index_page(list(shelves.values())))
    archive.write_page(
        GLOSSARY, glossary_page([each.about() for each in mechanisms.registry.values()])
    )
    return written


def _shelf(
    archive: Archive, ledger: Ledger | None, dataset: str, known: list[tuple[str, str]]
) -> Shelf:
    """A data set; one damaged bundle hides no other, and 'gramercy verify' says what is wrong."""
    releases: list[Listed] = []
    damaged: list[str] = []
    names = [each for each in known if each[0] == dataset]
    for name, each in zip(names, attempted(archive, names), strict=True):
        if isinstance(each, Listed):
            releases.append(each)
        elif isinstance(each, Invalid):
            damaged.append("/".join(name))
        else:  # a store that cannot be reached says nothing of a bundle
            raise each
    registered = ledger is not None and dataset in ledger.datasets()
    lines = ledger.timelines(dataset) if ledger and registered else ()
    return Shelf(dataset, releases, damaged, lines)


def _compared(archive: Archive, shelf: Shelf) -> Compared | None:
    """The newest release that stands, and the one before it that speaks of the same."""
    standing = [each for each in shelf.releases if each.withdrawn is None]
    for later in standing[-1:]:
        for earlier in reversed(standing[:-1]):
            if comparable(later.facts, earlier.facts):
                with contextlib.suppress(BundleError):  # damaged: then the one before it
                    return compared(archive, later, earlier)
    return None


def _release(archive: Archive, each: Listed) -> str:
    dataset, name = each.facts.dataset.id, each.facts.release
    place = archive.release(dataset, name)
    with archive.naming():
        bundle = read_release(place)
    estimates = list(_estimates(archive, dataset, name, bundle.sha256))
    downloads = {"release": [*_files(place, "release")]}
    for one in estimates:
        called = one.manifest.estimate
        folder = archive.estimate(dataset, name, called)
        downloads[called] = [*_files(folder, f"estimates/{called}")]
    reports = dict(_reports(archive, dataset, name, bundle.sha256))
    where = archive.where if "://" in archive.where else "path/to/archive"
    return release_page(bundle, each, estimates, reports, downloads, where)


def _estimates(
    archive: Archive, dataset: str, release: str, sha256: str
) -> Iterator[EstimateBundle]:
    for name in archive.estimates(dataset, release):
        try:
            found = read_estimate(archive.estimate(dataset, release, name))
        except BundleError:  # not shown
            continue
        if found.manifest.release_sha256 == sha256:
            yield found


def _reports(
    archive: Archive, dataset: str, release: str, sha256: str
) -> Iterator[tuple[str, int]]:
    for name in archive.reports(dataset, release):
        try:
            facts = read_report(archive.report(dataset, release, name)).manifest
        except BundleError:
            continue
        if facts.release_sha256 == sha256:
            yield f"reports/{name}/{PAGE}", len(facts.estimates)


_MEANING = {
    DESCRIPTOR: "every public fact, for programs (Data Package)",
    SUMS: "the SHA-256 of every file",
    SIGNATURE: "the curator's signature of it",
}


def _files(folder: Path, at: str) -> Iterator[Download]:
    for name in [*content(folder), *sorted(SEAL)]:
        path = folder / name
        about = _MEANING.get(name) or (meaning(name) if at == "release" else "")
        about = "the guarantee in words" if name == "CARD.md" else about
        yield Download(f"{at}/{name}", path.stat().st_size, file_digest(path), about)
