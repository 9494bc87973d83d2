"""Prefect servers and workers in processes of their own, requests to them, and a web server."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from filelock import FileLock

from tests.support.scratch import SCRATCH


@dataclass(frozen=True)
class Login:
    """The API of a server that asks for a login and protects against forged requests.

    Parameters
    ----------
    api
        Its URL.
    login
        What clients send; None for a stranger.
    """

    api: str
    login: str | None

    @functools.cached_property
    def headers(self) -> Mapping[str, str]:
        """Headers of a request that changes something; their token is valid for an hour."""
        if self.login is None:
            return {}
        encoded = base64.b64encode(self.login.encode()).decode()
        authorised = {"Authorization": f"Basic {encoded}"}
        request = urllib.request.Request(f"{self.api}/csrf-token?client=tests", headers=authorised)
        with urllib.request.urlopen(request, timeout=300) as reply:
            token = json.loads(reply.read())["token"]
        return {**authorised, "Prefect-Csrf-Token": token, "Prefect-Csrf-Client": "tests"}


def post(api: str | Login, path: str, body: Any, patience: int = 10, method: str = "POST") -> Any:
    """POST to the server's API, retrying while its database is locked, like Prefect's clients.

    A server that is held up for a while is asked again too, so that a run may be created twice.
    """
    server = api if isinstance(api, Login) else Login(api, None)
    request = urllib.request.Request(
        f"{server.api}{path}",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **server.headers},
        method=method,
    )
    try:
        with urllib.request.urlopen(request, timeout=300) as reply:
            return json.loads(reply.read() or b"null")
    except urllib.error.HTTPError as refused:
        if refused.code != 503 or not patience:
            raise
        refused.close()
        time.sleep(0.5)
    except TimeoutError:
        if not patience:
            raise
    return post(api, path, body, patience - 1, method)


def is_healthy(api: str) -> bool:
    try:
        with urllib.request.urlopen(f"{api}/health", timeout=2) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def flow_runs(api: str, flow: str, state: str | None = None) -> list[dict[str, Any]]:
    """The runs of a flow, in a type of state or in any, in the order in which they are due."""
    filters: dict[str, Any] = {"flows": {"name": {"any_": [flow]}}}
    if state is not None:
        filters["flow_runs"] = {"state": {"type": {"any_": [state]}}}
    runs: list[dict[str, Any]] = post(
        api, "/flow_runs/filter", filters | {"sort": "EXPECTED_START_TIME_ASC"}
    )
    return runs


ROOT = Path(__file__).parents[2]
_WAITS = (60, 120, 240)  # seconds


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def copy_migrated_database(prefect_home: Path) -> None:
    """Copy the database that Prefect has made once in this session, which takes seconds."""
    made = SCRATCH.folder / "session" / "migrated"
    with FileLock(f"{made}.lock"):
        if not made.exists():
            environ = os.environ | {"PREFECT_HOME": str(made)}
            command = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "-y"]
            subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL)
    shutil.copy(made / "prefect.db", prefect_home)


def prefect_environment(folder: Path, home: Path, port: int) -> dict[str, str]:
    """Environment of server, worker and client, which write only to `folder` and `home`."""
    (folder / "prefect").mkdir()
    copy_migrated_database(folder / "prefect")
    return _inherited() | {
        "PREFECT_HOME": str(folder / "prefect"),
        "TMPDIR": str(folder),  # where a worker leaves its runs' storage
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_WORKER_QUERY_SECONDS": "1",
        "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "2",
        "GRAMERCY_HOME": str(home),
    }


def _inherited() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}


@contextlib.contextmanager
def running(
    environ: dict[str, str], log: Path, *arguments: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a Python module as a program until the context ends."""
    with log.open("wb") as out:
        command = [sys.executable, "-m", *arguments]
        process = subprocess.Popen(command, env=environ, stdout=out, stderr=out, cwd=log.parent)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


_PREFECT = """
import json, sys
from prefect.cli import app
for words in json.loads(sys.argv[1]):
    sys.argv = ["prefect", "--no-prompt", *words]
    try:
        app()
    except SystemExit as done:
        if done.code:
            raise
"""


def run_prefect(environ: dict[str, str], *commands: Sequence[str]) -> None:
    """Run commands of Prefect in the repository's root, in one process."""
    done = subprocess.run(
        [sys.executable, "-c", _PREFECT, json.dumps(commands)],
        env=environ,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def wait_for(condition: Callable[[], bool], seconds: float, log: Path) -> None:
    """Wait until a condition holds; fail with the end of the log."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, log.read_text()[-4000:]
        time.sleep(0.5)


def run_until(condition: Callable[[], bool], api: str | Login, deployment: str, log: Path) -> None:
    """Run a deployment until a condition holds; fail with the end of the log.

    A release triggers others by an event, which a server may lose when its database stalls: as
    its operator would, run it again, because a replay emits the event again.
    """
    for seconds in _WAITS:
        post(api, f"/deployments/{deployment}/create_flow_run", {})
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                assert seconds != _WAITS[-1], log.read_text()[-4000:]
                break
            time.sleep(0.5)
        else:
            return


class _Silent(SimpleHTTPRequestHandler):
    """Serves files, and lists no folder."""

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""

    def list_directory(self, path: object) -> None:  # type: ignore[override]
        """Refuse, as most servers are configured."""
        self.send_error(403)


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder during the block; yields its address."""
    handler = functools.partial(_Silent, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
