"""A bundle is a folder whose SHA256SUMS lists every file in it; nothing more, nothing less."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from schemas.errors import BundleError

SUMS = "SHA256SUMS"


def seal(folder: Path) -> str:
    """Write SHA256SUMS, make everything durable and read-only.

    Returns
    -------
    str
        SHA-256 of SHA256SUMS: names the bundle's whole content.
    """
    lines = [f"{file_digest(folder / name)}  {name}\n" for name in _files(folder)]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8", newline="\n")
    for name in [*_files(folder), SUMS]:
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
    listed = _listed(folder)
    present = set(_files(folder))
    for name, expected in listed.items():
        if name not in present:
            raise BundleError(f"{folder / name}: is missing.", _MEND)
        if file_digest(folder / name) != expected:
            raise BundleError(f"{folder / name}: is not what was sealed.", _MEND)
    for name in sorted(present - listed.keys()):
        raise BundleError(f"{folder / name}: was not there when the bundle was sealed.", _MEND)
    return file_digest(folder / SUMS)


_MEND = "Fetch the bundle again from its curator."


def _listed(folder: Path) -> dict[str, str]:
    listed: dict[str, str] = {}
    try:
        _finite(folder / SUMS)
        text = (folder / SUMS).read_bytes().decode("ascii")
    except OSError:
        raise BundleError(f"{folder / SUMS}: is missing.", _MEND) from None
    except UnicodeDecodeError:
        raise BundleError(f"{folder / SUMS}: is not what was sealed.", _MEND) from None
    lines = text.split("\n")
    for line in lines[:-1]:
        digest, gap, name = line[:64], line[64:66], line[66:]
        if gap != "  " or not name or name in listed or name != Path(name).name:
            raise BundleError(f"{folder / SUMS}: is not what was sealed.", _MEND)
        listed[name] = digest
    if not listed or lines[-1] or list(listed) != sorted(listed):
        raise BundleError(f"{folder / SUMS}: is not what was sealed.", _MEND)
    return listed


def _files(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir() if entry.name != SUMS)
    except OSError:
        raise BundleError(f"{folder}: cannot be read.", "Check the path.") from None


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


def make_durable(path: Path) -> None:
    """Have a file or folder written to the disk itself."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
