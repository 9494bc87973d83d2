"""A real Prefect server and worker, in processes of their own."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock

from tests.support.prefect_api import Login, post
from tests.support.scratch import SCRATCH

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


def run_prefect(environ: dict[str, str], *arguments: str) -> str:
    """Run a Prefect command in the repository's root; return its output."""
    done = subprocess.run(
        [sys.executable, "-m", "prefect", "--no-prompt", *arguments],
        env=environ,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


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
