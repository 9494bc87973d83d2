"""Locks between machines: PostgreSQL's advisory locks, whose connection may be lost."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Callable, Iterator

from sqlalchemy import Connection, Engine, func, select, text
from sqlalchemy.exc import SQLAlchemyError

from gramercy.common import process_lock
from gramercy.common.process_lock import HeldLock
from gramercy.ledger.database import display_location, error_name, open_engine
from gramercy.schemas import families
from gramercy.schemas.errors import LedgerError
from gramercy.schemas.problem import Wording

_lock_not_acquired = Wording(
    families.LOCK,
    "{ledger}: the lock '{lock}' could not be acquired ({reason}).",
    "Another run may still hold it; otherwise check that the database server answers.",
)


_lock_lost = Wording(
    families.LOCK,
    "{ledger}: the lock '{lock}' was lost and could not be acquired again ({reason}).",
    "Another run may hold it now; otherwise check that the database server answers. Then run "
    "the same command again.",
)


_KEEP_ALIVE_SECONDS = 30.0  # less than the idle timeout of routers and proxies
# With these, either side notices within two minutes that the other one is gone.
_KEEPALIVE = {
    "keepalives": "1",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "6",
    "tcp_user_timeout": "90000",
}
_SESSION = {
    "idle_session_timeout": "0",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "6",
}
# Older servers lack some of the settings.
_SET = text("SELECT set_config(name, :value, false) FROM pg_settings WHERE name = :name")
_IS_HELD = text(
    "SELECT count(*) FROM pg_locks"
    " WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid() AND objsubid = 1"
    " AND (CAST(classid AS bigint) << 32) | CAST(objid AS bigint) = :key"
)


@contextlib.contextmanager
def advisory_lock(engine: Engine, name: str) -> Iterator[HeldLock]:
    """Hold PostgreSQL's advisory lock of this name, or wait for it.

    The lock ends with its connection, which the server or the network may end at any time. The
    connection is therefore kept busy, and the holder calls `HeldLock.renew` before every step that
    requires the lock.
    """
    lock = _AdvisoryLock(engine, name)
    try:
        lock.acquire()
        yield lock
    finally:
        lock.release()


class _AdvisoryLock(HeldLock):
    """An advisory lock of a PostgreSQL server, on a connection of its own."""

    def __init__(self, engine: Engine, name: str) -> None:
        url = engine.url.update_query_dict({**_KEEPALIVE, **engine.url.query})
        self._engine = open_engine(url.render_as_string(hide_password=False))
        self._name = name
        self._key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
        self._db: Connection | None = None
        self._mutex = threading.Lock()  # a connection serves one thread at a time
        self._released = threading.Event()
        self._pid = os.getpid()

    def acquire(self) -> None:
        """Wait for the lock, and keep its connection busy from then on."""
        with self._mutex:
            self._lock(_lock_not_acquired)
        threading.Thread(target=self._keep_alive, name="gramercy-lock", daemon=True).start()

    def renew(self) -> bool:
        with self._mutex:
            if self._is_held():
                return True
            self._close()
            self._lock(_lock_lost)
            return False

    def release(self) -> None:
        """Release the lock."""
        if os.getpid() != self._pid:  # a fork must not close the connection of its parent
            return
        self._released.set()
        with self._mutex:
            if self._db is not None:
                with contextlib.suppress(SQLAlchemyError):  # a lost connection has lost its lock
                    self._db.execute(select(func.pg_advisory_unlock(self._key)))
            self._close()

    def _lock(self, problem: Callable[[str, str, str], LedgerError]) -> None:
        reason = ""
        try:
            self._db = db = self._engine.connect()
            db.execution_options(isolation_level="AUTOCOMMIT")
            timeouts = {
                "lock_timeout": f"{process_lock.WAIT_SECONDS}s",
                "statement_timeout": f"{process_lock.WAIT_SECONDS + 1}s",
            }
            for setting, value in {**_SESSION, **timeouts}.items():
                db.execute(_SET, {"name": setting, "value": value})
            db.execute(select(func.pg_advisory_lock(self._key)))
        except SQLAlchemyError as caught:
            reason = error_name(caught)
        if reason:
            self._close()
            raise problem(display_location(self._engine), self._name, reason)

    def _is_held(self) -> bool:
        """Whether the connection is alive and still holds the lock."""
        with contextlib.suppress(SQLAlchemyError):
            return self._db is not None and self._db.scalar(_IS_HELD, {"key": self._key}) == 1
        return False

    def _keep_alive(self) -> None:
        """Keep the connection from being idle; `renew` finds out if it is lost."""
        while not self._released.wait(_KEEP_ALIVE_SECONDS):
            with self._mutex:
                if self._db is not None and not self._released.is_set():
                    with contextlib.suppress(Exception):
                        self._db.execute(text("SELECT 1"))

    def _close(self) -> None:
        """End the session, and with it any lock that it still holds."""
        if self._db is not None:
            with contextlib.suppress(SQLAlchemyError):
                self._db.invalidate()
            with contextlib.suppress(SQLAlchemyError):
                self._db.close()
            self._db = None
