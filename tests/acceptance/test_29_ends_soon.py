"""Ctrl-C, or a server that dies: the command ends within 10 s, and says what was charged."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramercy.application.context import Context
from gramercy.application.open_publication import publishing
from gramercy.cli import flow_runner, run_guard
from gramercy.cli.run_guard import guarded
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.schemas.problem import Problem
from gramercy.schemas.problems.command_line import (
    interrupted,
    server_ended,
    temporary_server_ended,
)
from tests.support.factories import FULL, at_scale, read_plan, run_release, write_request
from tests.support.problems import raises

SECONDS = 10
# A flow that does not end after Ctrl-C, as Prefect while its server is gone.
STUBBORN = """
import subprocess, sys, time, types
from gramercy.cli.run_guard import guarded
from gramercy.cli.main import run as run_command
from gramercy.cli import commands

child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
server = types.SimpleNamespace(server_process=child)
servers = types.SimpleNamespace(_instances={None: server})
sys.modules["prefect.server.api.server"] = types.SimpleNamespace(SubprocessASGIServer=servers)

def run():
    with guarded(lambda: "NOTHING"):
        print("running", child.pid, flush=True)
        while True:
            try:
                time.sleep(60)
            except KeyboardInterrupt:
                pass

commands.load = lambda name: __import__("typer").main.get_command(_app())

def _app():
    import typer
    app = typer.Typer()
    app.command("mechanisms")(run)
    return app

sys.argv = ["gramercy", "mechanisms"]
run_command()
"""


@contextlib.contextmanager
def started(*command: str, environ: dict[str, str] | None = None) -> Iterator[Any]:
    """A command in a process group of its own, as from a terminal; killed at the end."""
    process = subprocess.Popen(
        [sys.executable, *command],
        env=os.environ | (environ or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def is_running(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize(
    ("dies", "problem"),
    [
        ("command", interrupted),
        ("terminated", interrupted),
        ("hung up", interrupted),
        ("server", temporary_server_ended),
        ("both", interrupted),
    ],
)
def test_stubborn_flow_ends(dies: str, problem: Problem[..., Any]) -> None:
    with started("-c", STUBBORN) as process:
        server = int(process.stdout.readline().split()[1])
        start = time.monotonic()
        signals = {"command": "SIGINT", "terminated": "SIGTERM", "hung up": "SIGHUP"}
        if dies in signals:
            os.kill(process.pid, signal.Signals[signals[dies]])
        elif dies == "server":
            os.kill(server, signal.SIGKILL)
        else:
            os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert time.monotonic() - start < SECONDS
        assert process.returncode == problem.kind.exit_code
        assert problem.code in errors
        assert "NOTHING" in errors
        while is_running(server) and time.monotonic() - start < 60:
            time.sleep(0.05)  # the kill takes effect a moment later
        assert not is_running(server)


def without_temporary_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the server that an earlier test may have started in this process."""
    monkeypatch.setattr(run_guard, "server_process", lambda: None)


def test_server_at_a_url_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    without_temporary_server(monkeypatch)
    monkeypatch.setenv("PREFECT_API_URL", "http://user:SECRET@127.0.0.1:9/api")
    expected = raises(server_ended, url="http://127.0.0.1:9/api", outcome="NOTHING")
    with expected, guarded(lambda: "NOTHING"):
        raise TimeoutError


