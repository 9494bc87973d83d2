"""The signed listing of an archive, and archives that are read by it: codes 480 to 499."""

from __future__ import annotations

from gramercy.schemas.errors import ArchiveError, BundleError, InvalidValue, RequestError
from gramercy.schemas.problem import problem

_SITE = (
    "As the steward, run 'gramercy site', which writes all pages and the listing again; "
    "as a reader, ask the curator to."
)


@problem("GRM-480", InvalidValue, "A release refers to columns that the listing does not have.")
def columns_not_listed() -> None:
    """A part of a listing names each list of columns once; a release states an unknown one."""


@problem("GRM-481", BundleError, "{path} is not a listing of an archive ({reason}).", _SITE)
def not_a_listing(path: str, reason: str) -> None:
    """The file is too large, is not JSON of the expected form, or contradicts its place."""


@problem("GRM-482", BundleError, "{path} has no valid signature.", _SITE)
def listing_not_signed(path: str) -> None:
    """The listing was changed after it was signed, or its signature is missing."""


@problem(
    "GRM-491",
    BundleError,
    "{path} is missing, although releases were published.",
    f"It was deleted, or a command was interrupted. {_SITE}",
)
def listing_missing(path: str) -> None:
    """The ledger has published releases, and the archive does not have a signed listing."""


@problem(
    "GRM-492",
    BundleError,
    "{path} is not the listing of the archive of this ledger.",
    f"It was copied from another archive, or written without the ledger. {_SITE}",
)
def listing_of_another_ledger(path: str) -> None:
    """The listing is signed by a trusted key, and states another ledger or none."""


@problem(
    "GRM-493",
    BundleError,
    "{path} names a part of the listing that is missing.",
    f"It was deleted, or the archive was copied incompletely. {_SITE}",
)
def listing_part_missing(path: str) -> None:
    """The root of the listing is valid, and one of the files that it names does not exist."""


@problem(
    "GRM-494",
    BundleError,
    "{path} does not name {names}.",
    f"An older listing was put back, or a command was interrupted or is still running. {_SITE}",
)
def bundles_not_listed(path: str, names: tuple[str, ...]) -> None:
    """The archive has bundles that are newer than its signed listing: readers do not see them."""


@problem(
    "GRM-495",
    BundleError,
    "Pages of the archive are not those that {path} names: {pages}.",
    f"They were changed, or a command was interrupted while it wrote them. {_SITE}",
)
def pages_differ(path: str, pages: tuple[str, ...]) -> None:
    """The signed listing holds the SHA-256 of every page of the catalogue.

    In parentheses: whether the page was changed, is missing, or is not listed.
    """


@problem("GRM-483", ArchiveError, "{path} changes while it is read.", "Try again.")
def listing_changing(path: str) -> None:
    """A part of the listing is missing, in three attempts.

    That happens while releases are published, and also if the archive was copied incompletely.
    """


@problem(
    "GRM-490",
    BundleError,
    "{path} is not the part that the signed listing of the archive names.",
    f"It was changed or damaged. {_SITE}",
)
def listing_part_changed(path: str) -> None:
    """A part of the listing was changed or damaged: its digest differs from that in the root."""


@problem(
    "GRM-484",
    BundleError,
    "{path} is not the bundle that the signed listing of the archive names.",
    "The bundle was replaced, or the listing is of another copy: ask the curator.",
)
def not_as_listed(path: str) -> None:
    """The seal of the bundle is valid, but its digest differs from the one in the listing."""


@problem(
    "GRM-485",
    BundleError,
    "{path} is missing, although the signed listing of the archive names it.",
    "Fetch the archive again, or ask the curator.",
)
def listed_bundle_missing(path: str) -> None:
    """A bundle that was published is no longer in the archive."""


@problem(
    "GRM-486",
    RequestError,
    "{address} is not an archive.",
    "Archives nearby, most similar first: {similar}.",
)
def archive_nearby(address: str, similar: tuple[str, ...]) -> None:
    """Nothing of an archive is at the address, but there is an archive next to it."""


@problem(
    "GRM-487",
    RequestError,
    "{url} has no listing.json, without which an archive cannot be read over HTTP.",
    "Check the address; the curator writes the listing with 'gramercy site'.",
)
def no_listing(url: str) -> None:
    """The server answers, but there is no archive at this address, or it has no listing yet."""


@problem(
    "GRM-488",
    ArchiveError,
    "{url} can only be read: an archive at an HTTP address cannot be written to.",
    "Publish to a folder or an object store, and serve its files.",
)
def read_only(url: str) -> None:
    """A command that writes was given the HTTP address of an archive."""


@problem(
    "GRM-489",
    ArchiveError,
    "{url} is larger than {most} bytes.",
    "Ask the curator for a copy of the archive.",
)
def file_too_large(url: str, most: int) -> None:
    """A server sends more than a file of an archive can contain; the rest was not read."""
