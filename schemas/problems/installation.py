"""Packages, files and folders of this machine: codes 050 to 099."""

from __future__ import annotations

from gramercy.schemas.errors import (
    ArchiveError,
    GramercyError,
    LedgerError,
    MissingPackages,
    RequestError,
)
from gramercy.schemas.problem import problem


@problem("GRM-050", MissingPackages, "Publishing needs more packages:", "{command}.")
def publishing_packages(command: str) -> None:
    """Gramercy was installed for analysts; publishing, auditing and pages need one more extra."""


@problem("GRM-059", MissingPackages, "Reading this kind of file needs more packages:", "{command}.")
def converting_packages(command: str) -> None:
    """`gramercy convert` reads files of other programs by libraries, which are in an extra."""


@problem("GRM-051", GramercyError, "{path}: {reason}.")
def operating_system(path: str, reason: str) -> None:
    """The operating system refused to read or write a file: check permissions, space and mounts."""


@problem(
    "GRM-052",
    ArchiveError,
    "{path}: cannot write to the archive ({reason}).",
    "Free some space, or make the archive writable.",
)
def archive_not_writable(path: str, reason: str) -> None:
    """The disk of the archive is full, read-only, not mounted, or closed to this user."""


@problem(
    "GRM-058",
    ArchiveError,
    "{folder}: a release may need {needed} MB of free space, and there are {free} MB.",
    "Free some space, or use a larger disk. Nothing was charged.",
)
def disk_too_full(folder: str, needed: int, free: int) -> None:
    """A charge is spent if the disk is full before its release is complete, so space comes first.

    How much may be needed follows from public facts: columns, folds, groups and declared rows.
    """


@problem(
    "GRM-053",
    ArchiveError,
    "{path}: cannot read the archive ({reason}).",
    "Make the archive readable.",
)
def archive_not_readable(path: str, reason: str) -> None:
    """The archive is not a folder, is not mounted, or is closed to this user."""


@problem(
    "GRM-054",
    LedgerError,
    "{path}: another process still holds this lock.",
    "Wait for the other run to end, or end it.",
)
def lock_timeout(path: str) -> None:
    """Only one run of a data set can hold the lock, and this run waited an hour for it."""


@problem(
    "GRM-055",
    LedgerError,
    "{path}: cannot create or lock this file.",
    "Check the folder, its permissions, and that the disk is not full.",
)
def lock_not_possible(path: str) -> None:
    """The operating system refused the lock file, which keeps runs of a data set apart."""


@problem(
    "GRM-056",
    RequestError,
    "key 'dataset': no contract at {path}.",
    "Name the contract's YAML file, or put it at {folder}/<id>.yaml. Ids there, most similar "
    "first: {known}.",
)
def contract_missing(path: str, folder: str, known: tuple[str, ...]) -> None:
    """The key 'dataset' of a request names a contract file, or an id in the folder of contracts."""


@problem(
    "GRM-057",
    RequestError,
    "GRAMERCY_PUBLIC_URL must be an HTTP address without a user, a query or a fragment.",
    "Write the address at which the archive's folder is served, such as "
    "https://example.org/archive.",
)
def public_url_not_valid() -> None:
    """Run artifacts link to the archive at this address, so it is stored with every run."""
