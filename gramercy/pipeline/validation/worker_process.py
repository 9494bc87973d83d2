"""The process in which Great Expectations runs: started ahead, asked, and ended.

It has no terminal, no variables of Gramercy, Prefect or PostgreSQL, and a group of its own: Ctrl-C
is for the command. The keys of a store stay, because it reads the files there. It ends when its
standard input does, so also if this process is killed.
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
SECONDS = 60  # for an answer, and for the start before the first one
LENGTH_BYTES = 8  # of a question
_SECRET = ("GRAMERCY_", "PREFECT_", "PG")  # beginnings of names of variables


class WorkerProcess:
    """A worker that has been started."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._asking = threading.Lock()
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
    def is_idle(self) -> bool:
        """Whether it can be asked: it runs, and not for the process that this one was forked from.

        A question that another thread has asked is not answered yet: then it cannot.
        """
        is_own = self._owner == os.getpid()
        return is_own and self._process.poll() is None and not self._asking.locked()

    def ask(self, question: str, job: object, seconds: float = SECONDS) -> dict[str, Any]:
        """The answer of `validation.worker`; empty if it fails or takes too long: it is ended."""
        to: Any = self._process.stdin
        out: Any = self._process.stdout
        content = pickle.dumps((question, job))
        timer = threading.Timer(seconds, self._process.kill)
        timer.daemon = True
        timer.start()
        # A worker that has ended has closed its pipes, and its answer may be cut off.
        with self._asking, contextlib.suppress(OSError, ValueError):
            to.write(len(content).to_bytes(LENGTH_BYTES, "big") + content)
            to.flush()
            answer: dict[str, Any] = json.loads(out.readline())
            timer.cancel()
            return answer
        timer.cancel()
        self.end()
        return {}

    def end(self) -> None:
        """End it, also while it is asked; not for the process that this one was forked from."""
        if self._owner != os.getpid():
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError, ValueError):  # another thread may still read
                if pipe is not None:
                    pipe.close()


_lock = threading.Lock()
_idle = list[WorkerProcess]()  # a worker that waits, if there is one


def start_ahead() -> None:
    """Start a worker for the next block of `worker`, unless one waits already."""
    _keep(_take())


@contextlib.contextmanager
def worker() -> Iterator[WorkerProcess]:
    """A worker for this block alone; one that is still asked at the end of the block is ended."""
    process = _take()
    try:
        yield process
    finally:
        _keep(process)


def _take() -> WorkerProcess:
    with _lock:
        waiting, _idle[:] = [*_idle], []
    for each in waiting:
        if each.is_idle:
            return each
        each.end()
    return WorkerProcess()


def _keep(process: WorkerProcess) -> None:
    with _lock:
        if process.is_idle and not _idle:
            _idle.append(process)
            return
    process.end()


@atexit.register
def end_idle() -> None:
    """End the worker that waits: this process needs none any more."""
    with _lock:
        waiting, _idle[:] = [*_idle], []
    for each in waiting:
        each.end()
