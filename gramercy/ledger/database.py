"""The ledger's database: SQLite or PostgreSQL, its tables, and its location.

Commits are durable, and there is one writer at a time. Two copies of a ledger would spend one
budget twice, so a ledger knows where it is: a file by its path, by its device and inode, which a
copy on the same machine does not share, and by the machine. docs/ledger.md lists the copies that
this cannot recognise.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
import uuid
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    String,
    Table,
    create_engine,
    event,
    text,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from gramercy.common.disk import error_reason, make_folder
from gramercy.ledger.entry import FIRST_PREVIOUS
from gramercy.schemas import families
from gramercy.schemas.url import without_secrets

BUSY_SECONDS = 60  # how long to wait for a lock, or for a connection

_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ")

WRITES = {"writes": True}  # an execution option of a connection whose transaction writes


def open_engine(where: Path | str) -> Engine:
    """An engine whose commits are durable and whose writers take turns.

    Parameters
    ----------
    where
        Path of an SQLite file, created if it does not exist, or the URL of a PostgreSQL database.
    """
    if isinstance(where, Path):
        return _sqlite(where)
    try:
        url = make_url(where)
    except (ArgumentError, ValueError):
        url = URL.create("none")
    if url.get_backend_name() == "sqlite" and Path(url.database or "").is_absolute():
        return _sqlite(Path(str(url.database)))
    if url.get_backend_name() == "postgresql":
        return _postgresql(url.set(drivername="postgresql+psycopg"))
    raise families.LEDGER(
        "GRAMERCY_LEDGER_URL must be the URL of a PostgreSQL database, or of an SQLite file by "
        "its absolute path.",
        "Write postgresql://user@host/database or sqlite:////path/of/ledger.sqlite.",
    )


def display_location(engine: Engine) -> str:
    """The file or the URL of the database, without user, password and query."""
    if engine.dialect.name == "sqlite":
        return str(engine.url.database)
    url = engine.url.set(drivername="postgresql")
    return without_secrets(url.render_as_string(hide_password=False))


def shows_damage(error: Exception) -> bool:
    """Whether an error says that the file of the database is cut short or malformed."""
    driver = error.orig if isinstance(error, DBAPIError) else error
    name = str(getattr(driver, "sqlite_errorname", ""))
    return isinstance(error, UnicodeDecodeError) or name.startswith(_DAMAGED)


def error_name(error: Exception) -> str:
    """The class of an error, or of its cause in the driver: the message may contain the URL."""
    driver = error.orig if isinstance(error, DBAPIError) else None
    return type(driver or error).__name__


def _sqlite(path: Path) -> Engine:
    if not path.exists():
        make_folder(path.parent, 0o700)
        path.touch(mode=0o600)  # it contains fingerprints of private files
    return _sqlite_engine(path)


@lru_cache(16)  # no connection stays open, and compiled statements are kept
def _sqlite_engine(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=NullPool,
        hide_parameters=True,  # errors must not quote them: fingerprints are among them
        connect_args={"timeout": BUSY_SECONDS},
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        for pragma in ("foreign_keys=ON", "journal_mode=DELETE", "synchronous=EXTRA"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A writer takes the lock first, so that nothing it reads can change before it writes.
        writes = connection.get_execution_options().get("writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgresql(url: URL) -> Engine:
    try:
        import psycopg
    except ImportError:
        raise families.LEDGER(
            "GRAMERCY_LEDGER_URL needs the PostgreSQL driver, which is not installed.",
            "Run pip install 'gramercy[postgresql]'.",
        ) from None
    # READ COMMITTED: after waiting for the lock, a writer sees what the others have committed.
    engine = create_engine(
        url, poolclass=NullPool, hide_parameters=True, isolation_level="READ COMMITTED"
    )

    @event.listens_for(engine, "do_connect")
    def _wait_for_connection(_: Any, __: Any, args: Any, settings: dict[str, Any]) -> Any:
        deadline = time.monotonic() + BUSY_SECONDS
        settings.setdefault("connect_timeout", BUSY_SECONDS)
        while True:
            try:
                return psycopg.connect(*args, **settings)
            except psycopg.OperationalError as refused:
                crowded = "too many clients" in str(refused) or "connection slots" in str(refused)
                if not crowded or time.monotonic() > deadline:
                    raise
            time.sleep(0.05)

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _: Any) -> None:
        with connection.cursor() as cursor:
            # A server can be configured to acknowledge commits that it may lose: not here.
            cursor.execute("SET synchronous_commit = on")
            cursor.execute(f"SET lock_timeout = '{BUSY_SECONDS}s'")
            cursor.execute(f"SET statement_timeout = '{2 * BUSY_SECONDS}s'")
        connection.commit()

    return engine


SCHEMA = 1

metadata = sa.MetaData()

_NUMBER = sa.BigInteger().with_variant(Integer, "sqlite")
_REAL = sa.Float(53)

_KINDS = (
    "kind IN ('opened', 'moved', 'registered', 'raised', 'lowered', 'reserved', 'drawn', 'sealed',"
    " 'published', 'spent', 'withdrawn', 'derived')"
)
# NaN is NULL in SQLite and larger than every number in PostgreSQL: neither passes.
_CHARGE = (
    "kind <> 'reserved' OR (mu IS NOT NULL AND mu > 0 AND mu < 1e9"
    " AND delta0 IS NOT NULL AND delta0 >= 0 AND delta0 < 1"
    " AND (pure IS NULL OR (pure > 0 AND pure < 1e9)))"
)
_BUDGET = (
    "kind NOT IN ('registered', 'raised', 'lowered') OR (epsilon IS NOT NULL AND epsilon > 0 AND"
    " epsilon <= 1000 AND delta IS NOT NULL AND delta > 0 AND delta < 1)"
)

# The append-only log; see `ledger.entry.Entry`.
entries = Table(
    "entries",
    metadata,
    Column("seq", _NUMBER, primary_key=True, autoincrement=False),
    Column("kind", String, nullable=False),
    Column("dataset", String),
    Column("release", String),
    Column("window", String),
    Column("request", String),
    Column("mu", _REAL),
    Column("delta0", _REAL),
    Column("pure", _REAL),
    Column("epsilon", _REAL),
    Column("delta", _REAL),
    Column("facts", String, nullable=False),
    Column("at", String, nullable=False),
    Column("salt", String, nullable=False),
    Column("previous", String, nullable=False),
    Column("hash", String, nullable=False),
    CheckConstraint("seq > 0", name="numbers"),
    CheckConstraint(_KINDS, name="kinds"),
    CheckConstraint(_CHARGE, name="charges"),
    CheckConstraint(_BUDGET, name="budgets"),
    Index("by_request", "dataset", "request"),
    Index("by_window", "dataset", "kind", "window", "seq"),
    Index("by_kind", "dataset", "kind", "seq"),
    Index("by_release", "dataset", "release", "seq"),
)


def _unique(name: str, columns: tuple[str, ...], condition: str) -> None:
    where = sa.text(condition)
    keys = [entries.c[column] for column in columns]
    Index(name, *keys, unique=True, sqlite_where=where, postgresql_where=where)


# A release enters each state once, and a data set is registered once.
_unique("once", ("dataset", "release", "kind"), "kind <> 'derived'")
_unique("registered_once", ("dataset",), "kind = 'registered'")

# Number and hash of the last entry: the only row that changes. Writers lock it.
head = Table(
    "head",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
    Column("seq", _NUMBER, nullable=False),
    Column("hash", String, nullable=False),
)

# The only row of this table. Other programs may use the database, too.
_schema = Table("gramercy_schema", metadata, Column("number", Integer, nullable=False))

_REFUSAL = "the ledger is append-only"
_APPEND_ONLY = {
    "sqlite": [
        *(
            f"CREATE TRIGGER entries_no_{verb.lower()} BEFORE {verb} ON entries "
            f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
            for verb in ("UPDATE", "DELETE")
        ),
        # INSERT OR REPLACE fires neither of them.
        "CREATE TRIGGER entries_in_order BEFORE INSERT ON entries "  # noqa: S608  a constant
        "WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM entries) "
        f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END",
    ],
    "postgresql": [
        "CREATE FUNCTION gramercy_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}' USING ERRCODE = 'integrity_constraint_violation'; "
        "END $$",
        "CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON entries "
        "FOR EACH STATEMENT EXECUTE FUNCTION gramercy_append_only()",
    ],
}


def create_tables(db: sa.Connection) -> None:
    """Create the tables in an empty database, with one row in each of the two small ones."""
    metadata.create_all(db, checkfirst=False)
    for statement in _APPEND_ONLY[db.dialect.name]:
        db.exec_driver_sql(statement)
    db.execute(sa.insert(_schema).values(number=SCHEMA))
    db.execute(sa.insert(head).values(id=1, seq=0, hash=FIRST_PREVIOUS))


def has_tables(db: sa.Connection) -> bool:
    """Whether the tables exist."""
    tables = sa.inspect(db).get_table_names()
    if not {entries.name, _schema.name} & {*tables}:
        return False
    stated = db.scalar(sa.select(_schema.c.number)) if _schema.name in tables else None
    if stated != SCHEMA:
        raise families.LEDGER(
            "The ledger has schema {schema:.20}, but this version of Gramercy knows schema "
            "{known} only.",
            "Use the version of Gramercy that created the ledger.",
            schema=f"{stated}",
            known=SCHEMA,
        )
    return True


_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


def location_of(db: Connection) -> str:
    """Where the database is."""
    if db.dialect.name == "sqlite":
        path = Path(str(db.engine.url.database)).resolve()
        file = os.stat(path)
        return f"{path} (machine {machine_digest()}, device {file.st_dev}, inode {file.st_ino})"
    system = db.scalar(text("SELECT system_identifier FROM pg_control_system()"))
    return f"postgresql:{system}:{db.scalar(text('SELECT current_database()'))}"


def machine_digest() -> str:
    """A short digest of this machine's id: the system's, or else one that Gramercy stores."""
    for path in _MACHINE_IDS:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if machine_id := path.read_text(encoding="ascii").strip():
                return _digest(machine_id)
    return _digest(_stored_machine_id())


def _stored_machine_id() -> str:
    """An id that is generated once and stored outside Gramercy's home, which may be copied."""
    state = os.environ.get("XDG_STATE_HOME")
    folder = (Path(state) if state else Path.home() / ".local" / "state") / "gramercy"
    path, reason = folder / "machine-id", ""
    with contextlib.suppress(OSError):  # the folder may have become read-only
        return path.read_text(encoding="ascii").strip()
    try:
        make_folder(folder, 0o700)
        fresh = folder / f"machine-id.{uuid.uuid4().hex}"
        try:
            fresh.write_text(uuid.uuid4().hex, encoding="ascii")
            with contextlib.suppress(FileExistsError):  # the first of several processes wins
                os.link(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)
        return path.read_text(encoding="ascii").strip()
    except OSError as caught:
        reason = error_reason(caught)
    raise families.LEDGER(
        "{path}: this machine has no id, and none could be stored ({reason}).",
        "Make the folder writable, or set XDG_STATE_HOME to a writable folder outside "
        "GRAMERCY_HOME.",
        path=str(path),
        reason=reason,
    )


def _digest(machine_id: str) -> str:
    return hashlib.sha256(f"gramercy {machine_id}".encode()).hexdigest()[:16]
