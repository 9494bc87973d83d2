"""File locks between the processes of one machine.

A lock ends when it is released or its process ends, for any reason.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from gramercy.common.disk import make_folder
from gramercy.schemas import families

WAIT_SECONDS = 3600


class HeldLock:
    """A lock that is held. The operating system keeps a file lock as long as its process runs."""

    def renew(self) -> bool:
        """Acquire the lock again if it was lost."""
        return True


@contextlib.contextmanager
def file_lock(folder: Path, name: str) -> Iterator[HeldLock]:
    """Hold the lock of this name; other processes wait for it."""
    lock = FileLock(folder / f"{name}.lock", timeout=WAIT_SECONDS, mode=0o600)
    try:
        make_folder(folder, 0o700)
        lock.acquire()
    except OSError as error:  # a timeout is one
        sentence = "{path}: cannot create or lock this file."
        hint = "Check the folder, its permissions, and that the disk is not full."
        if isinstance(error, Timeout):
            sentence = "{path}: another process still holds this lock."
            hint = "Wait for the other run to end, or end it."
        raise families.LOCK(sentence, hint, path=str(lock.lock_file)) from None
    try:
        yield HeldLock()
    finally:
        lock.release()
