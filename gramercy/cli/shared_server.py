"""The Prefect server that this user's commands share, if no other is configured.

A server takes seconds to start. The first command that needs one starts it, and imports Great
Expectations meanwhile. It answers on this machine only, to those who can read its private record,
and ends by itself some minutes after the last command that used it: see
`cli.shared_server_process`.

Two files, in a private folder, have locks:

* ``NAME.json``, the record: the server holds its lock for as long as it runs;
* ``NAME.users``: every command that uses the server shares it until it ends. Who starts the server
  or ends it holds it alone.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MINUTES_VARIABLE = "GRAMERCY_SERVER_MINUTES"
_MINUTES = 10.0
_SETTINGS = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1"}

fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None

_used: list[int] = []  # handles whose locks last as long as this process


def use_shared_server() -> None:
    """Make Prefect use the shared server, and start it if it does not run.

    Does nothing if Prefect is configured to use another one; if `GRAMERCY_SERVER_MINUTES` is 0, for
    Prefect then starts a server for this command alone; or on systems without these locks.
    """
    from gramercy.flows.server import has_configured_server, reload_settings, stated_settings

    minutes = float(os.environ.get(MINUTES_VARIABLE, _MINUTES))
    if has_configured_server() or minutes <= 0 or fcntl is None:
        return
    prefect_home, stated = stated_settings()
    folder = prefect_home / "gramercy"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = json.dumps([sys.executable, sorted(stated.items())])
    name = hashlib.sha256(facts.encode()).hexdigest()[:16]
    url, secret = _join(folder / f"{name}.json", stated, minutes)
    os.environ |= {"PREFECT_API_URL": url, "PREFECT_API_AUTH_STRING": secret}
    reload_settings()


def uses_shared_server() -> bool:
    """Whether this process uses the shared server."""
    return bool(_used)


def _join(record: Path, settings: Mapping[str, str], minutes: float) -> tuple[str, str]:
    """URL and secret of the server, which runs until this process ends."""
    users = os.open(record.with_suffix(".users"), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(users, fcntl.LOCK_SH)
    if not _is_running(record):
        fcntl.flock(users, fcntl.LOCK_EX)
        if not _is_running(record):  # no other command has started it in the meantime
            _start(record, settings, minutes)
        fcntl.flock(users, fcntl.LOCK_SH)
    _used.append(users)
    facts = json.loads(record.read_bytes())
    return facts["url"], facts["secret"]


def _is_running(record: Path) -> bool:
    try:
        handle = os.open(record, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(handle)


def _start(record: Path, settings: Mapping[str, str], minutes: float) -> None:
    """Start the server. Requests that arrive before it is ready wait in the queue of its socket."""
    record.unlink(missing_ok=True)
    secret = f"gramercy:{uuid.uuid4().hex}{uuid.uuid4().hex}"
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        facts = {"url": f"http://127.0.0.1:{listener.getsockname()[1]}/api", "secret": secret}
        handle = os.open(record, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(handle, json.dumps(facts).encode())
            fcntl.flock(handle, fcntl.LOCK_EX)  # the server inherits the lock
            module = "gramercy.cli.shared_server_process"
            command = [sys.executable, "-m", module, str(listener.fileno()), str(record)]
            inherited = {k: v for k, v in os.environ.items() if not k.startswith("GRAMERCY_")}
            environ = {"PREFECT_SERVER_API_AUTH_STRING": secret, MINUTES_VARIABLE: str(minutes)}
            with record.with_suffix(".log").open("wb") as log:
                subprocess.Popen(  # noqa: S603  a list of words, without a shell
                    command,
                    env={**inherited, **_SETTINGS, **settings, **environ},
                    pass_fds=(listener.fileno(), handle),
                    start_new_session=True,  # Ctrl-C is for the command
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=record.parent,
                )
        finally:
            os.close(handle)
