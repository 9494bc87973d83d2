"""Taking turns: one at a time by name, whatever becomes of the process that has the turn."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout
from sqlalchemy import Engine, func, select, text

from schemas.errors import LedgerError

_WAIT_SECONDS = 3600


@contextlib.contextmanager
def on_this_machine(folder: Path, name: str) -> Iterator[None]:
    """Hold the lock file of this name; others wait.

    Raises
    ------
    LedgerError
        If it cannot be had within an hour.
    """
    lock = FileLock(folder / f"{name}.lock", timeout=_WAIT_SECONDS)
    try:
        folder.mkdir(parents=True, exist_ok=True)
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


@contextlib.contextmanager
def on_every_machine(engine: Engine, name: str) -> Iterator[None]:
    """Hold PostgreSQL's advisory lock of this name, for as long as the connection lives."""
    key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
        db.execute(text(f"SET lock_timeout = '{_WAIT_SECONDS}s'"))
        db.execute(select(func.pg_advisory_lock(key)))
        try:
            yield
        finally:
            db.execute(select(func.pg_advisory_unlock(key)))
