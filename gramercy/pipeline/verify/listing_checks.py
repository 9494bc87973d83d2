"""Compare an archive with its signed listing: bundles, and pages of the catalogue."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from gramercy.archive.listing.contents import Contents, bundle_digests
from gramercy.archive.listing.signed_listing import PartMissingError, load_part, read_root
from gramercy.archive.seal.bundle import SUMS, file_digest
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.layout import CATALOGUE_LOCK, LISTING_FILE, is_page, release_page
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import ArchiveError, BundleError, GramercyError, LedgerError
from gramercy.schemas.listing import ListingEntry, ListingRoot
from gramercy.schemas.problem import Notice

if TYPE_CHECKING:
    from gramercy.ledger import Ledger

_ATTEMPTS = 3
_PAGE_BYTES = 1 << 26  # no page is larger

Name = tuple[str, str]


def listing_problem(
    archive: Archive,
    releases: Collection[Name],
    ledger: Ledger | None = None,
    files: Collection[str] = (),
) -> GramercyError | None:
    """The first reason why an archive is not what its signed listing says; None if there is none.

    The listing is read first, then the bundles that it should name are looked for, and then the
    pages are compared with it. One cause often shows in all three, and is reported once.

    Parameters
    ----------
    releases
        (data set, release) of the intact releases to look at; other releases and other data sets,
        with their pages, are left out.
    ledger
        The ledger that has published them, if it is known. Then a listing that is missing or of
        another ledger is a problem, and so is a damaged part of any data set.
    files
        Names of files of the archive. A page among them that the listing does not name is a
        problem; the pages of `releases` are looked for in any case.
    """

    def first() -> GramercyError | None:
        try:
            return _first_problem(archive, releases, ledger, files)
        except BundleError as error:
            return error

    problem = first()
    if problem is not None and ledger is not None:
        # A command may just be writing; an auditor may lack the permission to wait for it.
        with suppress(LedgerError), ledger.lock(CATALOGUE_LOCK):
            problem = first()
    return problem


def _first_problem(
    archive: Archive, releases: Collection[Name], ledger: Ledger | None, files: Collection[str]
) -> GramercyError | None:
    path = f"{archive.location}/{LISTING_FILE}"
    read = _read_listing(archive, None if ledger else {dataset for dataset, _ in releases})
    if read is None:
        return (
            families.LISTING(
                "{path} is missing, although releases were published.",
                "It was deleted, or a command was interrupted. As the steward, run "
                "'gramercy site', which writes all pages and the listing again; as a "
                "reader, ask the curator to.",
                path=path,
            )
            if ledger is not None and releases
            else None
        )
    root, entries = read
    if ledger is not None and not root.is_of(ledger.head().ledger):
        return families.LISTING(
            "{path} is not the listing of the archive of this ledger.",
            "It was copied from another archive, or written without the ledger. As "
            "the steward, run 'gramercy site', which writes all pages and the listing "
            "again; as a reader, ask the curator to.",
            path=path,
        )
    if (problem := _bundle_problem(archive, releases, entries, path)) is not None:
        return problem
    if differing := tuple(_differing_pages(archive, releases, root, entries, files)):
        return families.LISTING(
            "Pages of the archive are not those that {path} names: {pages}.",
            "They were changed, or a command was interrupted while it wrote them. As "
            "the steward, run 'gramercy site', which writes all pages and the listing "
            "again; as a reader, ask the curator to.",
            path=path,
            pages=differing,
        )
    return None


def _read_listing(
    archive: Archive, only: Collection[str] | None
) -> tuple[ListingRoot, dict[Name, ListingEntry]] | None:
    """The root, and the entries of all data sets or only of some; None if there is no listing."""
    for _ in range(_ATTEMPTS):
        signed = read_root(archive)
        if signed is None:
            return None
        listings = signed.root.datasets
        with suppress(PartMissingError):  # perhaps a newer listing was written in the meantime
            entries = {
                (dataset, each.facts.release): each
                for dataset, listing in listings.items()
                if only is None or dataset in only
                for digest in listing.parts
                for each in load_part(archive, dataset, digest).releases
            }
            return signed.root, entries
    raise families.LISTING(
        "{path} names a part of the listing that is missing.",
        "It was deleted, or the archive was copied incompletely. As the steward, run 'gramercy "
        "site', which writes all pages and the listing again; as a reader, ask the curator to.",
        path=f"{archive.location}/{LISTING_FILE}",
    )


def _bundle_problem(
    archive: Archive,
    releases: Collection[Name],
    entries: Mapping[Name, ListingEntry],
    path: str,
) -> GramercyError | None:
    """Whether the archive lacks bundles of these releases that are listed, or has others."""
    present: dict[Name, list[tuple[str, ...]]] = {name: [] for name in releases}
    for dataset in {dataset for dataset, _ in releases}:
        for names in archive.bundles(dataset):
            present.get((names[0], names[1]), []).append(names)
    unlisted = []
    for name in sorted(releases):
        listed = bundle_digests(name, entries[name]) if name in entries else {}
        for names in sorted(listed.keys() - present[name]):
            return wordings.listed_bundle_missing(
                archive.display_path(archive.root.joinpath(*names))
            )
        for names in present[name]:
            folder = archive.metadata_path(*names)
            if folder is not None and file_digest(folder / SUMS) != listed.get(names):
                unlisted.append("/".join(names))
    return (
        families.LISTING(
            "{path} does not name {names}.",
            "An older listing was put back, or a command was interrupted or is still "
            "running. As the steward, run 'gramercy site', which writes all pages and the "
            "listing again; as a reader, ask the curator to.",
            path=path,
            names=tuple(unlisted),
        )
        if unlisted
        else None
    )


def _differing_pages(
    archive: Archive,
    releases: Collection[Name],
    root: ListingRoot,
    entries: Mapping[Name, ListingEntry],
    files: Collection[str],
) -> Iterator[str]:
    """The pages that are not as the listing names them, and what is wrong with each."""
    listed: dict[str, str | None] = dict(root.pages)
    listed |= {release_page(*name): entry.page for name, entry in entries.items()}
    pages = {release_page(*name) for name in releases}
    folders = {"", *(dataset for dataset, _ in releases)}
    pages |= {name for name in root.pages if name.rpartition("/")[0] in folders}
    pages |= {name for name in files if is_page(name) and listed.get(name) is None}
    for name in sorted(pages):
        expected, found = listed.get(name), _page_digest(archive, name)
        if found != expected:
            state = "missing" if found is None else "changed" if expected else "not listed"
            yield f"{name} ({state})"


def _page_digest(archive: Archive, name: str) -> str | None:
    """The digest of a page; None if there is no such file, empty if it cannot be a page."""
    try:
        content = archive.read_file(name, _PAGE_BYTES)
    except BundleError:  # not a regular file
        return ""
    except ArchiveError as error:
        if error.code != families.FILE_TOO_LARGE.code:
            raise
        return ""
    return None if content is None else hashlib.sha256(content).hexdigest()


def check_listed(archive: Archive, dataset: str, release: str) -> str | None:
    """Check that the bundles that the listing names are there, and are those that it names."""
    entry = Contents(archive).entry(dataset, release)
    if entry is None:
        return None
    for names, digest in bundle_digests((dataset, release), entry).items():
        folder = archive.metadata_path(*names)
        if folder is None:
            raise wordings.listed_bundle_missing(
                archive.display_path(archive.root.joinpath(*names))
            )
        if file_digest(folder / SUMS) != digest:
            raise wordings.not_as_listed(archive.display_path(archive.root.joinpath(*names)))
    return "listing: the signed listing of the archive names these bundles"


def missing_listing(archive: Archive) -> Notice | None:
    """A notice that an archive has no listing, without which a deleted bundle is not missed."""
    with suppress(BundleError):  # it has one, which is not valid
        if read_root(archive) is None:
            return families.NOT_CHECKED(
                "{path} is missing, so a deleted release or withdrawal would not be noticed.",
                "Ask the curator for the signed listing.",
                path=archive.display_path(archive.root / LISTING_FILE),
            )
    return None
