"""Sealed bundles, their signatures and keys: codes 430 to 479."""

from __future__ import annotations

from gramercy.schemas.errors import ArchiveError, BundleError, InvalidValue, RequestError
from gramercy.schemas.problem import problem


@problem(
    "GRM-430",
    InvalidValue,
    "'failure_share' must be the share of 'delta' that is set aside for failures.",
)
def failure_share() -> None:
    """A manifest states another share of delta for failures than the budget sets aside."""


# Files and their seal.

_FETCH_AGAIN = "Fetch the bundle again from its curator."


@problem("GRM-432", BundleError, "{path} is missing.", _FETCH_AGAIN)
def file_missing(path: str) -> None:
    """A bundle lacks a file that belongs to it."""


@problem(
    "GRM-433",
    BundleError,
    "{path}: the signature is missing.",
    "Fetch the bundle again from its curator; every bundle has a signature.",
)
def signature_missing(path: str) -> None:
    """The bundle has no SHA256SUMS.sig."""


@problem("GRM-434", BundleError, "{path} was changed after the bundle was sealed.", _FETCH_AGAIN)
def file_changed(path: str) -> None:
    """A file does not match SHA256SUMS, or SHA256SUMS or its signature is malformed."""


@problem("GRM-435", BundleError, "{signature} is not a valid signature of {path}.", _FETCH_AGAIN)
def sums_not_signed(path: str, signature: str) -> None:
    """The list of checksums or its signature was changed."""


@problem("GRM-436", BundleError, "{path} was added after the bundle was sealed.", _FETCH_AGAIN)
def file_added(path: str) -> None:
    """The folder of a bundle has a file that SHA256SUMS does not list."""


@problem(
    "GRM-437",
    BundleError,
    "{url} was added after the bundle was sealed.",
    "Ask its curator to remove it.",
)
def object_added(url: str) -> None:
    """An archive at a URL has an object in a bundle that SHA256SUMS does not list."""


@problem("GRM-438", BundleError, "{path} is not a regular file.", _FETCH_AGAIN)
def not_a_file(path: str) -> None:
    """A bundle contains a folder, a link, a pipe or a device."""


@problem("GRM-461", BundleError, "{path} is larger than {most} bytes.", _FETCH_AGAIN)
def file_too_large(path: str, most: int) -> None:
    """A file of a bundle is larger than Gramercy writes it; reading it may need any memory."""


@problem(
    "GRM-439",
    BundleError,
    "{path} cannot be read ({reason}).",
    "Check the disk and your permissions. If the file is damaged, fetch the bundle again from its "
    "curator.",
)
def file_unreadable(path: str, reason: str) -> None:
    """The operating system refused to read a file, or the file is not valid UTF-8."""


@problem("GRM-440", BundleError, "{path} cannot be read.", "Check the path.")
def folder_unreadable(path: str) -> None:
    """The folder of a bundle does not exist, or may not be read."""


@problem(
    "GRM-441",
    BundleError,
    "{path} is signed by the key {signer}, which is not trusted (trusted keys: {trusted}).",
    "If it is the curator's, ask the curator for the public key, and add it to the trusted keys.",
)
def untrusted_signer(path: str, signer: str, trusted: tuple[str, ...]) -> None:
    """The signature is valid, but it was not made with a trusted key."""


# The description of a bundle.


@problem("GRM-442", BundleError, "{path} is not the description of a bundle.", _FETCH_AGAIN)
def not_a_descriptor(path: str) -> None:
    """The file datapackage.json is missing, or is not a JSON object."""


@problem(
    "GRM-462",
    BundleError,
    "{path} has too many values, is nested too deeply, or contains control characters.",
    _FETCH_AGAIN,
)
def manifest_out_of_limits(path: str) -> None:
    """A manifest has more than a release can have, or a text that a terminal would execute."""


@problem("GRM-463", InvalidValue, "The card lacks {missing}.")
def card_incomplete(missing: str) -> None:
    """The DP card of a manifest lacks a text that is shown to readers."""


@problem("GRM-464", InvalidValue, "There must be at most {most} columns.")
def too_many_columns(most: int) -> None:
    """A manifest lists more columns than a release can have."""


@problem("GRM-465", InvalidValue, "'name' must be a text.")
def name_missing() -> None:
    """The mechanism or the estimator of a manifest has no name."""


@problem(
    "GRM-443",
    BundleError,
    "{path} has format {stated}; this version reads format {known}.",
    "Use the version of Gramercy that its manifest names under 'software'.",
)
def unknown_format(path: str, stated: str, known: int) -> None:
    """The bundle was written by another version of Gramercy."""


