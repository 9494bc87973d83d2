"""Programs of Gramercy that start at once: each is a fork of a process that has imported them all.

`python -m gramercy...`, as a test, `gramercy serve` or a worker starts it, hands its arguments,
environment and streams to that process, and ends as its fork does. If it is killed, so is the fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
# Read by every interpreter as it starts.
_HAND_OVER = """
import sys

module = next((each for each in sys.orig_argv if each.split(".")[0] == "gramercy"), None)
if module is not None:
    from tests.support.warm_processes import hand_over

    hand_over({address!r}, module)
"""
# Not the modules that are run themselves.
_IMPORTED = (
    "great_expectations",
    "prefect.workers.base",
    *(f"gramercy.flows.{name}" for name in ("release", "audit", "status", "deployments")),
    *(f"gramercy.cli.{name}" for name in ("serve", "backup", "budget", "publish", "verify")),
)
_CONTENT = 1 << 20  # bytes
_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


@contextlib.contextmanager
def warm_processes(
    folder: Path, environ: dict[str, str], *modules: str
) -> Iterator[dict[str, str]]:
    """Start the process; yields the environment in which programs are forks of it.

    Parameters
    ----------
    folder
        For its files.
    environ
        Of the process. Settings that Prefect reads as it is imported cannot be changed later.
    modules
        Further ones to import.
    """
    code = folder / "warm"
    code.mkdir()
    address = str(code / "socket")
    (code / "sitecustomize.py").write_text(_HAND_OVER.format(address=address))
    with socket.socket(socket.AF_UNIX) as listener, (folder / "warm.log").open("wb") as log:
        listener.bind(address)
        listener.listen(64)
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(listener.fileno()), *modules],
            env=environ,
            cwd=_ROOT,
            pass_fds=(listener.fileno(),),
            stdout=log,
            stderr=log,
        )
        try:
            yield environ | {"PYTHONPATH": f"{code}:{_ROOT}"}
        finally:
            process.kill()
            process.wait()


def hand_over(address: str, module: str) -> None:
    """Let the process at an address run this program, and end as it does."""
    words = sys.orig_argv[sys.orig_argv.index(module) + 1 :]
    facts = {"module": module, "words": words, "environ": dict(os.environ), "folder": os.getcwd()}
    with socket.socket(socket.AF_UNIX) as warm:
        warm.connect(address)

        def forward(number: int, _: object) -> None:
            with contextlib.suppress(OSError):
                warm.send(bytes([number]))

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, forward)
        socket.send_fds(warm, [json.dumps(facts).encode()], [0, 1, 2])
        code = int(warm.recv(8) or b"1")
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _serve(listener: socket.socket, *modules: str) -> None:
    """Fork a child for every connection; end it when its connection ends."""
    for name in (*_IMPORTED, *modules):
        import_module(name)
    from gramercy.mechanisms.sampling import sampler

    sampler.self_test()  # it makes the tables from which noise is drawn
    gc.freeze()
    children: dict[socket.socket, tuple[int, int]] = {}  # the process, and a handle of it
    while True:
        ended = [handle for _, handle in children.values()]
        waited: list[Any] = [listener, *children, *ended]
        ready, _, _ = select.select(waited, [], [])
        for caller, (pid, handle) in [*children.items()]:
            if handle in ready:
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with contextlib.suppress(OSError):
                    caller.send(str(code).encode())
                del children[caller]
                os.close(handle)
                caller.close()
            elif caller in ready:
                number = (caller.recv(1) or bytes([signal.SIGKILL]))[0]
                os.kill(pid, number)
        if listener in ready:
            caller, _ = listener.accept()
            content, streams, _, _ = socket.recv_fds(caller, _CONTENT, 3)
            pid = os.fork()
            if pid == 0:
                ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
                for each in (listener, caller, *children):
                    each.close()
                _run(json.loads(content), streams)
            for stream in streams:
                os.close(stream)
            children[caller] = pid, os.pidfd_open(pid)


def _run(facts: dict[str, Any], streams: list[int]) -> None:
    """Be the program, in a fork."""
    code: Any = 1
    try:
        os.setsid()
        for place, handle in enumerate(streams):
            os.dup2(handle, place)
            os.close(handle)
        os.environ.clear()
        os.environ.update(facts["environ"])
        os.chdir(facts["folder"])
        sys.argv = ["", *facts["words"]]
        runpy.run_module(facts["module"], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as done:
        code = done.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as inherited:
        _serve(inherited, *sys.argv[2:])
