"""Locks on the folders of a staging area.

The operating system releases a lock when its process ends, for any reason. If the lock of a folder
is free, the process that made the folder has ended.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

LOCK_SUFFIX = ".lock"


@contextmanager
def try_lock(folder: Path) -> Iterator[bool]:
    """Lock a folder, unless another thread or process holds its lock; never waits.

    Parameters
    ----------
    folder
        The folder; it need not exist. The lock is a file next to it, which is removed at the end.

    Yields
    ------
    bool
        Whether the lock was acquired.
    """
    path, pid = folder.with_name(folder.name + LOCK_SUFFIX), os.getpid()
    lock = FileLock(path, timeout=0, thread_local=False, mode=0o644)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    acquired = path.exists()  # otherwise another holder has removed the file since it was opened
    try:
        yield acquired
    finally:
        if os.getpid() == pid:  # a fork has a copy of this block, but does not own the lock
            if acquired:
                path.unlink(missing_ok=True)
            lock.release()
