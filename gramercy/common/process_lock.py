"""File locks between the processes of one machine.

A lock ends when it is released or its process ends, for any reason.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from gramercy.common.disk import make_folder
from gramercy.schemas.problems.installation import lock_not_possible, lock_timeout

WAIT_SECONDS = 3600


class HeldLock:
    """A lock that is held. The operating system keeps a file lock as long as its process runs."""

    def renew(self) -> bool:
        """Acquire the lock again if it was lost.

        Returns
        -------
        bool
            False if it was lost: another process may have held it in the meantime.

        Raises
        ------
        LedgerError
            If it was lost and cannot be acquired again.
        """
        return True


@contextlib.contextmanager
def file_lock(folder: Path, name: str) -> Iterator[HeldLock]:
    """Hold the lock of this name; other processes wait for it.

    Raises
    ------
    LedgerError
        If it cannot be acquired within an hour.
    """
    lock = FileLock(folder / f"{name}.lock", timeout=WAIT_SECONDS, mode=0o600)
    try:
        make_folder(folder, 0o700)
        lock.acquire()
    except Timeout:
        raise lock_timeout(str(lock.lock_file)) from None
    except OSError:
        raise lock_not_possible(str(lock.lock_file)) from None
    try:
        yield HeldLock()
    finally:
        lock.release()
