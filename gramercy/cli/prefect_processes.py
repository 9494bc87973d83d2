"""A Prefect server and a worker, as child processes that end with this one.

Each has its own event loop, signal handlers and logs.
"""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from gramercy.cli.login import new_login, server_settings
from gramercy.cli.output import terminal
from gramercy.common.disk import make_folder, write_atomically
from gramercy.common.home import Home
from gramercy.schemas.problems.command_line import (
    port_in_use,
    server_not_answering,
    server_not_started,
)
from gramercy.schemas.problems.prefect import login_refused, server_without_login
from gramercy.schemas.url import without_secrets

_START_SECONDS = 180
_STOP_SECONDS = 30
_ANSWER_SECONDS = 5
_BUSY_SECONDS = 30  # a server that is in use may be busy

Process = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Server:
    """A Prefect server that answers.

    Parameters
    ----------
    api
        URL of its API.
    login
        What its clients send; None if it asks for no login.
    login_file
        The private file with the login, if the server was started here.
    process
        Its process, if it was started here.
    """

    api: str
    login: str | None
    login_file: Path | None = None
    process: Process | None = None


def stop_children_on_signals() -> None:
    """End the children on SIGINT, SIGTERM and SIGHUP: an orphaned schedule would keep charging."""

    def stop(number: int, _: object) -> None:
        terminal.say("Stopping ...", to=terminal.err)
        raise SystemExit(0 if number == signal.SIGINT else 128 + number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), stop)


@contextlib.contextmanager
def server(home: Home, port: int) -> Iterator[Server]:
    """The server at PREFECT_API_URL, or a new one on a port of this machine, with a new login.

    Raises
    ------
    ServerError
        If it does not answer, or refuses the login in PREFECT_API_AUTH_STRING.
    """
    url = os.environ.get("PREFECT_API_URL")
    if url:
        yield _configured(url)
        return
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError:
        raise port_in_use(port, f"http://127.0.0.1:{port}/api") from None
    # Kept open: if the server ends alone, no one else can take its port before the worker ends.
    with listener:
        terminal.say("Starting a Prefect server (takes half a minute) ...", to=terminal.err)
        folder = _folder(home)
        login, login_file, log = new_login(), folder / f"{port}.login", folder / "server.log"
        write_atomically(login_file, login.encode(), 0o600)
        origin, handle = f"http://127.0.0.1:{port}", listener.fileno()
        api = f"{origin}/api"
        settings = {
            **server_settings(login, origin),
            "PREFECT_SERVER_UI_API_URL": api,  # otherwise that of port 4200
        }
        program = ("gramercy.flows.server_process", str(handle))
        with (
            log.open("wb") as out,
            _child(folder, settings, *program, out=out, handles=[handle]) as process,
        ):
            end = time.monotonic() + _START_SECONDS
            while _status(f"{api}/health") != 200:
                if process.poll() is not None or time.monotonic() > end:
                    raise server_not_started(port, str(log))
                time.sleep(0.5)
            yield Server(api, login, login_file, process)


def _folder(home: Home) -> Path:
    """The private folder of the server and the worker."""
    folder = home.root / "serve"
    make_folder(folder, 0o700)
    return folder


def _configured(api: str) -> Server:
    """The server at an address, after checking that it accepts this login."""
    shown, login = without_secrets(api), os.environ.get("PREFECT_API_AUTH_STRING") or None
    if _status(f"{api}/health", _BUSY_SECONDS) != 200:
        raise server_not_answering(shown)
    if _status(f"{api}/admin/version", _BUSY_SECONDS) == 200:
        terminal.warn(server_without_login(shown))
    elif _status(f"{api}/admin/version", _BUSY_SECONDS, login) != 200:
        raise login_refused(shown)
    return Server(api, login)


@contextlib.contextmanager
def worker(home: Home, server: Server, pool: str) -> Iterator[Process]:
    """A worker that runs the scheduled runs of a work pool in this home.

    Yields
    ------
    Process
        The worker; it prints when a run begins and ends.
    """
    settings = {
        "PREFECT_API_URL": server.api,
        "PREFECT_LOGGING_LEVEL": "INFO",
        "GRAMERCY_HOME": str(home.root),
        **({} if server.login is None else {"PREFECT_API_AUTH_STRING": server.login}),
    }
    with _child(_folder(home), settings, "gramercy.flows.worker", pool) as process:
        yield process


def _status(url: str, seconds: float = _ANSWER_SECONDS, login: str | None = None) -> int | None:
    """The status of the answer to a GET request; None if there is none."""
    if not url.startswith(("http://", "https://")):
        return None
    request = urllib.request.Request(url)  # noqa: S310  see above
    if login is not None:
        encoded = base64.b64encode(login.encode()).decode()
        request.add_header("Authorization", f"Basic {encoded}")
    try:
        with urllib.request.urlopen(request, timeout=seconds) as reply:  # noqa: S310  see above
            return int(reply.status)
    except urllib.error.HTTPError as refused:
        refused.close()
        return refused.code
    except (urllib.error.URLError, OSError):
        return None


@contextlib.contextmanager
def _child(
    folder: Path,
    settings: dict[str, str],
    *program: str,
    out: IO[Any] | None = None,
    handles: Sequence[int] = (),
) -> Iterator[Process]:
    """A Python module as a program, in a folder; it is stopped at the end of the block."""
    quiet = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    child = subprocess.Popen(  # noqa: S603  a list of words, without a shell
        # Neither modules nor Prefect's settings are taken from the folder of the command.
        [sys.executable, "-P", "-m", *program],
        cwd=folder,
        env={**os.environ, **quiet, "PREFECT_LOGGING_LEVEL": "WARNING", **settings},
        stdout=out or sys.stderr,
        stderr=out or sys.stderr,
        pass_fds=handles,
        start_new_session=True,  # Ctrl-C reaches this process, which stops the child
    )
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
