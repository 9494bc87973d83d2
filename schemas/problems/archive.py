"""The archive, its address and its store: codes 400 to 429."""

from __future__ import annotations

from gramercy.schemas.errors import ArchiveError, BundleError, RequestError, UnknownRelease
from gramercy.schemas.problem import problem
from gramercy.schemas.url import USE_ENVIRONMENT

# Names and places.


@problem(
    "GRM-400",
    UnknownRelease,
    "'{name}' is not the name of a release.",
    "Write DATASET/RELEASE; 'gramercy list' shows all names.",
)
def not_a_release_name(name: str) -> None:
    """A name has characters that no data set, release or estimate can have."""


@problem(
    "GRM-401",
    UnknownRelease,
    "{archive} has no release '{release}'.",
    "Releases, most similar first: {known}.",
)
def unknown_release(archive: str, release: str, known: tuple[str, ...]) -> None:
    """The archive has no release of this name."""


@problem(
    "GRM-402",
    UnknownRelease,
    "{path} is reached through a link, and links inside an archive are not followed.",
    "Replace the link with the folder itself.",
)
def release_behind_link(path: str) -> None:
    """A symbolic link in the archive leads away from the folder of a release."""


@problem(
    "GRM-403",
    ArchiveError,
    "{path} is reached through a link, and links inside an archive are not followed.",
    "Replace the link with the folder itself.",
)
def write_behind_link(path: str) -> None:
    """A symbolic link in the archive leads away from a file or folder that would be written."""


@problem("GRM-404", RequestError, "{path} is not an archive.", "Check the path.")
def not_an_archive(path: str) -> None:
    """The path of the archive is not a folder."""


@problem(
    "GRM-405",
    RequestError,
    "{address} is neither a folder nor a URL.",
    "Write a URL such as s3://bucket/path.",
)
def not_an_address(address: str) -> None:
    """The address of an archive looks like a misspelt URL that contains credentials."""


@problem(
    "GRM-406",
    RequestError,
    "{url} names another machine; a file:// URL must name this one.",
    "Write file:///path.",
)
def file_url_of_another_machine(url: str) -> None:
    """A file:// URL has a host other than localhost."""


@problem(
    "GRM-407",
    RequestError,
    "{url} chains several URLs; an archive has one.",
    "Write a single URL such as s3://bucket/path.",
)
def chained_url(url: str) -> None:
    """Archives do not support the chained URLs of fsspec, such as simplecache::s3://bucket."""


@problem(
    "GRM-408",
    RequestError,
    "{url}: {protocol}:// URLs must not contain a user or password.",
    USE_ENVIRONMENT,
)
def user_in_url(url: str, protocol: str) -> None:
    """The driver would read the user and password in the URL as part of a name."""


@problem(
    "GRM-409", RequestError, "{url}: the URL of an archive must not have a query.", USE_ENVIRONMENT
)
def query_in_url(url: str) -> None:
    """The query of the URL would become part of the name of every object."""


@problem(
    "GRM-410",
    RequestError,
    "{url}: the S3 driver is not installed.",
    "Run pip install 'gramercy[s3]'.",
)
def s3_driver_missing(url: str) -> None:
    """Archives on S3 need one more extra."""


@problem(
    "GRM-411",
    RequestError,
    "{url}: the driver of {protocol}:// is not installed.",
    "Install the package that the documentation of fsspec names for it.",
)
def driver_missing(url: str, protocol: str) -> None:
    """The fsspec driver of this protocol is a separate package."""


@problem(
    "GRM-412",
    RequestError,
    "{url}: fsspec does not know this protocol.",
    "Give a folder, or an s3:// URL.",
)
def unknown_protocol(url: str) -> None:
    """The part of the URL before :// is not a protocol that fsspec has a driver for."""


@problem(
    "GRM-413",
    RequestError,
    "{url} cannot be opened ({reason}).",
    "Check the URL and the configuration of its driver.",
)
def driver_failed(url: str, reason: str) -> None:
    """The fsspec driver failed before anything was read; the type of its error is shown."""


# Reading and writing.


@problem(
    "GRM-414",
    ArchiveError,
    "Cannot {action} {url} ({reason}).",
    "Check the network, and the credentials in the environment.",
)
def store_failed(url: str, action: str, reason: str) -> None:
    """The object store could not be reached, or refused to read, write or remove an object."""


@problem(
    "GRM-415",
    ArchiveError,
    "Cannot {action} {url}: the bucket does not exist.",
    "Create the bucket, or correct the URL.",
)
def bucket_missing(url: str, action: str) -> None:
    """The bucket or folder in the URL of the archive does not exist."""


@problem(
    "GRM-416",
    ArchiveError,
    "{url} is not part of the bundle that is being published.",
    "Remove it, and try again.",
)
def unexpected_object(url: str) -> None:
    """The folder of the bundle has an object that the publisher did not upload."""


@problem("GRM-417", ArchiveError, "{url} does not contain what was written to it.", "Try again.")
def upload_altered(url: str) -> None:
    """After the upload, the store returned bytes that differ from those that were sent."""


@problem(
    "GRM-418",
    ArchiveError,
    "{path} already contains a release with other content.",
    "Two ledgers assigned the same id: use the ledger that belongs to this archive.",
)
def release_exists(path: str) -> None:
    """Another ledger has published a release of the same id to this archive."""


@problem(
    "GRM-419",
    ArchiveError,
    "{path} already contains a bundle with other content.",
    "Another run published it first. Run again to use that bundle.",
)
def bundle_exists(path: str) -> None:
    """Two runs made an estimate, a report or a notice at the same time."""


@problem(
    "GRM-420",
    ArchiveError,
    "{claim}: another bundle is being published here.",
    "Wait for it to appear. If its publisher has crashed, run that publisher again, or remove this "
    "file.",
)
def place_claimed(claim: str) -> None:
    """Another bundle's checksums are stored here, but its signature is not yet."""


# Anchors of the ledger.

_WHICH_LEDGER = "Ask the curator which ledger is valid; other copies of the archive may show it."


@problem("GRM-421", BundleError, "{first} and {second} are anchors of two ledgers.", _WHICH_LEDGER)
def anchors_of_two_ledgers(first: str, second: str) -> None:
    """Two ledgers have published to the same archive."""


@problem(
    "GRM-422",
    BundleError,
    "{first} and {second} are anchors of the same ledger, which was forked.",
    _WHICH_LEDGER,
)
def anchors_of_forked_ledger(first: str, second: str) -> None:
    """Two copies of a ledger have continued separately: entries with the same number differ."""


@problem("GRM-423", BundleError, "{path}: the content contradicts the file name.", _WHICH_LEDGER)
def anchor_contradicts_name(path: str) -> None:
    """The file of an anchor was changed: it does not describe the entry that its name states."""


@problem("GRM-424", BundleError, "{path} is not an anchor of a ledger.", "Remove it.")
def not_an_anchor(path: str) -> None:
    """A file in the archive's .ledger folder has a name that Gramercy never writes."""


@problem("GRM-425", ArchiveError, "{path} changes while it is read.", "Try again.")
def anchors_changing(path: str) -> None:
    """Anchors were replaced again and again while the newest one was read."""


@problem("GRM-428", BundleError, "{path}: no key has signed the anchor.", _WHICH_LEDGER)
def anchor_not_signed(path: str) -> None:
    """The signature is missing or not valid: the file was changed, or Gramercy did not write it."""


@problem("GRM-426", UnknownRelease, "{archive} has no release yet.", "Publish one first.")
def no_release(archive: str) -> None:
    """Nothing was published to the archive so far."""
