"""Taking turns: one at a time by name, whatever becomes of the process that has the turn."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout
from sqlalchemy import Engine, func, select, text
from sqlalchemy.exc import DBAPIError

from ledger.database import described
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
    """Hold PostgreSQL's advisory lock of this name, for as long as the connection lives.

    Should the server end the connection before, the turn is over, and others may come: what they
    may not do, the ledger refuses by itself.

    Raises
    ------
    LedgerError
        If it cannot be had within an hour, or the server does not answer.
    """
    key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
    failure = ""
    with contextlib.ExitStack() as held:
        try:
            db = held.enter_context(engine.connect())
            db = db.execution_options(isolation_level="AUTOCOMMIT")
            db.execute(text(f"SET lock_timeout = '{_WAIT_SECONDS}s'"))
            db.execute(text(f"SET statement_timeout = '{_WAIT_SECONDS + 1}s'"))
            db.execute(select(func.pg_advisory_lock(key)))
        except DBAPIError as caught:
            failure = type(caught.orig).__name__
        if not failure:
            try:
                yield
            finally:
                with contextlib.suppress(DBAPIError):  # a connection that is gone holds nothing
                    db.execute(select(func.pg_advisory_unlock(key)))
    if failure:
        raise LedgerError(
            f"{described(engine)}: no turn can be had for '{name}' ({failure}).",
            "Another run may still be at work on it; else check that the server answers.",
        )
