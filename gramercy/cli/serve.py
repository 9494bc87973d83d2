"""``gramercy serve``: releases on a schedule, on this machine.

A Prefect server and a worker are child processes that end with this one. Each has its own event
loop, signal handlers and logs.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shlex
import shutil
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
from typing import Annotated, Any

import typer

from gramercy.cli import terminal
from gramercy.cli.options import LogFormat
from gramercy.cli.prefect_server import new_login, start_server
from gramercy.common import log_lines
from gramercy.common.disk import make_folder, write_atomically
from gramercy.common.home import Home
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.request_files import read_request
from gramercy.pipeline.publish.charging import check_ledger
from gramercy.pipeline.status.scheduled_runs import Service
from gramercy.schemas import families
from gramercy.schemas.url import without_secrets

_POLL_SECONDS = 2
_START_SECONDS = 180
_STOP_SECONDS = 30
_ANSWER_SECONDS = 5
_BUSY_SECONDS = 30  # a server that is in use may be busy
_LOG_BYTES = 10 << 20

Process = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Server:
    """A Prefect server that answers, with what its clients send, if it asks for a login."""

    api: str
    login: str | None
    login_file: Path | None = None  # private; only of a server that was started here
    process: Process | None = None
    log: Path | None = None  # private, of the process


def serve(
    requests: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[REQUEST]...", help="YAML files of the requests to schedule."),
    ] = None,
    cron: Annotated[
        str, typer.Option(help="Schedule in cron syntax, with five fields.")
    ] = "0 6 * * 1",
    timezone: Annotated[
        str | None, typer.Option(help="Time zone of the schedule; default: the request's, or UTC.")
    ] = None,
    port: Annotated[int, typer.Option(help="TCP port of the Prefect server.")] = 4200,
    pool: Annotated[
        str, typer.Option(help="Work pool; choose your own on a shared server.")
    ] = "gramercy",
    log_format: LogFormat = "text",
) -> None:
    """Run Prefect, its deployments and a worker on this machine.

    Runs until Ctrl-C. Contracts must be registered: see 'gramercy register'. Uses the server at
    PREFECT_API_URL, with the login in PREFECT_API_AUTH_STRING, if that is set.

    Example: gramercy serve request.yaml --cron "0 6 * * 1" --timezone Europe/Berlin
    """
    if log_format == "json":
        log_lines.use_json("stdout", "stderr")  # one log, where a service runs
    with children_end_on_signals():
        _serve(requests or [], cron, timezone, port, pool)


def _serve(requests: Sequence[Path], cron: str, timezone: str | None, port: int, pool: str) -> None:
    from gramercy.flows.deployments import WorkPool, deployments  # Prefect reads its settings

    context = Context.default()
    check_ledger(context)
    scheduled = [read_request(path) for path in requests]
    served = deployments(context, scheduled, cron, timezone, pool)
    if not 1 <= port <= 65535:
        raise families.USAGE(
            "--port must be between 1 and 65535.", "Choose another, such as 4200.", port=port
        )
    with running_server(context.home, port) as server:
        work_pool = WorkPool(server.api, pool, context.home, server.login)
        for name in work_pool.deploy(served):
            terminal.say(f"No longer scheduled: {name}", to=terminal.err)
        has_alerts = work_pool.make_alerts()
        _service(server, pool, served).record(context.home)
        with running_worker(context.home, server, pool) as worker:
            _print_deployments(served, server)
            if not has_alerts:
                terminal.say("Failed and late runs send no alert: set GRAMERCY_ALERTS_URL.")
            while worker.poll() is None and (
                server.process is None or server.process.poll() is None
            ):
                if server.log is not None:
                    rotate(server.log)
                time.sleep(_POLL_SECONDS)
            raise families.SERVER(
                "The Prefect server or the worker stopped.",
                "The last lines of its output show why.",
            )


def _service(server: Server, pool: str, served: Sequence[Any]) -> Service:
    """What `gramercy status` asks; the address and the login of other servers are not kept."""
    schedules = {
        tag.removeprefix("dataset:"): f"'{each.schedule.cron}' ({each.schedule.timezone})"
        for deployment in served
        for each in deployment.schedules or ()
        for tag in deployment.tags
        if tag.startswith("dataset:")
    }
    if server.login_file is None:
        return Service(pool, schedules)
    return Service(pool, schedules, server.api, str(server.login_file))


def _print_deployments(served: Sequence[Any], server: Server) -> None:
    for deployment in served:
        when = "when a release is published"
        if deployment.schedules:
            schedule = deployment.schedules[0].schedule
            when = f"{schedule.cron} ({schedule.timezone})"
        terminal.say(terminal.bold(deployment.full_name), f"  {when}")
    api = without_secrets(server.api)
    url = api.removesuffix("/api")
    terminal.say(f"\nServing at {url}. Ctrl-C stops the server and pauses the schedule.")
    login = ""
    if server.login_file is not None:  # its content may be printed nowhere: output becomes logs
        terminal.say(f"Its pages ask for a password: the line in {server.login_file}.")
        login = f'PREFECT_API_AUTH_STRING="$(cat {shlex.quote(str(server.login_file))})" '
    first = served[0]
    if first.schedules:
        prefect = Path(sys.executable).with_name("prefect")
        terminal.say(
            "To release now, in another terminal:\n"
            f"  PREFECT_API_URL={api} {login}{prefect} deployment run {first.full_name}"
        )
    else:
        terminal.say("No release is scheduled; pass requests as arguments to schedule them.")


@contextlib.contextmanager
def children_end_on_signals() -> Iterator[None]:
    """End the children on SIGINT, SIGTERM and SIGHUP: an orphaned schedule would keep charging."""

    def stop(number: int, _: object) -> None:
        terminal.say("Stopping ...", to=terminal.err)
        raise SystemExit(0 if number == signal.SIGINT else 128 + number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def running_server(home: Home, port: int) -> Iterator[Server]:
    """The server at PREFECT_API_URL, or a new one on a port of this machine, with a new login."""
    url = os.environ.get("PREFECT_API_URL")
    if url:
        yield _configured(url)
        return
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError:
        raise families.SERVER(
            "Port {port} is already in use.",
            "Choose another --port; or, to use the Prefect server there, set "
            "PREFECT_API_URL={url}.",
            port=port,
            url=f"http://127.0.0.1:{port}/api",
        ) from None
    # Kept open: if the server ends alone, no one else can take its port before the worker ends.
    with listener:
        terminal.say("Starting a Prefect server (takes half a minute) ...", to=terminal.err)
        folder, login, api = _folder(home), new_login(), f"http://127.0.0.1:{port}/api"
        login_file, log = folder / f"{port}.login", folder / "server.log"
        write_atomically(login_file, login.encode(), 0o600)
        log.unlink(missing_ok=True)
        with log.open("ab") as out:  # so that it goes on at the beginning of an emptied file
            started = start_server(listener, login, out, folder=folder)
        with _stopped_at_end(started) as process:
            end = time.monotonic() + _START_SECONDS
            while _status(f"{api}/health") != 200:
                if process.poll() is not None or time.monotonic() > end:
                    raise families.SERVER(
                        "The Prefect server did not start on port {port}.",
                        "See {log}.",
                        port=port,
                        log=str(log),
                    )
                time.sleep(0.5)
            yield Server(api, login, login_file, process, log)


def rotate(log: Path, most: int = _LOG_BYTES) -> None:
    """Empty a log of more bytes, which a process appends to for years, after copying it."""
    if log.stat().st_size > most:
        shutil.copyfile(log, log.with_name(f"{log.name}.1"))
        os.truncate(log, 0)


def _folder(home: Home) -> Path:
    """The private folder of the server and the worker."""
    folder = home.root / "serve"
    make_folder(folder, 0o700)
    return folder


def _configured(api: str) -> Server:
    """The server at an address, after checking that it accepts this login."""
    shown, login = without_secrets(api), os.environ.get("PREFECT_API_AUTH_STRING") or None
    if _status(f"{api}/health", _BUSY_SECONDS) != 200:
        raise families.SERVER(
            "The Prefect server at PREFECT_API_URL ({url}) does not answer.",
            "Start it, or unset PREFECT_API_URL.",
            url=shown,
        )
    if _status(f"{api}/admin/version", _BUSY_SECONDS) == 200:
        terminal.warn(
            families.NO_LOGIN(
                "The Prefect server at {url} asks for no login: anyone who reaches it can "
                "start releases of all registered contracts, up to their budgets.",
                "Set PREFECT_SERVER_API_AUTH_STRING for that server.",
                url=shown,
            )
        )
    elif _status(f"{api}/admin/version", _BUSY_SECONDS, login) != 200:
        raise families.SERVER(
            "The Prefect server at {url} refuses this login.",
            "Set PREFECT_API_AUTH_STRING to the login of that server.",
            url=shown,
        )
    return Server(api, login)


@contextlib.contextmanager
def running_worker(home: Home, server: Server, pool: str) -> Iterator[Process]:
    """A worker that runs the scheduled runs of a work pool in this home, and prints which."""
    settings = {
        "PREFECT_API_URL": server.api,
        "PREFECT_LOGGING_LEVEL": "INFO",
        "GRAMERCY_HOME": str(home.root),
        **({} if server.login is None else {"PREFECT_API_AUTH_STRING": server.login}),
    }
    started = subprocess.Popen(  # noqa: S603  a list of words, without a shell
        # Neither modules nor Prefect's settings are taken from the folder of the command.
        [sys.executable, "-P", "-m", "gramercy.flows.worker", pool],
        cwd=_folder(home),
        env={**os.environ, **settings},
        stdout=sys.stderr,
        start_new_session=True,  # Ctrl-C reaches this process, which stops the child
    )
    with _stopped_at_end(started) as process:
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
def _stopped_at_end(child: Process) -> Iterator[Process]:
    """Stop a child at the end of the block."""
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
