"""A process that imports everything once, and forks a child for every trial; many are killed."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class ChildResult:
    """How a child ended, and the messages it sent.

    Parameters
    ----------
    signal
        The signal that killed it, or 0.
    messages
        In order; each is a key and its values.
    seconds
        How long it ran.
    """

    signal: int
    messages: list[list[Any]]
    seconds: float

    def message(self, key: str) -> list[Any] | None:
        """Return the values of the first message with this key."""
        return next((values for first, *values in self.messages if first == key), None)


class ForkServer:
    """Starts the process, and communicates with it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.faults.forkserver"],
            cwd=ROOT,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(30)

    def fork(
        self, job: str, environ: dict[str, str], killed_after: float | None = None, **facts: Any
    ) -> ChildResult:
        """Run a job of `tests.support.faults.jobs` in a fork, and wait for its end.

        Parameters
        ----------
        job, facts
            Its name and arguments.
        environ
            Additions to its environment.
        killed_after
            Seconds after which it is killed from outside.
        """
        order = {"job": job, "environ": environ, "killed_after": killed_after, "facts": facts}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        result = ChildResult(**json.loads(self._process.stdout.readline()))
        if failure := result.message("crashed"):
            raise AssertionError(*failure)
        return result


def _serve(output: Any) -> None:
    from gramercy.mechanisms.sampling.inverse_cdf_table import inverse_cdf_table
    from gramercy.mechanisms.sampling.rounding import LAPLACE, NORMAL
    from tests.support.faults import jobs

    for law in (NORMAL, LAPLACE):
        inverse_cdf_table(law)  # otherwise every fork would compute this table
    jobs.preload()
    gc.freeze()  # garbage collection would make every fork copy its pages
    for line in sys.stdin.buffer:
        order = json.loads(line)
        jobs.cached_plan(order["facts"]["request"])  # cached for all later forks
        job = getattr(jobs, order["job"])
        answer = _forked(job, order["environ"], order["killed_after"], order["facts"])
        output.write(json.dumps(answer).encode() + b"\n")
        output.flush()


def _forked(
    job: Callable[..., None],
    environ: dict[str, str],
    killed_after: float | None,
    facts: dict[str, Any],
) -> dict[str, Any]:
    read_end, write_end = os.pipe()
    start = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        with _reported(write_end) as send:
            os.environ.update(environ)
            tempfile.tempdir = environ.get("TMPDIR")
            job(send, **facts)
    os.close(write_end)
    if killed_after is not None:
        time.sleep(killed_after)
        os.kill(pid, signal.SIGKILL)  # its id cannot be reused before waitpid
    with os.fdopen(read_end, "rb") as stream:
        messages = [json.loads(line) for line in stream if line.endswith(b"\n")]
    _, status = os.waitpid(pid, 0)
    seconds = time.monotonic() - start
    return {"signal": os.WTERMSIG(status), "messages": messages, "seconds": seconds}


@contextlib.contextmanager
def _reported(write_end: int) -> Iterator[Callable[..., None]]:
    """Report an unexpected exception, and end the fork in any case."""

    def send(*message: Any) -> None:
        os.write(write_end, json.dumps(message).encode() + b"\n")

    try:
        yield send
    except BaseException:
        send("crashed", traceback.format_exc())
    finally:
        os._exit(0)


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "wb") as stdout:
        os.dup2(2, 1)
        _serve(stdout)
