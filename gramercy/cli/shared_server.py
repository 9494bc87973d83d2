"""The Prefect server that this user's commands share, if no other is configured.

A server takes seconds to start, so the first command that needs one starts it before it imports
Prefect itself. It answers on this machine only, to those who can read its private record, and ends
by itself some minutes after the last command that used it: see `cli.shared_server_process`.

Three files, in a private folder, have locks:

* ``NAME.json``, the record: the server holds its lock for as long as it runs;
* ``NAME.start``: the process that becomes the server holds it until the record is complete;
* ``NAME.users``: every command that uses the server shares it until it ends. The server holds it
  alone before it ends.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gramercy.cli.login import new_login, server_settings
from gramercy.common.home import Home

MINUTES_VARIABLE = "GRAMERCY_SERVER_MINUTES"
_MINUTES = 10.0
_DEFAULTS = {
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
}
_ATTEMPTS = 3  # a server may end by itself while a command looks for it

fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None

_used: list[int] = []  # handles whose locks last as long as this process
_starting: list[int] = []  # pipes whose other end is closed when a server was started, or need not


def start_for_first_release() -> None:
    """Begin to start the server if this home has no ledger, so that nothing can be a replay."""
    home = Home.default()
    if home.ledger_url is None and not home.ledger.exists():
        start_ahead()


def start_ahead() -> None:
    """Begin to start the server, without Prefect's import, unless one runs or is configured."""
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    if _minutes() > 0 and fcntl is not None and "PREFECT_API_URL" not in os.environ:
        home = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
        running = any(is_running(record) for record in _folder(home).glob("*.json"))
        if not running and not _starting:
            _start()


def use_shared_server() -> None:
    """Make Prefect use the shared server, and start it if it does not run.

    Does nothing if Prefect is configured to use another one; if `GRAMERCY_SERVER_MINUTES` is 0, for
    Prefect then starts a server for this command alone; or on systems without these locks.
    """
    from gramercy.flows.server import has_configured_server, reload_settings, stated_settings

    if has_configured_server():
        return
    if _minutes() <= 0 or fcntl is None:
        _protect_temporary_server()
        return
    record = server_record(*stated_settings())
    users = os.open(record.with_suffix(".users"), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(users, fcntl.LOCK_SH)
    _used.append(users)
    for _ in range(_ATTEMPTS):
        if _starting:
            _wait()
        if is_running(record):
            facts = json.loads(record.read_bytes())
            os.environ["PREFECT_API_URL"] = facts["url"]
            os.environ["PREFECT_API_AUTH_STRING"] = facts["secret"]
            reload_settings()
            return
        _start()
    os.close(_used.pop())
    _protect_temporary_server()


def _protect_temporary_server() -> None:
    """Give the server that Prefect starts for this command alone a login."""
    from gramercy.flows.server import reload_settings

    login = new_login()
    os.environ |= {**server_settings(login), "PREFECT_API_AUTH_STRING": login}
    reload_settings()


def uses_shared_server() -> bool:
    """Whether this process uses the shared server."""
    return bool(_used)


def server_record(prefect_home: Path, stated: Mapping[str, str]) -> Path:
    """The record of the server for some settings of Prefect, in a folder that exists."""
    folder = _folder(prefect_home)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = json.dumps([sys.executable, sorted(stated.items())])
    return folder / f"{hashlib.sha256(facts.encode()).hexdigest()[:16]}.json"


def is_running(record: Path) -> bool:
    """Whether the server with this record runs."""
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


def _minutes() -> float:
    return float(os.environ.get(MINUTES_VARIABLE, _MINUTES))


def _folder(prefect_home: Path) -> Path:
    return prefect_home / "gramercy"


def _start() -> None:
    """Start a process that becomes the server, unless it finds that there is one."""
    begun, closed_when_ready = os.pipe()
    module = "gramercy.cli.shared_server_process"
    subprocess.Popen(  # noqa: S603  a list of words, without a shell
        [sys.executable, "-P", "-m", module, str(closed_when_ready), str(_minutes())],
        env={k: v for k, v in os.environ.items() if not k.startswith("GRAMERCY_")},
        pass_fds=(closed_when_ready,),
        start_new_session=True,  # Ctrl-C is for the command
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(closed_when_ready)
    _starting.append(begun)


def _wait() -> None:
    """Wait until the process that was started has written its record, or has ended."""
    begun = _starting.pop()
    os.read(begun, 1)
    os.close(begun)
