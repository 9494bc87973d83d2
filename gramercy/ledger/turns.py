"""Turns on every machine: PostgreSQL's advisory locks, whose connection is watched."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator

from sqlalchemy import Connection, Engine, func, select, text
from sqlalchemy.exc import SQLAlchemyError

from gramercy.common import process_lock
from gramercy.common.process_lock import Turn
from gramercy.ledger.database import described, engine_of, failure_name
from gramercy.schemas.errors import LedgerError

_BEAT_SECONDS = 30.0  # less than what routers and proxies grant an idle connection
# So that either side notices within two minutes that the other one is gone.
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
# Not every version of the server has every setting.
_SET = text("SELECT set_config(name, :value, false) FROM pg_settings WHERE name = :name")
_HELD = text(
    "SELECT count(*) FROM pg_locks"
    " WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid() AND objsubid = 1"
    " AND (CAST(classid AS bigint) << 32) | CAST(objid AS bigint) = :key"
)


@contextlib.contextmanager
def on_every_machine(engine: Engine, name: str) -> Iterator[Turn]:
    """Hold PostgreSQL's advisory lock of this name; others wait.

    The lock ends with its connection, which the server or the network may end at any time. So the
    connection is kept busy, and whoever has the turn calls `Turn.hold` before anything that only
    the holder may do.

    Raises
    ------
    LedgerError
        If it cannot be had within an hour, or the server does not answer.
    """
    turn = _ServerTurn(engine, name)
    try:
        turn.take()
        yield turn
    finally:
        turn.end()


class _ServerTurn(Turn):
    """An advisory lock of a PostgreSQL server, on a connection of its own."""

    def __init__(self, engine: Engine, name: str) -> None:
        url = engine.url.update_query_dict({**_KEEPALIVE, **engine.url.query})
        self._engine = engine_of(url.render_as_string(hide_password=False))
        self._name = name
        self._key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
        self._db: Connection | None = None
        self._one_at_a_time = threading.Lock()  # a connection is for one thread at a time
        self._over = threading.Event()
        self._pid = os.getpid()

    def take(self) -> None:
        """Wait for the lock, and keep its connection busy from then on."""
        with self._one_at_a_time:
            self._lock("cannot be taken")
        threading.Thread(target=self._beat, name="gramercy-turn", daemon=True).start()

    def hold(self) -> bool:
        with self._one_at_a_time:
            if self._held():
                return True
            self._close()
            self._lock("was lost and cannot be taken again")
            return False

    def end(self) -> None:
        """Release the lock."""
        if os.getpid() != self._pid:  # a fork shares the connection, which is not its own to close
            return
        self._over.set()
        with self._one_at_a_time:
            if self._db is not None:
                with contextlib.suppress(SQLAlchemyError):  # a lost connection holds no lock
                    self._db.execute(select(func.pg_advisory_unlock(self._key)))
            self._close()

    def _lock(self, otherwise: str) -> None:
        failure = ""
        try:
            self._db = db = self._engine.connect()
            db.execution_options(isolation_level="AUTOCOMMIT")
            waits = {
                "lock_timeout": f"{process_lock.WAIT_SECONDS}s",
                "statement_timeout": f"{process_lock.WAIT_SECONDS + 1}s",
            }
            for setting, value in {**_SESSION, **waits}.items():
                db.execute(_SET, {"name": setting, "value": value})
            db.execute(select(func.pg_advisory_lock(self._key)))
        except SQLAlchemyError as caught:
            failure = failure_name(caught)
        if failure:
            self._close()
            raise LedgerError(
                f"{described(self._engine)}: the lock of '{self._name}' {otherwise} ({failure}).",
                "Another run may still be at work on it; else check that the server answers.",
            )

    def _held(self) -> bool:
        """Whether the connection is alive, and the lock is still its own."""
        with contextlib.suppress(SQLAlchemyError):
            return self._db is not None and self._db.scalar(_HELD, {"key": self._key}) == 1
        return False

    def _beat(self) -> None:
        """Keep the connection from being idle. That it is lost is for `hold` to find out."""
        while not self._over.wait(_BEAT_SECONDS):
            with self._one_at_a_time:
                if self._db is not None and not self._over.is_set():
                    with contextlib.suppress(Exception):
                        self._db.execute(text("SELECT 1"))

    def _close(self) -> None:
        """End the session, and whatever lock it may still have."""
        if self._db is not None:
            with contextlib.suppress(SQLAlchemyError):
                self._db.invalidate()
            with contextlib.suppress(SQLAlchemyError):
                self._db.close()
            self._db = None
