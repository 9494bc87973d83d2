"""Temporary folders of one process, and those that killed processes have left."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

from gramercy.common.temporary_files import lock_open_file

_LOCK = ".lock"
_handles: list[int] = []  # open until the process ends, and its locks with them


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
            if stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid():
                _remove_unless_locked(folder)


def _remove_unless_locked(folder: Path) -> None:
    # A folder without a lock is not locked yet.
    handle = os.open(folder / _LOCK, os.O_WRONLY | os.O_NOFOLLOW)
    try:
        if lock_open_file(handle, wait=False):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)
