"""Ctrl-C, SIGTERM and SIGHUP end a command within 10 s, with a true sentence on what was charged.

Prefect repeats requests to a server that is gone for minutes, and modules that catch every
exception while they are imported catch an interruption as well. So a timer ends the process
unless it has ended by itself.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from gramercy.cli.terminal import report_failure
from gramercy.schemas import families
from gramercy.schemas.errors import Interrupted


def _interrupted(outcome: str) -> Interrupted:
    return families.INTERRUPTED(
        "The command was interrupted. {outcome}",
        "Run the same command again to complete it.",
        outcome=outcome,
    )


_GRACE_SECONDS = 5.0
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")

_received, _reported = threading.Event(), threading.Event()
_outcomes: list[Callable[[], str]] = []  # of the blocks of `interruptible`


def catch_signals() -> None:
    """From now on, no signal that ends a process is lost."""
    _handle(_on_signal)


def release_signals() -> None:
    """From now on, such a signal ends the process at once."""
    _reported.set()
    _handle(signal.SIG_DFL)


@contextlib.contextmanager
def interruptible(outcome: Callable[[], str]) -> Iterator[None]:
    """Run flows in the block; an interruption of it says the outcome: what was charged until now.

    The outcome may be asked for in another thread.
    """
    _outcomes.append(outcome)
    try:
        if _received.is_set():
            raise KeyboardInterrupt
        yield
    except BaseException:
        if not _received.is_set():
            raise
    if _received.is_set():  # Prefect may have caught the interruption
        raise _interrupted(outcome())


def _handle(handler: Any) -> None:
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    for number in numbers:
        # As with `nohup`, a hang-up may be ignored, and stays so.
        if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def _on_signal(number: int, frame: FrameType | None) -> None:
    if not _received.is_set():
        _received.set()
        timer = threading.Timer(_GRACE_SECONDS, _end_process)
        timer.daemon = True
        timer.start()
    raise KeyboardInterrupt


def _end_process() -> None:
    """End without the main thread, which waits for the server."""
    failure = _interrupted(_outcomes[-1]() if _outcomes else "")
    if not _reported.is_set():
        report_failure(failure, json="--json" in sys.argv)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(failure.exit_code)
