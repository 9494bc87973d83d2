"""The Prefect servers that Gramercy starts: one that this user's commands share, and `serve`'s.

Both are the same program, `flows.server_process`, and answer on this machine only, to those who
can read their login. A server takes seconds to start, so the first command that needs the shared
one starts it before it imports Prefect itself. It ends by itself some minutes after the last
command that used it.

A private folder in Prefect's home has a record of each shared server: its address and its login.
The server holds the record's lock for as long as it runs. Every command that uses the server shares
the lock of ``NAME.users`` until the command ends; the server takes that lock before it ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hmac
import json
import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from gramercy.common.disk import temporary_file
from gramercy.common.home import minutes_stated

_MINUTES = 10.0
_FILES = (".env", "prefect.toml", "pyproject.toml")  # with Prefect's settings, in any folder


def new_login() -> str:
    """A random login: the text that Prefect's pages ask for, and its clients send."""
    return f"gramercy:{uuid.uuid4().hex}{uuid.uuid4().hex}"


def start_server(
    listener: socket.socket,
    login: str,
    log: IO[Any],
    *arguments: str,
    folder: Path | None = None,  # where Prefect looks for a file of settings
    handles: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a server; requests that arrive before it is ready wait in the queue of its socket.

    The listener listens already, so that no other process can pass for the server, which answers
    only with the login, and no page of another origin. Arguments and handles are for the program.
    """
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    settings = {
        "PREFECT_SERVER_API_AUTH_STRING": login,
        "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": origin,
        "PREFECT_SERVER_UI_API_URL": f"{origin}/api",  # otherwise that of port 4200
        # In memory, the place of a run would be taken for good if the server is killed meanwhile.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": (
            "prefect.server.concurrency.lease_storage.filesystem"
        ),
        "PREFECT_LOGGING_LEVEL": "WARNING",
    }
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GRAMERCY_")}
    handle = str(listener.fileno())
    return subprocess.Popen(  # noqa: S603  a list of words, without a shell
        # No module is taken from the folder of the command, where others may write.
        [sys.executable, "-P", "-m", "gramercy.flows.server_process", handle, *arguments],
        cwd=folder,
        env=environ | settings,
        pass_fds=(listener.fileno(), *handles),
        start_new_session=True,  # Ctrl-C is for the command
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        umask=0o077,
    )


def start_ahead() -> None:
    """Begin to start the shared server, before Prefect's import, unless another is configured."""
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    if _minutes() > 0 and "PREFECT_API_URL" not in os.environ:
        _running_server()


@contextlib.contextmanager
def shared_server() -> Iterator[None]:
    """Flows in the block use the server that Prefect is configured to use, or the shared one."""
    from gramercy.flows.server_process import has_configured_server, using_server

    if has_configured_server():
        yield
        return
    server = _running_server()
    with using_server(server["url"], server["login"]):
        yield


def _running_server() -> dict[str, Any]:
    """The record of the shared server, which is started unless it runs."""
    record = _record()
    _use(record.with_suffix(".users"))
    folder = os.open(record.parent, os.O_RDONLY)
    handle = os.open(record, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # one command looks at a time
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _start_shared(record, handle)
        facts: dict[str, Any] = json.loads(record.read_bytes())
        return facts
    finally:
        os.close(handle)
        os.close(folder)


def _start_shared(record: Path, handle: int) -> None:
    """Start the shared server, which inherits the lock of its record, and write the record."""
    login = new_login()
    with (
        socket.create_server(("127.0.0.1", 0), backlog=128) as listener,
        record.with_suffix(".log").open("wb") as log,
    ):
        users, minutes = str(record.with_suffix(".users")), str(_minutes())
        server = start_server(listener, login, log, users, minutes, handles=[handle])
        server.returncode = 0  # it outlives this process, of which Python would warn
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/api"
    os.ftruncate(handle, 0)
    os.write(handle, json.dumps({"url": url, "login": login, "process": server.pid}).encode())


@functools.cache
def _use(users: Path) -> None:
    """Keep a shared server running until this process ends."""
    fcntl.flock(os.open(users, os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_SH)


def _record() -> Path:
    """The record of the server for the settings of Prefect, in a folder that exists.

    Its name depends on these settings, which may contain a password, and is seen by all users in
    the list of processes. So it depends on a private key as well: no one can try passwords on it.
    """
    home = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    folder = home / "gramercy"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    variables = sorted(each for each in os.environ.items() if each[0].startswith("PREFECT_"))
    files = [path for path in (home / "profiles.toml", *map(Path, _FILES)) if path.is_file()]
    facts = repr([sys.executable, variables, [path.read_bytes() for path in files]])
    return folder / f"{hmac.digest(_key(folder), facts.encode(), 'sha256').hex()[:16]}.json"


def _key(folder: Path) -> bytes:
    """The private key of a folder, which the first command makes."""
    key = folder / "names.key"
    if not key.exists():
        new = f"{uuid.uuid4().hex}{uuid.uuid4().hex}".encode()
        with (
            temporary_file(key, new, 0o600) as temporary,
            contextlib.suppress(FileExistsError),  # another command was first
        ):
            os.link(temporary, key)
    return key.read_bytes()


def _minutes() -> float:
    """How long the shared server waits for another command."""
    return minutes_stated("GRAMERCY_SERVER_MINUTES", _MINUTES, or_zero=True)
