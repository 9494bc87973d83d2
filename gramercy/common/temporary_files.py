"""Temporary files that become the new content of a file, and those that a crash has left.

A file is locked while its process works on it. The operating system releases the lock when the
process ends, for any reason, so an unlocked one was left by a crash.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_fcntl: Any = None
with contextlib.suppress(ImportError):  # not on every operating system: there, leftovers stay
    _fcntl = importlib.import_module("fcntl")

_PREFIX = ".gramercy-"
_NAME = re.compile(r"\.(gramercy-)?[0-9a-f]{32}", re.ASCII)  # without the prefix until version 0.2


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
    """Lock an open file; False if files cannot be locked.

    Raises
    ------
    OSError
        If another process holds the lock, and this one is not to wait for it.
    """
    if _fcntl is None:
        return False
    _fcntl.flock(handle, _fcntl.LOCK_EX | (0 if wait else _fcntl.LOCK_NB))
    return True
