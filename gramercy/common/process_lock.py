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
        """Acquire the lock again if it was lost: False, as another process may have held it."""
        return True


@contextlib.contextmanager
def file_lock(folder: Path, name: str) -> Iterator[HeldLock]:
    """Hold the lock of this name; other processes wait for it."""
    lock = FileLock(folder / f"{name}.lock", timeout=WAIT_SECONDS, mode=0o600)
    try:
        make_folder(folder, 0o700)
        lock.acquire()
    except Timeout:
        raise families.LOCK(
            "{path}: another process still holds this lock.",
            "Wait for the other run to end, or end it.",
            path=str(lock.lock_file),
        ) from None
    except OSError:
        raise families.LOCK(
            "{path}: cannot create or lock this file.",
            "Check the folder, its permissions, and that the disk is not full.",
            path=str(lock.lock_file),
        ) from None
    try:
        yield HeldLock()
    finally:
        lock.release()
