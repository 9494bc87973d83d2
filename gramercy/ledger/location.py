"""Where a ledger is, so that a copy of it is recognised.

Two copies of a ledger would spend one budget twice. A file is identified by its path, by its device
and inode, which a copy on the same machine does not share, and by the machine. docs/ledger.md lists
the copies that this cannot recognise.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import uuid
from pathlib import Path

from sqlalchemy import Connection, text

from gramercy.common.disk import error_reason, make_folder
from gramercy.schemas import families

_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


def location_of(db: Connection) -> str:
    """Where the database is.

    Raises
    ------
    LedgerError
        If the machine has no id and none can be stored.
    """
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
