"""The page of one release, from its bundle, its estimates and its reports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gramercy.archive.bundles.card import file_description
from gramercy.archive.bundles.estimate_bundle import EstimateBundle, read_estimate
from gramercy.archive.bundles.package import DESCRIPTOR
from gramercy.archive.bundles.release_bundle import read_release
from gramercy.archive.bundles.report_bundle import PAGE, read_report
from gramercy.archive.listing.listing import ListedRelease
from gramercy.archive.seal.bundle import SEAL, SIGNATURE, SUMS, content, file_digest
from gramercy.archive.store.archive import Archive
from gramercy.reports.catalogue_page import Download, release_page
from gramercy.schemas.errors import BundleError


def release_html(archive: Archive, listed: ListedRelease) -> str:
    """The page of a release, after verifying the release.

    Raises
    ------
    BundleError
        If the release differs from what was sealed.
    ArchiveError
        If the archive cannot be read.
    """
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
