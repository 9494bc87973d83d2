"""Locks between processes of one home; a lock goes with its process, however that ends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from filelock import FileLock, Timeout

from schemas.errors import LedgerError
from schemas.home import Home

_WAIT_SECONDS = 3600


@contextlib.contextmanager
def alone(home: Home, name: str) -> Iterator[None]:
    """Hold the lock of this name; others wait.

    Raises
    ------
    LedgerError
        If it cannot be had within an hour.
    """
    lock = FileLock(home.locks / f"{name}.lock", timeout=_WAIT_SECONDS)
    try:
        home.locks.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except (Timeout, OSError):
        raise LedgerError(
            f"{lock.lock_file}: cannot be locked.",
            "Another run may still be at work on it; else check the folder.",
        ) from None
    try:
        yield
    finally:
        lock.release()
