"""Ends a command soon after Ctrl-C, or after its Prefect server has ended, with a true sentence.

A publication that has been charged is finished first, except after Ctrl-C. Signals that ask a
process to end count as Ctrl-C: the temporary server would otherwise run on for ever.

Prefect repeats requests to a server that is gone for minutes. At a terminal, Ctrl-C ends the
temporary server as well, because it is in the same group of processes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

from gramercy.application.open_publication import is_publishing
from gramercy.cli.output.failure import report_failure
from gramercy.cli.shared_server import uses_shared_server
from gramercy.cli.temporary_server import end_server, server_process
from gramercy.schemas.errors import GramercyError, ServerError
from gramercy.schemas.problems.command_line import (
    interrupted,
    server_ended,
    temporary_server_ended,
)
from gramercy.schemas.url import without_secrets

_GRACE_SECONDS = 5.0  # for the command to end by itself
_POLL_SECONDS = 0.2
_AGAIN_SECONDS = 0.05
_UNREACHABLE_SECONDS = 3.0  # a server that is restarted answers sooner
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_PORT_IN_USE = 3  # exit code of a server; Prefect then starts another one

_ended_early, _interrupted = threading.Event(), threading.Event()

Outcome = Callable[[], str]


@contextlib.contextmanager
def guarded(outcome: Outcome) -> Iterator[None]:
    """Run flows in the block; after Ctrl-C or the end of the server, the command ends within 10 s.

    Parameters
    ----------
    outcome
        Says what was charged and published until now. It may be called in another thread.

    Raises
    ------
    Interrupted
        After Ctrl-C.
    ServerError
        If the server has ended.
    """
    guard = _Guard(outcome)
    failure: GramercyError | None = None
    with guard.watching():
        try:
            yield
        except BaseException as error:
            failure = guard.failure(error)
            if failure is None:
                raise
        else:  # Prefect may have caught the interruption
            failure = guard.early_end()
    if failure is not None:
        raise failure


def remember_interruptions() -> None:
    """From now on, no Ctrl-C is lost.

    Modules that catch every exception while they are imported catch a Ctrl-C as well: the next
    block of `guarded` then ends before it begins. Where Python cannot raise it, as in a callback of
    a weak reference, it is raised again a moment later.
    """
    signal.signal(signal.SIGINT, _on_early_interrupt)
    sys.unraisablehook = _on_unraisable


def _on_early_interrupt(number: int, frame: FrameType | None) -> None:
    _interrupted.set()
    raise KeyboardInterrupt


def _on_unraisable(args: sys.UnraisableHookArgs) -> None:
    if not issubclass(args.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(args)
        return
    main = threading.main_thread().ident
    again = threading.Timer(_AGAIN_SECONDS, signal.pthread_kill, (main, signal.SIGINT))
    again.daemon = True
    again.start()


def has_ended_early() -> bool:
    """Whether a block of `guarded` has ended early: Prefect would then wait for the server."""
    return _ended_early.is_set()


def exit_at_once(code: int) -> NoReturn:
    """End the process and its temporary server, without what Prefect does at exit."""
    sys.stdout.flush()
    sys.stderr.flush()
    end_server()
    os._exit(code)


class _Guard:
    """Watches one command from a thread of its own."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._problem: Callable[[str], GramercyError] | None = None
        self._since = 0.0
        self._done = threading.Event()
        self._unreachable_since: float | None = None

    def failure(self, error: BaseException) -> GramercyError | None:
        """Why the command ends early, after an error in the block; None if the error says why."""
        is_own = isinstance(error, GramercyError) and not isinstance(error, ServerError)
        if self._problem is None and not is_own:
            self._check_server(after_error=True)
        return self.early_end()

    def early_end(self) -> GramercyError | None:
        """Why the command ends early; None if it does not."""
        if self._problem is None:
            return None
        _ended_early.set()
        return self._problem(self._outcome())

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch during the block."""
        in_main_thread = threading.current_thread() is threading.main_thread()
        earlier = self._take_signals() if in_main_thread else {}
        thread = threading.Thread(target=self._watch, name="gramercy-guard", daemon=True)
        thread.start()
        try:
            if _interrupted.is_set():
                raise KeyboardInterrupt
            yield
        finally:
            self._done.set()
            for number, handler in earlier.items():
                signal.signal(number, handler)

    def _take_signals(self) -> dict[int, Any]:
        """Handle the signals that end a process; returns the earlier handlers."""
        numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
        # As with `nohup`, a hang-up may be ignored, and stays so.
        taken = [n for n in numbers if n == signal.SIGINT or signal.getsignal(n) != signal.SIG_IGN]
        return {number: signal.signal(number, self._on_interrupt) for number in taken}

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        self._end(interrupted)
        self._problem = interrupted  # even if the server has ended: Ctrl-C ends it as well
        raise KeyboardInterrupt

    def _end(self, problem: Callable[[str], GramercyError]) -> None:
        if self._problem is None:
            self._problem, self._since = problem, time.monotonic()

    def _watch(self) -> None:
        while not self._done.wait(_POLL_SECONDS):
            if self._problem is None:
                self._check_server()
            elif self._problem is not interrupted and is_publishing():
                self._since = time.monotonic()  # a publication needs no server
            elif time.monotonic() - self._since > _GRACE_SECONDS and not self._done.is_set():
                self._end_process(self._problem(self._outcome()))

    def _check_server(self, *, after_error: bool = False) -> None:
        process = server_process()
        if process is not None:
            if process.poll() not in {None, _PORT_IN_USE}:
                self._end(temporary_server_ended)
            return
        url = os.environ.get("PREFECT_API_URL")
        if url is None or _answers(url):
            self._unreachable_since = None
            return
        now = time.monotonic()
        self._unreachable_since = self._unreachable_since or now
        if after_error or now - self._unreachable_since > _UNREACHABLE_SECONDS:
            self._end(
                temporary_server_ended
                if uses_shared_server()
                else lambda outcome: server_ended(without_secrets(url), outcome)
            )

    def _end_process(self, failure: GramercyError) -> None:
        """End without the main thread, which waits for the server."""
        report_failure(failure, json="--json" in sys.argv)
        exit_at_once(failure.exit_code)


def _answers(api: str) -> bool:
    """Whether a server accepts connections, however long its answer takes."""
    try:
        parts = urllib.parse.urlsplit(api)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), timeout=2):
            return True
    except ConnectionError:
        return False
    except (OSError, ValueError):  # busy, or an address that only Prefect understands
        return True
