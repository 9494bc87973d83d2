"""Compare the bundles of a release with the signed listing of their archive."""

from __future__ import annotations

from collections.abc import Iterator

from gramercy.archive.bundle import SUMS, file_digest
from gramercy.archive.contents import Contents, bundle_digests
from gramercy.archive.layout import LISTING_FILE
from gramercy.archive.protocol import Archive
from gramercy.archive.signed_listing import PartMissingError, read_part, read_root
from gramercy.schemas.errors import BundleError, GramercyError
from gramercy.schemas.problem import Notice
from gramercy.schemas.problems import listing as problems
from gramercy.schemas.problems.verification import bundles_not_listed, no_signed_listing

_ATTEMPTS = 3


def listing_problem(archive: Archive) -> GramercyError | None:
    """Why the listing of an archive cannot be used; None if it can, or if there is none."""
    try:
        for _ in range(_ATTEMPTS):
            signed = read_root(archive)
            listings = signed.root.datasets if signed else {}
            try:
                for dataset, listing in listings.items():
                    for digest in listing.parts:
                        read_part(archive, dataset, digest)
            except PartMissingError:  # perhaps a newer listing was written in the meantime
                continue
            return None
    except BundleError as error:
        return error
    return problems.listing_changing(f"{archive.location}/{LISTING_FILE}")


def check_listed(archive: Archive, dataset: str, release: str) -> tuple[str | None, Notice | None]:
    """Check that the bundles that the listing names are there, and are those that it names.

    Parameters
    ----------
    archive, dataset, release
        The release.

    Returns
    -------
    tuple
        What was checked, if there is a valid listing that names the release; and a notice if it
        lacks some of the bundles.

    Raises
    ------
    BundleError
        Naming the bundle that is missing or was replaced, or the part of the listing that was
        changed.
    """
    entry = Contents(archive).entry(dataset, release)
    digests = {} if entry is None else bundle_digests((dataset, release), entry)
    for names, digest in digests.items():
        folder = archive.metadata_path(*names)
        if folder is None:
            raise problems.listed_bundle_missing(
                archive.display_path(archive.root.joinpath(*names))
            )
        if file_digest(folder / SUMS) != digest:
            raise problems.not_as_listed(archive.display_path(archive.root.joinpath(*names)))
    listed = "listing: the signed listing of the archive names these bundles"
    if not _has_listing(archive, if_invalid=False):
        return None, None
    present = [("release",), *_attached(archive, dataset, release)]
    if missing := [each for each in present if (dataset, release, *each) not in digests]:
        problem = listing_problem(archive)
        if problem is not None and problem.code == problems.listing_part_changed.code:
            raise problem  # it may have named what was deleted
        return None, bundles_not_listed(f"{dataset}/{release}", tuple(map("/".join, missing)))
    return listed, None


def missing_listing(archive: Archive) -> Notice | None:
    """A notice that an archive has no listing, without which a deleted bundle is not missed."""
    if _has_listing(archive, if_invalid=True):
        return None
    return no_signed_listing(archive.display_path(archive.root / LISTING_FILE))


def _attached(archive: Archive, dataset: str, release: str) -> Iterator[tuple[str, ...]]:
    if archive.contains(archive.withdrawal(dataset, release)):
        yield ("withdrawn",)
    for name in archive.estimates(dataset, release):
        yield "estimates", name
    for name in archive.reports(dataset, release):
        yield "reports", name


def _has_listing(archive: Archive, *, if_invalid: bool) -> bool:
    try:
        return read_root(archive) is not None
    except BundleError:
        return if_invalid
