"""Ctrl-C: the command ends within 10 s, and says what was charged."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramercy.cli import flow_runner
from gramercy.cli.interruption import interruptible
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.pipeline.context import Context
from gramercy.schemas import families
from tests.support.factories import FULL, at_scale, read_plan, run_release, write_request
from tests.support.problems import raises

SECONDS = 10
# A flow that does not end after Ctrl-C, as Prefect while its server is gone.
STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where the tests were started by `nohup`
from gramercy.cli import main
from gramercy.cli.interruption import interruptible

def release():
    with interruptible(lambda: "NOTHING"):
        print("running", flush=True)
        while True:
            try:
                time.sleep(60)
            except KeyboardInterrupt:
                pass

main._run = release
main.run()
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


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_stubborn_flow_ends(name: str) -> None:
    with started("-c", STUBBORN) as process:
        assert process.stdout.readline() == "running\n"
        start = time.monotonic()
        os.kill(process.pid, signal.Signals[name])
        _, errors = process.communicate(timeout=60)
        assert time.monotonic() - start < SECONDS
        assert process.returncode == families.INTERRUPTED.kind.exit_code
        assert families.INTERRUPTED.code in errors
        assert "NOTHING" in errors


def test_errors_of_gramercy_are_kept() -> None:
    before = signal.getsignal(signal.SIGINT)  # ignored, where a shell has started the tests with &
    with raises(families.INTERRUPTED), interruptible(lambda: "NOTHING"):
        raise families.INTERRUPTED("Interrupted.")
    assert signal.getsignal(signal.SIGINT) is before


def test_outcome_is_that_of_the_ledger(tmp_path: Path, home: Path) -> None:
    context, plan = Context.default(), read_plan(write_request(tmp_path))
    assert flow_runner.charge_outcome(context, plan, set()) == flow_runner.NOTHING_CHARGED
    release = run_release(write_request(tmp_path))
    ledger = Ledger.of(Home.default())
    published = flow_runner.OUTCOMES["published"].format(release=f"toy/{release}")
    assert flow_runner.charge_outcome(context, plan, set()) == published
    assert flow_runner.charge_outcome(context, plan, {release}) == flow_runner.NOTHING_CHARGED
    assert ledger.releases("toy") == [release]


def test_prefect_is_not_imported_before_its_settings_are_set() -> None:
    code = (
        "import sys, gramercy.cli.flow_runner, gramercy.cli.main; print('prefect' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


WEAK = """
import os, signal, time, weakref
from gramercy.cli import main

class Some: pass

def command():
    some = Some()
    _ = weakref.ref(some, lambda _: os.kill(os.getpid(), signal.SIGINT))
    del some
    time.sleep(60)

main._run = command
main.run()
"""
CAUGHT = """
import os, signal
from gramercy.cli import interruption, main

def release():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        print("caught")
    with interruption.interruptible(lambda: "nothing"):
        print("published")

main._run = release
main.run()
"""


@pytest.mark.parametrize(
    ("code", "printed"), [(WEAK, ""), (CAUGHT, "caught\n")], ids=["in a weak reference", "caught"]
)
def test_interruption_is_not_lost(code: str, printed: str, tmp_path: Path) -> None:
    """Python ignores an exception in a weak reference's callback, and a module may catch it."""
    (tmp_path / "module.py").write_text(code)
    command = [sys.executable, "-m", "module"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=50
    )
    assert (done.returncode, done.stdout) == (130, printed)
    assert families.INTERRUPTED.code in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not FULL, reason="runs a release twenty times; see `make acceptance`")
def test_interrupted_commands(tmp_path: Path) -> None:
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
        # The signal itself ends a command that exits already.
        assert process.returncode in {130, -signal.SIGINT}, errors
        assert "Traceback" not in errors
        charges = Ledger.of(home).charges("toy") if home.ledger.exists() else ()
        if families.INTERRUPTED.code in errors:
            assert (flow_runner.NOTHING_CHARGED in errors) == (not charges)
        else:
            assert not charges or charges[0].state == "published"
        with started(*command, environ={"GRAMERCY_HOME": str(home.root)}) as process:
            process.communicate(timeout=300)
            done = [c.state for c in Ledger.of(home).charges("toy")]
            assert done == ["published"] if process.returncode == 0 else done[0] != "published"