@problem(
    "GRM-444",
    BundleError,
    "{path} describes a release other than '{release}'.",
    "Ask the curator for the bundle that belongs here.",
)
def wrong_release(path: str, release: str) -> None:
    """A genuine bundle is stored in the place of another one, or under another release."""


@problem("GRM-445", BundleError, "{path} contradicts its manifest.", _FETCH_AGAIN)
def descriptor_contradicts_manifest(path: str) -> None:
    """The list of files in datapackage.json does not follow from the manifest in it."""


@problem("GRM-446", BundleError, "{path} contradicts its manifest.", _FETCH_AGAIN)
def notice_contradicts_manifest(path: str) -> None:
    """The text of a notice of withdrawal was changed, or does not follow from its manifest."""


# Matrices, tables, rows and graphs.


@problem(
    "GRM-447", BundleError, "{path} is not a symmetric matrix of {columns} columns.", _FETCH_AGAIN
)
def not_a_matrix(path: str, columns: int) -> None:
    """A matrix has another shape or type, or entries that are not finite or not symmetric."""


@problem(
    "GRM-448", BundleError, "{path} and {other} do not contain the same numbers.", _FETCH_AGAIN
)
def formats_differ(path: str, other: str) -> None:
    """Files that hold the same matrix, table or graph in several formats contradict each other."""


@problem("GRM-449", BundleError, "{path} is not a table.", _FETCH_AGAIN)
def not_a_table(path: str) -> None:
    """A Parquet or CSV file of an estimate cannot be parsed."""


@problem("GRM-450", BundleError, "{path} is not a graph of these columns.", _FETCH_AGAIN)
def not_a_graph(path: str) -> None:
    """A GraphML file cannot be parsed, or has nodes that are not columns of the release."""


@problem(
    "GRM-451",
    BundleError,
    "{path} does not contain the {rows} rows that were published.",
    _FETCH_AGAIN,
)
def rows_differ(path: str, rows: int) -> None:
    """The file of published rows has wrong columns, a wrong number of rows, or invalid numbers."""


@problem(
    "GRM-457",
    BundleError,
    "{path} does not contain the histograms that its manifest describes.",
    _FETCH_AGAIN,
)
def not_histograms(path: str) -> None:
    """The file of published histograms has other columns or bins, or states no noise."""


@problem(
    "GRM-459",
    BundleError,
    "{path} does not contain the matrices of the groups that its manifest describes.",
    _FETCH_AGAIN,
)
def not_groups(path: str) -> None:
    """The file of groups has other groups, folds or columns, or numbers that are not finite."""


@problem("GRM-466", BundleError, "{path} contains a script, a form or a frame.", "Do not open it.")
def active_content(path: str) -> None:
    """A page would do more in a browser than Gramercy's pages do."""


# Keys.


@problem(
    "GRM-467", RequestError, "{path} does not exist.", "Give the path of a curator's public key."
)
def key_file_missing(path: str) -> None:
    """The file of a public key does not exist."""


@problem(
    "GRM-452",
    RequestError,
    "{path} is not an Ed25519 public key in PEM format.",
    "Ask the curator for it: 'gramercy keys' names its file.",
)
def not_a_public_key(path: str) -> None:
    """A file that should contain a curator's public key contains something else."""


@problem(
    "GRM-453",
    ArchiveError,
    "{path} is not an Ed25519 private key.",
    "Restore it from a backup, or run 'gramercy keys new'.",
)
def not_a_private_key(path: str) -> None:
    """The steward's key file was damaged, replaced or encrypted."""


@problem(
    "GRM-454",
    ArchiveError,
    "{path} is a private key that other users may read (mode {mode}).",
    "Run 'chmod 600 {path}'; if anyone has read it, also run 'gramercy keys new'.",
)
def private_key_exposed(path: str, mode: str) -> None:
    """The permissions of the private key let other users of this machine read it."""


@problem(
    "GRM-455",
    ArchiveError,
    "{path} disappeared after it was created.",
    "Find out which program removes it.",
)
def private_key_removed(path: str) -> None:
    """Something removes the private key while Gramercy creates it."""


@problem(
    "GRM-456",
    ArchiveError,
    "{folder}: cannot use the folder for keys ({reason}).",
    "Free disk space, or make the folder writable.",
)
def key_folder_unusable(folder: str, reason: str) -> None:
    """The operating system refused to read or write the folder of keys."""


@problem("GRM-460", InvalidValue, "The facts about groups are not those of the declared levels.")
def groups_incomplete() -> None:
    """A manifest states the number of rows of every group, and of every fold of a group."""


@problem("GRM-458", InvalidValue, "The facts about estimated constants are incomplete.")
def constants_incomplete() -> None:
    """A manifest states bounds and a share of present cells for every column, and a radius."""
