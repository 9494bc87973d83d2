"""Where a ledger is, so that a copy of it is known for one.

Two copies of a ledger would spend one budget twice. A file is named by its path, by its device and
inode, which a copy on the same machine does not share, and by the machine. What this cannot tell
apart is said in docs/ledger.md.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import uuid
from pathlib import Path

from sqlalchemy import Connection, text

from gramercy.schemas.errors import LedgerError

_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


def place(db: Connection) -> str:
    """Where the database is.

    Raises
    ------
    LedgerError
        If the machine has no id of its own and none can be kept.
    """
    if db.dialect.name == "sqlite":
        path = resolved(db)
        file = os.stat(path)
        return f"{path} (machine {machine()}, device {file.st_dev}, inode {file.st_ino})"
    system = db.scalar(text("SELECT system_identifier FROM pg_control_system()"))
    return f"postgresql:{system}:{db.scalar(text('SELECT current_database()'))}"


def resolved(db: Connection) -> str:
    """The path of an SQLite ledger: all that its place was in version 0.1."""
    return str(Path(str(db.engine.url.database)).resolve())


def machine() -> str:
    """A short digest of this machine's id: of the system's own, else of one that is kept."""
    for path in _MACHINE_IDS:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if known := path.read_text(encoding="ascii").strip():
                return _digest(known)
    return _digest(_kept())


def _kept() -> str:
    """An id that is made once and kept outside of Gramercy's home, which may be copied."""
    state = os.environ.get("XDG_STATE_HOME")
    folder = (Path(state) if state else Path.home() / ".local" / "state") / "gramercy"
    path, reason = folder / "machine-id", ""
    with contextlib.suppress(OSError):  # the folder may be read-only by now
        return path.read_text(encoding="ascii").strip()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = folder / f"machine-id.{uuid.uuid4().hex}"
        try:
            fresh.write_text(uuid.uuid4().hex, encoding="ascii")
            with contextlib.suppress(FileExistsError):  # the first of several processes wins
                os.link(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)
        return path.read_text(encoding="ascii").strip()
    except OSError as caught:
        reason = os.strerror(caught.errno) if caught.errno else type(caught).__name__
    raise LedgerError(
        f"{path}: this machine has no id, and none can be kept ({reason}).",
        "Make the folder writable, or set XDG_STATE_HOME to one that is, outside GRAMERCY_HOME.",
    )


def _digest(known: str) -> str:
    return hashlib.sha256(f"gramercy {known}".encode()).hexdigest()[:16]
