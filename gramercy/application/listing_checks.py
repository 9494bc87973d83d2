"""Compare the bundles of a release with the signed listing of their archive."""

from __future__ import annotations

from gramercy.archive.bundle import SUMS, file_digest
from gramercy.archive.contents import Contents, bundle_digests
from gramercy.archive.protocol import Archive
from gramercy.schemas.problems.listing import listed_bundle_missing, not_as_listed


def check_listed(archive: Archive, dataset: str, release: str) -> str | None:
    """Check that the bundles that the listing names are there, and are those that it names.

    Parameters
    ----------
    archive, dataset, release
        The release.

    Returns
    -------
    str or None
        What was checked; None if there is no valid listing, or it does not name the release.

    Raises
    ------
    BundleError
        Naming the bundle that is missing or was replaced.
    """
    entry = Contents(archive).entry(dataset, release)
    if entry is None:
        return None
    digests = bundle_digests((dataset, release), entry)
    for names, digest in digests.items():
        folder = archive.metadata_path(*names)
        if folder is None:
            raise listed_bundle_missing(archive.display_path(archive.root.joinpath(*names)))
        if file_digest(folder / SUMS) != digest:
            raise not_as_listed(archive.display_path(archive.root.joinpath(*names)))
    return "listing: the signed listing of the archive names these bundles"
