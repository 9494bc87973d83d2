"""Locks between processes of one machine: one holder at a time per name.

A lock lasts until it is released or its process ends, however it ends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from gramercy.schemas.errors import LedgerError

WAIT_SECONDS = 3600


class Turn:
    """A turn that lasts as long as its process: the operating system keeps a file's lock."""

    def hold(self) -> bool:
        """Make sure that the turn is held, and say whether it was held all the time.

        Returns
        -------
        bool
            False: it was lost, and has been taken again. Others may have had it in between.

        Raises
        ------
        LedgerError
            If it was lost and cannot be taken again.
        """
        return True


@contextlib.contextmanager
def on_this_machine(folder: Path, name: str) -> Iterator[Turn]:
    """Hold the lock file of this name; others wait.

    Raises
    ------
    LedgerError
        If it cannot be had within an hour.
    """
    lock = FileLock(folder / f"{name}.lock", timeout=WAIT_SECONDS)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except (Timeout, OSError):
        raise LedgerError(
            f"{lock.lock_file}: cannot be locked.",
            "Another run may still be at work on it; else check the folder.",
        ) from None
    try:
        yield Turn()
    finally:
        lock.release()
