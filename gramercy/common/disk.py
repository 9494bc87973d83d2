"""Durable and atomic writes: a file survives a power cut, and is complete or absent."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from gramercy.common.temporary_files import sweep, temporary_file
from gramercy.schemas import families
from gramercy.schemas.errors import ArchiveError


def _archive_not_readable(path: str, reason: str) -> ArchiveError:
    return families.ARCHIVE_DISK(
        "{path}: cannot read the archive ({reason}).",
        "Make the archive readable.",
        path=path,
        reason=reason,
    )


def _archive_not_writable(path: str, reason: str) -> ArchiveError:
    return families.ARCHIVE_DISK(
        "{path}: cannot write to the archive ({reason}).",
        "Free some space, or make the archive writable.",
        path=path,
        reason=reason,
    )


@contextlib.contextmanager
def disk_errors(root: Path, *, reading: bool = False) -> Iterator[None]:
    """Turn an OSError into an ArchiveError that names the file, or the root if no file is known."""
    reason, path = "", str(root)
    try:
        yield
    except OSError as caught:
        path = str(caught.filename or path)
        reason = error_reason(caught)
    if reason:
        raise (_archive_not_readable if reading else _archive_not_writable)(path, reason)


def error_reason(error: Exception) -> str:
    """Why a file cannot be read or written, without the message of the error."""
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else type(error).__name__


def check_space(folder: Path, size: int) -> None:
    """Check that so many bytes can be written to a folder, which may not exist yet.

    Raises
    ------
    ArchiveError
        If its file system has less free space for this user.
    """
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    disk = shutil.disk_usage(existing)
    if disk.total and disk.free < size:  # some network file systems do not state their size
        raise families.ARCHIVE_DISK(
            "{folder}: a release may need {needed} MB of free space, and there are {free} MB.",
            "Free some space, or use a larger disk. Nothing was charged.",
            folder=str(folder),
            needed=-(-size // 10**6),
            free=disk.free // 10**6,
        )


def make_durable(path: Path) -> None:
    """Flush a file or folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(path: Path, mode: int = 0o755) -> None:
    """Create a folder and its missing parents; regardless of the umask, others cannot write there.

    Parameters
    ----------
    path
        The folder. If it exists, nothing is done.
    mode
        Permissions of the folder and of its missing parents, as far as the umask allows them:
        0o700 in the home, 0o755 in the archive.

    Raises
    ------
    OSError
        If one of them cannot be created.
    """
    for folder in (*reversed(path.parents), path):
        if not folder.is_dir():
            folder.mkdir(mode=mode, exist_ok=True)


def link_or_copy(source: str | Path, to: str | Path) -> None:
    """Copy a file that will never change, as a hard link if possible."""
    try:
        os.link(source, to)
    except OSError:
        shutil.copy2(source, to)


def rename_folder(folder: Path, target: Path) -> bool:
    """Rename a folder; False if the target exists, even if it was created a moment ago."""
    try:
        folder.rename(target)
    except OSError as caught:
        if caught.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise
        return False
    return True


def write_atomically(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file durably; a reader sees either the old content or all of the new content.

    What an earlier crash has left next to it is removed.
    """
    sweep(path.parent)
    with temporary_file(path, data, mode) as temporary:
        temporary.replace(path)
    make_durable(path.parent)
