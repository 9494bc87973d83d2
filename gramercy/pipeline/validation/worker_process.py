"""The process in which Great Expectations runs: started ahead, asked, and ended.

It has no terminal, no secrets of Gramercy, Prefect or a database, and a group of its own: Ctrl-C
is for the command. It ends when its standard input does, so also if this process is killed.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

PROGRAM = (sys.executable, "-P", "-m", "gramercy.pipeline.validation.worker")
SECONDS = 120.0  # for an answer: then a release goes on without it
LENGTH_BYTES = 8  # of a job
_END_SECONDS = 5.0
_SECRET = ("GRAMERCY_", "PREFECT_", "PG")  # beginnings of names of variables


class WorkerProcess:
    """A worker that has been started."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._process = subprocess.Popen(  # noqa: S603  a list of words, without a shell
            PROGRAM,
            env={k: v for k, v in os.environ.items() if not k.startswith(_SECRET)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # it may quote cells
            start_new_session=True,
            umask=0o077,
        )

    @property
    def is_alive(self) -> bool:
        """Whether it runs, and belongs to this process and not to one that was forked from it."""
        return self._owner == os.getpid() and self._process.poll() is None

    def answers(self, job: object, seconds: float = SECONDS) -> Iterator[dict[str, Any]]:
        """The answers to a job, as they come; fewer if the worker fails or takes too long.

        It is ended then.
        """
        timer = threading.Timer(seconds, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            yield from self._ask(pickle.dumps(job))
        finally:
            timer.cancel()

    def _ask(self, job: bytes) -> Iterator[dict[str, Any]]:
        to, out = self._process.stdin, self._process.stdout
        if to is None or out is None:
            raise ValueError
        # A worker that has ended closes its pipes, and what it wrote last may be cut off.
        with contextlib.suppress(OSError, ValueError):
            to.write(len(job).to_bytes(LENGTH_BYTES, "big") + job)
            to.flush()
            for line in out:
                answer: dict[str, Any] = json.loads(line)
                yield answer
                if answer.get("done"):
                    return
        self.end()

    def end(self) -> None:
        """End it, also in the middle of a job."""
        if self._owner != os.getpid():
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError, ValueError):  # another thread may still read
                if pipe is not None:
                    pipe.close()


_lock = threading.Lock()
_idle = list[WorkerProcess]()  # a worker that waits for a job, if there is one


def start_ahead() -> None:
    """Start a worker for the next job, unless one waits already."""
    with _lock:
        if not any(each.is_alive for each in _idle):
            _idle[:] = [WorkerProcess()]


@contextlib.contextmanager
def worker() -> Iterator[WorkerProcess]:
    """A worker for one job at a time; one that still has a job at the end of the block is ended."""
    start_ahead()
    with _lock:
        taken = _idle.pop()
    try:
        yield taken
    except BaseException:
        taken.end()
        raise
    with _lock:
        if taken.is_alive and not _idle:
            _idle.append(taken)
            return
    taken.end()


def end_idle() -> None:
    """End the worker that waits: this process needs none any more."""
    with _lock:
        waiting, _idle[:] = [*_idle], []
    for each in waiting:
        each.end()


atexit.register(end_idle)
