"""Durable and atomic writes, and temporary files: a file survives a power cut, whole or not at all.

A temporary file or folder is locked while its process works on it. The operating system releases
the lock when the process ends, for any reason, so an unlocked one was left by a crash.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import re
import shutil
import stat
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gramercy.schemas import families

_fcntl: Any = None
with contextlib.suppress(ImportError):  # not on every operating system: there, leftovers stay
    _fcntl = importlib.import_module("fcntl")

_PREFIX = ".gramercy-"
_NAME = re.compile(r"\.(gramercy-)?[0-9a-f]{32}", re.ASCII)  # without the prefix until version 0.2
_LOCK = ".lock"
_handles: list[int] = []  # open until the process ends, and its locks with them


@contextlib.contextmanager
def disk_errors(root: Path, *, reading: bool = False) -> Iterator[None]:
    """Turn an OSError into an ArchiveError that names the file, or the root if no file is known."""
    reason, path = "", str(root)
    try:
        yield
    except OSError as caught:
        path = str(caught.filename or path)
        reason = error_reason(caught)
    if reason and reading:
        raise families.ARCHIVE_DISK(
            "{path} cannot be read ({reason}).", "Make it readable.", path=path, reason=reason
        )
    if reason:
        raise families.ARCHIVE_DISK(
            "{path} cannot be written ({reason}).",
            "Free some space, or make it writable.",
            path=path,
            reason=reason,
        )


def error_reason(error: Exception) -> str:
    """Why a file cannot be read or written, without the message of the error."""
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else type(error).__name__


def check_space(folder: Path, size: int) -> None:
    """Check that so many bytes can be written to a folder, which may not exist yet."""
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

    `mode` is 0o700 in the home, 0o755 in the archive; the umask may take permissions away.
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


@contextlib.contextmanager
def temporary_file(path: Path, data: bytes, mode: int = 0o644) -> Iterator[Path]:
    """A durable temporary file next to `path`, to rename or link; removed on exit.

    It has `mode` from the moment it exists.
    """
    handle, temporary = _locked_file(path.parent, mode)
    try:
        # The lock is held until the file has its final name.
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
            yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def is_temporary(name: str) -> bool:
    """Whether a file with this name is a temporary one."""
    return _NAME.fullmatch(name) is not None


def sweep(folder: Path) -> None:
    """Remove the temporary files in a folder that a crash has left; those in use stay."""
    with contextlib.suppress(OSError):
        remove_abandoned(folder / name for name in os.listdir(folder) if is_temporary(name))


def remove_abandoned(paths: Iterable[Path]) -> None:
    """Remove temporary files that no process works on."""
    for path in paths:
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if lock_open_file(handle, wait=False):
                    path.unlink()
            finally:
                os.close(handle)


def _locked_file(folder: Path, mode: int) -> tuple[int, Path]:
    """A new file, and its handle, which holds its lock."""
    while True:
        path = folder / f"{_PREFIX}{uuid.uuid4().hex}"
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        lock_open_file(handle, wait=True)
        if path.exists():  # otherwise another process has removed it before it was locked
            return handle, path
        os.close(handle)


def lock_open_file(handle: int, *, wait: bool) -> bool:
    """Lock an open file; False if files cannot be locked."""
    if _fcntl is None:
        return False
    _fcntl.flock(handle, _fcntl.LOCK_EX | (0 if wait else _fcntl.LOCK_NB))
    return True


def scratch_folder(prefix: str) -> Path:
    """A new folder in the system's temporary folder; abandoned ones with this prefix are removed.

    The caller removes it.
    """
    _remove_abandoned(prefix)
    folder = Path(tempfile.mkdtemp(prefix=prefix)).resolve()
    handle = os.open(folder / _LOCK, os.O_WRONLY | os.O_CREAT, 0o600)
    lock_open_file(handle, wait=True)
    _handles.append(handle)
    return folder


def _remove_abandoned(prefix: str) -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            facts = folder.lstat()
            if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
                continue
            # A folder without a lock is not locked yet.
            handle = os.open(folder / _LOCK, os.O_WRONLY | os.O_NOFOLLOW)
            try:
                if lock_open_file(handle, wait=False):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)