def test_charged_publication_is_finished_without_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ending the process between charge and publication would spend the charge."""
    without_temporary_server(monkeypatch)
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    for name, seconds in (("_GRACE_SECONDS", 0.1), ("_POLL_SECONDS", 0.01)):
        monkeypatch.setattr(run_guard, name, seconds)
    monkeypatch.setattr(run_guard, "_UNREACHABLE_SECONDS", 0.0)
    ended = threading.Event()
    monkeypatch.setattr(run_guard, "exit_at_once", lambda code: ended.set())
    with raises(server_ended), guarded(lambda: "CHARGED"):
        with publishing():
            assert not ended.wait(0.5)
        assert ended.wait(30)


def test_errors_of_gramercy_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    without_temporary_server(monkeypatch)
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    before = signal.getsignal(signal.SIGINT)  # ignored, where a shell has started the tests with &
    with raises(interrupted), guarded(lambda: "NOTHING"):
        raise interrupted("")
    assert signal.getsignal(signal.SIGINT) is before


def test_outcome_is_that_of_the_ledger(tmp_path: Path, home: Path) -> None:
    context, plan = Context.default(), read_plan(write_request(tmp_path))
    assert flow_runner.charge_outcome(context, plan, set()) == flow_runner.NOTHING_CHARGED
    release = run_release(write_request(tmp_path))
    ledger = Ledger.of(Home.default())
    published = flow_runner.OUTCOMES["published"].format(release=f"toy/{release}")
    assert flow_runner.charge_outcome(context, plan, set()) == published
    assert flow_runner.charge_outcome(context, plan, {release}) == flow_runner.NOTHING_CHARGED
    assert ledger.releases("toy") == {release}


def test_prefect_is_not_imported_before_its_settings_are_set() -> None:
    code = (
        "import sys, gramercy.cli.flow_runner, gramercy.cli.main; print('prefect' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_exit_code_after_an_interruption_of_executed_text(tmp_path: Path) -> None:
    """Such as the text of a dataclass, as a module is imported."""
    (tmp_path / "interrupted.py").write_text(
        "from gramercy.cli import main\n"
        "main._run = lambda: exec('raise KeyboardInterrupt')\n"
        "main.run()\n"
    )
    command = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")


def test_interruption_in_a_weak_reference_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / "weak.py").write_text(
        "import os, signal, time, weakref\n"
        "from gramercy.cli import main\n"
        "class Some: pass\n"
        "def command():\n"
        "    some = Some()\n"
        "    _ = weakref.ref(some, lambda _: os.kill(os.getpid(), signal.SIGINT))\n"
        "    del some\n"
        "    time.sleep(60)\n"
        "main._run = command\n"
        "main.run()\n"
    )
    command = [sys.executable, "-m", "weak"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=50
    )
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")


def test_interruption_that_a_module_caught_is_remembered(tmp_path: Path) -> None:
    (tmp_path / "catching.py").write_text(
        "import os, signal\n"
        "from gramercy.cli import main, run_guard\n"
        "def release():\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    except BaseException:\n"
        "        print('caught')\n"
        "    with run_guard.guarded(lambda: 'nothing'):\n"
        "        print('published')\n"
        "main._run = release\n"
        "main.run()\n"
    )
    command = [sys.executable, "-m", "catching"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "caught\n", "Interrupted.\n")


@pytest.mark.slow
@pytest.mark.skipif(not FULL, reason="starts twenty Prefect servers; see `make acceptance`")
def test_interrupted_commands(tmp_path: Path) -> None:
    """Ctrl-C at a terminal reaches the temporary server as well."""
    request = write_request(tmp_path)
    start = time.monotonic()
    command = ("-m", "gramercy", "release", str(request), "--yes")
    with started(*command, environ={"GRAMERCY_HOME": str(tmp_path / "whole")}) as process:
        process.communicate(timeout=300)
        assert process.returncode == 0
    whole = time.monotonic() - start
    rng = np.random.default_rng(29)
    for turn in range(at_scale(2, 20)):
        home = Home(tmp_path / f"home{turn}")
        with started(*command, environ={"GRAMERCY_HOME": str(home.root)}) as process:
            time.sleep(rng.uniform(0.05, 0.95) * whole)
            if process.poll() is not None:
                continue
            interruption = time.monotonic()
            os.killpg(process.pid, signal.SIGINT)
            _, errors = process.communicate(timeout=120)
            assert time.monotonic() - interruption < SECONDS
        if process.returncode == 0:  # it was complete
            continue
        assert process.returncode == 130, errors
        assert "Traceback" not in errors
        charges = Ledger.of(home).charges("toy") if home.ledger.exists() else ()
        if interrupted.code in errors:
            assert (flow_runner.NOTHING_CHARGED in errors) == (not charges)
        else:
            assert not charges or charges[0].state == "published"
        with started(*command, environ={"GRAMERCY_HOME": str(home.root)}) as process:
            process.communicate(timeout=300)
            done = [c.state for c in Ledger.of(home).charges("toy")]
            assert done == ["published"] if process.returncode == 0 else done[0] != "published"
