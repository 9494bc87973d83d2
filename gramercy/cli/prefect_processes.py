"""A Prefect server and a worker, as processes that end with this one.

Each of them is an event loop of its own, which handles signals, writes logs and runs until it is
stopped: they are started as `prefect server start` and `prefect worker start`.
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
from gramercy.common.home import Home
from gramercy.schemas.errors import ServerError
from gramercy.schemas.url import without_secrets

_START_SECONDS = 180
_STOP_SECONDS = 30

Process = subprocess.Popen[bytes]


def end_in_order() -> None:
    """Whatever ends this process ends its children: a schedule nobody sees would go on charging."""

    def end(number: int, _: object) -> None:
        terminal.say("Stopping ...", to=terminal.err)
        raise SystemExit(0 if number == signal.SIGINT else 128 + number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), end)


@contextlib.contextmanager
def server(home: Home, port: int) -> Iterator[tuple[str, Process | None]]:
    """The server of PREFECT_API_URL, or one of our own on a port of this machine.

    Yields
    ------
    tuple
        URL of its API, and the process if it is ours.

    Raises
    ------
    ServerError
        If it does not answer.
    """
    url = os.environ.get("PREFECT_API_URL")
    if url:
        if not _answers(url):
            raise ServerError(
                f"The server of PREFECT_API_URL ({without_secrets(url)}) does not answer.",
                "Start it, or unset it.",
            )
        yield url, None
        return
    api = f"http://127.0.0.1:{port}/api"
    if _answers(api):
        raise ServerError(
            f"Port {port} is taken.", f"Choose another --port, or set PREFECT_API_URL={api}."
        )
    terminal.say("Starting a Prefect server (half a minute) ...", to=terminal.err)
    log = home.root / "serve" / "server.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    words = ("server", "start", "--host", "127.0.0.1", "--port", str(port))
    pages = {"PREFECT_SERVER_UI_API_URL": api}  # else they ask the usual port
    with log.open("wb") as out, _prefect(pages, *words, out=out) as process:
        end = time.monotonic() + _START_SECONDS
        while not _answers(api):
            if process.poll() is not None or time.monotonic() > end:
                raise ServerError(
                    f"The Prefect server did not start on port {port}.", f"See {log}."
                )
            time.sleep(0.5)
        yield api, process


@contextlib.contextmanager
def worker(home: Home, api: str, pool: str) -> Iterator[Process]:
    """A worker that runs in this home what is due in a work pool.

    Yields
    ------
    Process
        It says on the terminal when a run begins and ends.
    """
    settings = {
        "PREFECT_API_URL": api,
        "PREFECT_LOGGING_LEVEL": "INFO",
        "GRAMERCY_HOME": str(home.root),
    }
    with _prefect(settings, "worker", "start", "--pool", pool) as process:
        yield process


def _answers(api: str) -> bool:
    try:
        with urllib.request.urlopen(f"{api}/health", timeout=5) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@contextlib.contextmanager
def _prefect(
    settings: dict[str, str], *words: str, out: IO[Any] | None = None
) -> Iterator[Process]:
    """A Prefect command that ends with this block."""
    quiet = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    child = subprocess.Popen(
        [sys.executable, "-m", "prefect", *words],
        env={**os.environ, **quiet, "PREFECT_LOGGING_LEVEL": "WARNING", **settings},
        stdout=out or sys.stderr,
        stderr=out or sys.stderr,
        start_new_session=True,  # Ctrl-C reaches us, and we end it in order
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
