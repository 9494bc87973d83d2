"""Locks on the folders of a staging area: whoever works in a folder holds its lock.

The operating system releases a lock when its process ends, however it ends. So a folder whose lock
can be had was left by a process that is gone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

LOCK = ".lock"


@contextmanager
def held(folder: Path) -> Iterator[bool]:
    """Hold the lock of a folder, unless another thread or process does; never waits.

    Parameters
    ----------
    folder
        It need not exist. The lock is a file next to it, which is removed in the end.

    Yields
    ------
    bool
        Whether the lock is held.
    """
    path, pid = folder.with_name(folder.name + LOCK), os.getpid()
    lock = FileLock(path, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    mine = path.exists()  # else another holder has removed the file since it was opened
    try:
        yield mine
    finally:
        if os.getpid() == pid:  # a fork has a copy of this block, and not of the lock
            if mine:
                path.unlink(missing_ok=True)
            lock.release()
