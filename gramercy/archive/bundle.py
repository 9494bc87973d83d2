"""A bundle is a folder whose SHA256SUMS lists every file in it, and is signed; nothing more."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from gramercy.archive import signature
from gramercy.archive.signing_keys import steward_key
from gramercy.common.disk import make_durable
from gramercy.common.home import Home
from gramercy.schemas.errors import BundleError

SUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"
SEAL = frozenset({SUMS, SIGNATURE})  # of every bundle; all other files are its content


def seal(folder: Path, keys: Path | None = None) -> str:
    """Write SHA256SUMS, sign it, make everything durable and read-only.

    Parameters
    ----------
    folder
        The bundle. A seal that it had is replaced.
    keys
        Where the steward's key lies, or is made; default: the home in use.

    Returns
    -------
    str
        SHA-256 of SHA256SUMS: names the bundle's whole content.

    Raises
    ------
    ArchiveError
        If there is no key to sign with.
    """
    key = steward_key(keys or Home.default().keys)
    sums = "".join(f"{file_digest(folder / name)}  {name}\n" for name in content(folder)).encode()
    for name, data in {SUMS: sums, SIGNATURE: signature.sign(key, sums)}.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_bytes(data)
    for name in [*content(folder), *sorted(SEAL)]:
        make_durable(folder / name)
        (folder / name).chmod(0o444)
    make_durable(folder)
    return file_digest(folder / SUMS)


def check(folder: Path) -> str:
    """Verify every file of a bundle; returns what `seal` returned.

    Raises
    ------
    BundleError
        Naming the file that is missing, changed or not listed.
    """
    listed = sealed_digests(folder)
    present = set(content(folder))
    for name, expected in listed.items():
        if name not in present:
            raise BundleError(f"{folder / name}: is missing.", _MEND)
        if file_digest(folder / name) != expected:
            raise BundleError(f"{folder / name}: is not what was sealed.", _MEND)
    for name in sorted(present - listed.keys()):
        raise BundleError(f"{folder / name}: was not there when the bundle was sealed.", _MEND)
    return file_digest(folder / SUMS)


def same_content(folder: Path, other: Path) -> bool:
    """Whether two bundles are complete, and have the same content."""
    with contextlib.suppress(BundleError):
        return check(folder) == check(other)
    return False


def check_file(folder: Path, name: str) -> None:
    """Verify one file of a bundle, and the signed list of all.

    Raises
    ------
    BundleError
        If it is not what was sealed.
    """
    if sealed_digests(folder).get(name) != file_digest(folder / name):
        raise BundleError(f"{folder / name}: is not what was sealed.", _MEND)


def signer(folder: Path) -> str:
    """The public key that signed a bundle's SHA256SUMS, in hexadecimal; its files are not read.

    Raises
    ------
    BundleError
        If there is no signature, or it is not one of SHA256SUMS.
    """
    sums = _read(folder / SUMS)
    line = _read(folder / SIGNATURE, f"{_MEND[:-1]}; those of format 4 and older have none.")
    if not signature.is_line(line):
        raise BundleError(f"{folder / SIGNATURE}: is not what was sealed.", _MEND)
    found = signature.signer(line, sums)
    if found is None:  # either may have been changed
        raise BundleError(f"{folder / SUMS}: is not what was signed in {SIGNATURE}.", _MEND)
    return found


def sealed_digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a bundle as its signed SHA256SUMS has them, by name.

    Raises
    ------
    BundleError
        If the list or its signature is not what was sealed.
    """
    signer(folder)
    listed: dict[str, str] = {}
    lines = _read(folder / SUMS).decode("utf-8", "replace").split("\n")
    for line in lines[:-1]:
        digest, gap, name = line[:64], line[64:66], line[66:]
        if gap != "  " or not name or name in listed or name != Path(name).name:
            raise BundleError(f"{folder / SUMS}: is not what was sealed.", _MEND)
        listed[name] = digest
    if not listed or lines[-1] or list(listed) != sorted(listed) or listed.keys() & SEAL:
        raise BundleError(f"{folder / SUMS}: is not what was sealed.", _MEND)
    return listed


def content(folder: Path) -> list[str]:
    """Names of a bundle's files but those of its seal, sorted.

    Raises
    ------
    BundleError
        If the folder cannot be read.
    """
    try:
        entries = list(os.scandir(folder))
    except OSError:
        raise BundleError(f"{folder}: cannot be read.", "Check the path.") from None
    for entry in entries:  # a link leads elsewhere, and from a pipe one reads for ever
        if not entry.is_file(follow_symlinks=False):
            raise BundleError(f"{entry.path}: is no file.", _MEND)
    return sorted(entry.name for entry in entries if entry.name not in SEAL)


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    try:
        _finite(path)
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        raise BundleError(f"{path}: cannot be read.", _MEND) from None


def _finite(path: Path) -> None:
    """Refuse a device or a pipe, which may never end."""
    if path.exists() and not path.is_file():
        raise BundleError(f"{path}: is no file.", _MEND)


_MEND = "Fetch the bundle again from its curator."


def _read(path: Path, mend: str = _MEND) -> bytes:
    try:
        _finite(path)
        return path.read_bytes()
    except OSError:
        raise BundleError(f"{path}: is missing.", mend) from None
