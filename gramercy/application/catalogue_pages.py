"""Write the pages of the catalogue into the archive, from its bundles and the ledger."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from gramercy import mechanisms
from gramercy.application.context import Context
from gramercy.application.periods_over_time import period_series
from gramercy.application.release_changes import compare_releases
from gramercy.archive.bundle import SEAL, SIGNATURE, SUMS, content, file_digest
from gramercy.archive.card_page import file_description
from gramercy.archive.estimate_bundle import EstimateBundle, read_estimate
from gramercy.archive.layout import GLOSSARY, INDEX
from gramercy.archive.listing import ListedRelease, try_list
from gramercy.archive.package import DESCRIPTOR
from gramercy.archive.protocol import Archive
from gramercy.archive.release_bundle import PAGE, read_release, read_report
from gramercy.common.process_lock import file_lock
from gramercy.estimators.uncertainty.difference import comparable
from gramercy.ledger import Ledger
from gramercy.reports.catalogue_page import (
    DatasetEntry,
    Download,
    dataset_page,
    glossary_page,
    index_page,
    release_page,
)
from gramercy.reports.change_summary import ReleaseComparison
from gramercy.schemas.errors import BundleError, Invalid

_ATTEMPTS = 5  # other processes may publish while this one writes the pages

OnRelease = Callable[[str], None]


def catalogue(context: Context, dataset: str, release: str) -> None:
    """Write the pages that a new release changes."""
    write_site(context, (dataset, release))


def write_site(
    context: Context,
    only: tuple[str, str] | None = None,
    on_release: OnRelease = lambda name: None,
) -> int:
    """Write the pages of a release and those that list it, or all pages.

    Parameters
    ----------
    context
        The archive, for bundles and pages; and the ledger, if it exists.
    only
        (data set, release id); default: all releases.
    on_release
        Called with the name of each release whose page is written.

    Returns
    -------
    int
        Number of releases whose pages were written.

    Raises
    ------
    ArchiveError
        If a page cannot be written.
    """
    archive, ledger = context.archive, context.existing_ledger
    with file_lock(context.home.locks, "catalogue.pages"):
        for _ in range(_ATTEMPTS):
            listed = archive.releases(), archive.withdrawals()
            written = _write_pages(archive, ledger, listed[0], only, on_release)
            if (archive.releases(), archive.withdrawals()) == listed:
                break
    return written


def _write_pages(
    archive: Archive,
    ledger: Ledger | None,
    releases: list[tuple[str, str]],
    only: tuple[str, str] | None,
    on_release: OnRelease,
) -> int:
    entries = {name: _dataset_entry(archive, ledger, name, releases) for name in dict(releases)}
    written = 0
    for dataset, entry in entries.items():
        if only and only[0] != dataset:
            continue
        damaged = set(entry.damaged)
        for release in entry.releases:
            if only and only[1] != release.facts.release:
                continue
            on_release(release.name)
            try:
                archive.write_page(f"{release.name}/{INDEX}", _release_html(archive, release))
                written += 1
            except BundleError:
                damaged.add(release.name)
        entries[dataset] = entry.without(damaged)
        intact = entries[dataset]
        change, periods = _latest_change(archive, intact), period_series(archive, intact)
        page = dataset_page(intact, change, periods)
        archive.write_page(f"{dataset}/{INDEX}", page)
    archive.write_page(INDEX, index_page(list(entries.values())))
    archive.write_page(
        GLOSSARY, glossary_page([each.description() for each in mechanisms.registry.values()])
    )
    return written


def _dataset_entry(
    archive: Archive, ledger: Ledger | None, dataset: str, releases: list[tuple[str, str]]
) -> DatasetEntry:
    """The entry of a data set; a damaged bundle must not hide the others."""
    intact: list[ListedRelease] = []
    damaged: list[str] = []
    names = [name for name in releases if name[0] == dataset]
    for name, result in zip(names, try_list(archive, names), strict=True):
        if isinstance(result, ListedRelease):
            intact.append(result)
        elif isinstance(result, Invalid):
            damaged.append("/".join(name))
        else:  # a store that cannot be reached does not mean that a bundle is damaged
            raise result
    registered = ledger is not None and dataset in ledger.datasets()
    timelines = ledger.timelines(dataset) if ledger and registered else ()
    return DatasetEntry(dataset, intact, damaged, timelines)


def _latest_change(archive: Archive, entry: DatasetEntry) -> ReleaseComparison | None:
    """The newest release compared with the last one before it that is comparable."""
    valid = [release for release in entry.releases if release.withdrawn is None]
    for later in valid[-1:]:
        for earlier in reversed(valid[:-1]):
            if comparable(later.facts, earlier.facts):
                with contextlib.suppress(BundleError):  # damaged: use an earlier one
                    return compare_releases(archive, later, earlier)
    return None


def _release_html(archive: Archive, listed: ListedRelease) -> str:
    dataset, name = listed.facts.dataset.id, listed.facts.release
    place = archive.release(dataset, name)
    with archive.rewrite_paths_in_errors():
        bundle = read_release(place)
    estimates = list(_estimates(archive, dataset, name, bundle.sha256))
    downloads = {"release": [*_files(place, "release")]}
    for each in estimates:
        estimate = each.manifest.estimate
        folder = archive.estimate(dataset, name, estimate)
        downloads[estimate] = [*_files(folder, f"estimates/{estimate}")]
    reports = dict(_reports(archive, dataset, name, bundle.sha256))
    location = archive.location if "://" in archive.location else "path/to/archive"
    return release_page(bundle, listed, estimates, reports, downloads, location)


def _estimates(
    archive: Archive, dataset: str, release: str, sha256: str
) -> Iterator[EstimateBundle]:
    for name in archive.estimates(dataset, release):
        try:
            estimate = read_estimate(archive.estimate(dataset, release, name))
        except BundleError:  # a damaged estimate is left out of the page
            continue
        if estimate.manifest.release_sha256 == sha256:
            yield estimate


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


_DESCRIPTIONS = {
    DESCRIPTOR: "every public fact, for programs (Data Package)",
    SUMS: "the SHA-256 of every file",
    SIGNATURE: "the curator's signature of SHA256SUMS",
}


def _files(folder: Path, url: str) -> Iterator[Download]:
    for name in [*content(folder), *sorted(SEAL)]:
        path = folder / name
        about = _DESCRIPTIONS.get(name) or (file_description(name) if url == "release" else "")
        about = "the guarantee in words" if name == "CARD.md" else about
        yield Download(f"{url}/{name}", path.stat().st_size, file_digest(path), about)
