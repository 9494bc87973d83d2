"""A Prefect server and a worker, as child processes that end with this one.

Each has its own event loop, signal handlers and logs, so they are started as
`prefect server start` and `prefect worker start`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import IO, Any

from gramercy.cli.output import terminal
from gramercy.common.disk import make_folder
from gramercy.common.home import Home
from gramercy.schemas.problems.command_line import (
    port_in_use,
    server_not_answering,
    server_not_started,
)
from gramercy.schemas.url import without_secrets

_START_SECONDS = 180
_STOP_SECONDS = 30
_ANSWER_SECONDS = 5
_BUSY_SECONDS = 30  # a server that is in use may be busy

Process = subprocess.Popen[bytes]


def stop_children_on_signals() -> None:
    """End the children on SIGINT, SIGTERM and SIGHUP: an orphaned schedule would keep charging."""

    def stop(number: int, _: object) -> None:
        terminal.say("Stopping ...", to=terminal.err)
        raise SystemExit(0 if number == signal.SIGINT else 128 + number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), stop)


@contextlib.contextmanager
def server(home: Home, port: int) -> Iterator[tuple[str, Process | None]]:
    """The server at PREFECT_API_URL, or a new one on a port of this machine.

    Yields
    ------
    tuple
        URL of its API, and its process if it was started here.

    Raises
    ------
    ServerError
        If it does not answer.
    """
    url = os.environ.get("PREFECT_API_URL")
    if url:
        if not _answers(url, _BUSY_SECONDS):
            raise server_not_answering(without_secrets(url))
        yield url, None
        return
    api = f"http://127.0.0.1:{port}/api"
    if _answers(api):
        raise port_in_use(port, api)
    terminal.say("Starting a Prefect server (takes half a minute) ...", to=terminal.err)
    log = home.root / "serve" / "server.log"
    make_folder(log.parent, 0o700)
    command = ("server", "start", "--host", "127.0.0.1", "--port", str(port))
    pages = {"PREFECT_SERVER_UI_API_URL": api}  # otherwise Prefect's pages would use port 4200
    with log.open("wb") as out, _prefect(pages, *command, out=out) as process:
        end = time.monotonic() + _START_SECONDS
        while not _answers(api):
            if process.poll() is not None or time.monotonic() > end:
                raise server_not_started(port, str(log))
            time.sleep(0.5)
        yield api, process


@contextlib.contextmanager
def worker(home: Home, api: str, pool: str) -> Iterator[Process]:
    """A worker that runs the scheduled runs of a work pool in this home.

    Yields
    ------
    Process
        The worker; it prints when a run begins and ends.
    """
    settings = {
        "PREFECT_API_URL": api,
        "PREFECT_LOGGING_LEVEL": "INFO",
        "GRAMERCY_HOME": str(home.root),
    }
    with _prefect(settings, "worker", "start", "--pool", pool) as process:
        yield process


def _answers(api: str, seconds: float = _ANSWER_SECONDS) -> bool:
    if not api.startswith(("http://", "https://")):
        return False
    try:
        with urllib.request.urlopen(f"{api}/health", timeout=seconds) as reply:  # noqa: S310  see above
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@contextlib.contextmanager
def _prefect(
    settings: dict[str, str], *command: str, out: IO[Any] | None = None
) -> Iterator[Process]:
    """A Prefect command that is stopped at the end of the block."""
    quiet = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    child = subprocess.Popen(  # noqa: S603  a list of words, without a shell
        [sys.executable, "-m", "prefect", *command],
        env={**os.environ, **quiet, "PREFECT_LOGGING_LEVEL": "WARNING", **settings},
        stdout=out or sys.stderr,
        stderr=out or sys.stderr,
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
