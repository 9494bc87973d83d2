"""The points at which a release can be killed or fail: before and after each call."""

from __future__ import annotations

import builtins
import contextlib
import functools
import io
import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
from sqlalchemy.engine.default import DefaultDialect

import gramercy.archive.bundles.bundle_kinds
import gramercy.archive.store.object_store
import gramercy.archive.store.storage
import gramercy.pipeline.publish.charging
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.object_store import UrlStore
from gramercy.archive.store.storage import FolderStore
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.mechanisms.mechanism import Additive, RowWise
from gramercy.mechanisms.output_perturbation import Output
from gramercy.mechanisms.sampling import sampler

Point = tuple[str, int]  # its name, and how often it has been passed
Send = Callable[..., None]
Action = Callable[[str], None]

# Single statements of the database, and single files that are opened or synced.
FINE = ("execute ", "commit;", "fsync", "open", "system ")


def is_fine(point: Point) -> bool:
    return point[0].partition(" ")[2].startswith(FINE)


def die(_: str) -> None:
    """Kill this process with SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_in(seconds: float) -> Action:
    """Kill this process a little later."""

    def start(_: str) -> None:
        # The default action ends the process abruptly.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    return start


def fail(reason: int) -> Action:
    """Raise the error of the operating system or the database for this errno."""

    def raise_error(point: str) -> None:
        call = point.partition(" ")[2]
        if not call.startswith(("execute ", "commit;")):
            raise OSError(reason, os.strerror(reason))
        if Home.default().ledger_url:
            raise psycopg.errors.DiskFull("could not extend file")
        raise sqlite3.OperationalError("database or disk is full")

    return raise_error


# Calls that fail on a full disk.
_WRITES = (
    "fsync",
    "open",
    "write ",
    "execute INSERT",
    "execute UPDATE",
    "execute CREATE",
    "matrix",
)


class KillPoints:
    """Records every point that is passed, and acts at one of them.

    Parameters
    ----------
    send
        Sends a message through a pipe, which outlives the process.
    armed
        The point at which to act; None for none of them.
    act
        What to do there.
    lasting
        Whether to act at all later writes as well.
    """

    def __init__(
        self, send: Send, armed: Point | None = None, act: Action = die, lasting: bool = False
    ) -> None:
        self.passed: list[Point] = []
        self.draws = 0
        self._send, self._armed, self._act, self._lasting = send, armed, act, lasting
        self._reached = False
        self._counts: Counter[str] = Counter()
        self._paused = False

    def install(self) -> None:
        """Wrap every call. The process must not be used for anything else."""
        self._wrap(
            Ledger, "charge", "charge", after=lambda charge: self._send("charged", charge.state)
        )
        self._wrap(Ledger, "mark", lambda _, __, ___, state, **____: f"mark '{state}'")
        self._wrap(Archive, "write_anchor", "anchor")
        self._wrap(Archive, "commit", "commit of the bundle")
        for name in ("seal", "preserve_sealed", "sweep"):
            self._wrap(Archive, name, name)
        for name in ("write", "remove"):
            self._wrap(FolderStore, name, f"{name} a small file")
        for name in ("create", "upload", "write", "remove"):
            self._wrap(UrlStore, name, lambda _, path, *__, name=name: f"{name} {_last(path)}")
        for kind in (Additive, Output):
            self._wrap(kind, "perturb", "draw")
        for kind in (RowWise, *RowWise.__subclasses__()):
            if "randomize" in vars(kind):
                self._wrap(kind, "randomize", "draw")
        self._wrap(gramercy.archive.bundles.bundle_kinds, "write_matrix", "matrix")
        for module in {
            gramercy.archive.store.storage,
            gramercy.archive.store.storage,
            gramercy.archive.store.object_store,
        }:
            self._wrap(module, "rename_folder", "rename")
        self._wrap(gramercy.pipeline.publish.charging, "_table_facts", "record")
        self._wrap(sampler, "_bits", "bits", before=self._drawing)
        self._wrap(os, "fsync", "fsync")
        for name in ("mkdir", "rename", "replace", "link"):
            self._wrap(os, name, f"system {name}")
        self._wrap(DefaultDialect, "do_commit", "commit;")
        self._wrap(DefaultDialect, "do_execute", _statement)
        for holder in (builtins, io):
            self._wrap(holder, "open", _opened)

    def _drawing(self) -> None:
        """At the first draw, report the state of the charge as another process reads it."""
        self.draws += 1
        if self.draws == 1:
            with self._pause():
                ledger = Ledger.of(Home.default())
                states = [c.state for d in ledger.datasets() for c in ledger.charges(d)]
            self._send("drawing", states[-1] if states else "uncharged")

    def _reach(self, name: str) -> None:
        if self._paused:
            return
        self._counts[name] += 1
        self.passed.append((name, self._counts[name]))
        when, _, call = name.partition(" ")
        full = self._reached and self._lasting and when == "before" and call.startswith(_WRITES)
        if full or self.passed[-1] == self._armed:
            self._reached = True
            self._act(name)

    @contextlib.contextmanager
    def _pause(self) -> Iterator[None]:
        self._paused = True
        yield
        self._paused = False

    def _wrap(
        self,
        holder: Any,
        attribute: str,
        name: str | Callable[..., str],
        *,
        before: Callable[[], None] = lambda: None,
        after: Callable[[Any], None] = lambda _: None,
    ) -> None:
        original = getattr(holder, attribute)

        @functools.wraps(original)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            called = name if isinstance(name, str) else name(*args, **kwargs)
            if not called:
                return original(*args, **kwargs)
            self._reach(f"before {called}")
            before()
            done = original(*args, **kwargs)
            after(done)
            self._reach(f"after {called}")
            return done

        setattr(holder, attribute, wrapped)


def _statement(_: Any, __: Any, statement: str, *___: Any) -> str:
    return f"execute {' '.join(statement.split()[:3])}"


def _opened(_: Any, mode: str = "r", *__: Any, **___: Any) -> str:
    """An empty name, which is ignored, for files that are only read."""
    return "open to write" if set(mode) & set("wax+") else ""


def _last(path: str) -> str:
    """The name of an object; all anchors share one."""
    name = path.rpartition("/")[2]
    return "an anchor" if ".ledger/" in path else name
