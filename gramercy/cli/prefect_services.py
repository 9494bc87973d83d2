"""One machine's own Prefect: a server, the deployments, and a worker that runs them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from ruamel.yaml import YAML

from gramercy.cli.output import view
from gramercy.common.home import Home
from gramercy.schemas.errors import RequestError, ServerError
from gramercy.schemas.url import has_secrets, without_secrets

_START_SECONDS = 180
_STOP_SECONDS = 30
_LOOK_SECONDS = 2


def serve(requests: Sequence[Any], cron: str, timezone: str | None, port: int, pool: str) -> None:
    """Run server, deployments and worker until interrupted.

    Parameters
    ----------
    requests
        Release requests to be scheduled.
    cron, timezone
        When.
    port
        Of the server, on this machine alone. Where PREFECT_API_URL names one, that is used.
    pool
        The work pool that this home alone serves, one at a time.

    Raises
    ------
    RequestError
        If a request cannot be planned, or the schedule is none; before anything starts. If the
        pool, or the name of a deployment, is another's.
    ServerError
        If a server, a deployment or the worker fails.
    """
    from gramercy.flows.deployments import check_pool, deployments, retire

    _end_in_order()
    asked = deployments(requests, cron, timezone, pool)
    if not 1 <= port <= 65535:
        raise RequestError("--port: is no port.", "Name one from 1 to 65535.")
    url = os.environ.get("PREFECT_API_URL")
    if url and not _answers(url):
        raise ServerError(
            f"The server of PREFECT_API_URL ({without_secrets(url)}) does not answer.",
            "Start it, or unset it.",
        )
    with contextlib.nullcontext((url, None)) if url else _server(port) as (api, server):
        settings = {"PREFECT_API_URL": api, "GRAMERCY_HOME": str(Home.default().root)}
        check_pool(api, asked, pool)
        _prefect(settings, "work-pool", "create", pool, "--type", "process", "--overwrite")
        for name in retire(api, asked):
            view.say(f"No longer scheduled: {name}", to=view.err)
        _prefect(settings, "deploy", "--all", "--prefect-file", str(written(asked)))
        check_pool(api, asked, pool)  # nobody else came meanwhile
        loud = {**settings, "PREFECT_LOGGING_LEVEL": "INFO"}  # a line when a run begins and ends
        with _child(loud, "worker", "start", "--pool", pool) as worker:
            _say_what_runs(asked, api)
            while worker.poll() is None and (server is None or server.poll() is None):
                time.sleep(_LOOK_SECONDS)
            raise ServerError("The server or the worker stopped.", "Their last lines tell why.")


def _say_what_runs(asked: dict[str, Any], api: str) -> None:
    shown = without_secrets(api)
    place = shown.removesuffix("/api")
    for each in asked["deployments"]:
        when = "when a release is published"
        if each.get("schedules"):
            when = f"{each['schedules'][0]['cron']} ({each['schedules'][0]['timezone']})"
        flow = each["entrypoint"].rpartition(".")[2]
        view.say(view.bold(f"{flow}/{each['name']}"), f"  {when}")
    view.say(f"\nServing at {place}. Ctrl-C stops it; the schedule waits meanwhile.")
    first = asked["deployments"][0]
    if first.get("schedules"):
        prefect = Path(sys.executable).with_name("prefect")
        view.say(
            "To release now, in another terminal:\n"
            f"  PREFECT_API_URL={shown} {prefect} deployment run release/{first['name']}"
        )
    else:
        view.say("Nothing is scheduled: name release requests to schedule them.")


def written(asked: dict[str, Any]) -> Path:
    """The deployments as a file that Prefect reads."""
    path = Home.default().root / "serve" / "prefect.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    yaml = YAML(typ="safe", pure=True)
    yaml.version = (1, 1)  # as Prefect reads it: 1e-6 would be text there
    with path.open("w", encoding="utf-8") as stream:
        yaml.dump(asked, stream)
    return path


def _end_in_order() -> None:
    """Whatever ends this process ends its children: a schedule nobody sees would go on charging."""

    def end(number: int, _: object) -> None:
        view.say("Stopping ...", to=view.err)
        raise SystemExit(0 if number == signal.SIGINT else 128 + number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), end)


@contextlib.contextmanager
def _server(port: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A Prefect server of our own."""
    api = f"http://127.0.0.1:{port}/api"
    if _answers(api):
        raise ServerError(
            f"Port {port} is taken.", f"Choose another --port, or set PREFECT_API_URL={api}."
        )
    view.say("Starting a Prefect server (half a minute) ...", to=view.err)
    log = Home.default().root / "serve" / "server.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    words = ("server", "start", "--host", "127.0.0.1", "--port", str(port))
    pages = {"PREFECT_SERVER_UI_API_URL": api}  # else they ask the usual port
    with log.open("wb") as out, _child(pages, *words, out=out) as server:
        end = time.monotonic() + _START_SECONDS
        while not _answers(api):
            if server.poll() is not None or time.monotonic() > end:
                raise ServerError(
                    f"The Prefect server did not start on port {port}.", f"See {log}."
                )
            time.sleep(0.5)
        yield api, server


def _answers(api: str) -> bool:
    try:
        with urllib.request.urlopen(f"{api}/health", timeout=5) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@contextlib.contextmanager
def _child(
    settings: dict[str, str], *words: str, out: IO[Any] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A Prefect process that ends with this block."""
    child = subprocess.Popen(
        _command(*words),
        env=_environment(settings),
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


def _prefect(settings: dict[str, str], *words: str) -> None:
    """Run a Prefect command to its end."""
    done = subprocess.run(
        _command("--no-prompt", *words),
        env=_environment(settings),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = (done.stdout + done.stderr).strip().rpartition("\n")[2]
        if has_secrets(settings["PREFECT_API_URL"]):  # which Prefect may quote in any spelling
            last = "see the server's log"
        raise ServerError(
            f"'prefect {' '.join(words[:2])}' failed: {last:.500}.",
            "The server's log says more; of one that began here, 'serve/server.log' in the home.",
        )


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "prefect", *words]


def _environment(settings: dict[str, str]) -> dict[str, str]:
    quiet = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    return {**os.environ, **quiet, "PREFECT_LOGGING_LEVEL": "WARNING", **settings}
