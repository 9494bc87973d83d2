"""Points of a release at which it can be killed or fail: before and after each call."""

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

import gramercy.application.publishing
import gramercy.archive.local
import gramercy.archive.mirror
import gramercy.archive.release_bundle
import gramercy.archive.remote
from gramercy.archive.local import LocalArchive
from gramercy.archive.objects import Objects
from gramercy.archive.protocol import Archive
from gramercy.archive.remote import RemoteArchive
from gramercy.common.disk import Files
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.mechanisms.additive import Additive
from gramercy.mechanisms.output_perturbation import Output
from gramercy.mechanisms.rowwise import RowWise
from gramercy.mechanisms.sampling import sampler

Point = tuple[str, int]  # its name, and a counter of the times it is passed
Say = Callable[..., None]
Act = Callable[[str], None]

# The finer ones: single statements of the database, single files opened or made durable.
FINE = ("execute ", "commit;", "fsync", "open", "system ")


def is_fine(point: Point) -> bool:
    return point[0].partition(" ")[2].startswith(FINE)


def die(_: str) -> None:
    """Kill this process with SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_in(seconds: float) -> Act:
    """Kill this process a little later."""

    def start(_: str) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process as abruptly
        signal.setitimer(signal.ITIMER_REAL, seconds)

    return start


def fail(reason: int) -> Act:
    """Raise the error of the system, or of a database, for this reason."""

    def failing(point: str) -> None:
        call = point.partition(" ")[2]
        if not call.startswith(("execute ", "commit;")):
            raise OSError(reason, os.strerror(reason))
        if Home.default().ledger_url:
            raise psycopg.errors.DiskFull("could not extend file")
        raise sqlite3.OperationalError("database or disk is full")

    return failing


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
    """Records every point that is passed, and acts at the armed one.

    Parameters
    ----------
    say
        Sends a message through a pipe, which outlives the process.
    armed
        The point at which to act, or None.
    act
        What to do there.
    lasting
        Whether to act at all later writes, too.
    """

    def __init__(
        self, say: Say, armed: Point | None = None, act: Act = die, lasting: bool = False
    ) -> None:
        self.passed: list[Point] = []
        self.draws = 0
        self._say, self._armed, self._act, self._lasting = say, armed, act, lasting
        self._reached = False
        self._counts: Counter[str] = Counter()
        self._quiet = False

    def install(self) -> None:
        """Wrap every call, in a process that does nothing else afterwards."""
        self._wrap(Ledger, "charge", "charge", after=lambda made: self._say("charged", made.state))
        self._wrap(Ledger, "mark", lambda _, __, ___, state, **____: f"mark '{state}'")
        for kind in (LocalArchive, RemoteArchive):
            self._wrap(kind, "write_anchor", "anchor")
            self._wrap(kind, "commit", "commit of the bundle")
        for name in ("seal", "keep", "sweep"):
            self._wrap(Archive, name, name)
        for name in ("write", "remove"):
            self._wrap(Files, name, f"{name} a small file")
        for name in ("create", "upload", "write", "remove"):
            self._wrap(Objects, name, lambda _, path, *__, name=name: f"{name} {_last(path)}")
        for kind in (Additive, Output):
            self._wrap(kind, "perturb", "draw")
        for kind in (RowWise, *RowWise.__subclasses__()):
            if "randomize" in vars(kind):
                self._wrap(kind, "randomize", "draw")
        self._wrap(gramercy.archive.release_bundle, "write_matrix", "matrix")
        for module in (gramercy.archive.local, gramercy.archive.mirror, gramercy.archive.remote):
            self._wrap(module, "renamed", "rename")
        self._wrap(gramercy.application.publishing, "_record", "record")
        self._wrap(sampler, "_bits", "bits", before=self._drawing)
        self._wrap(os, "fsync", "fsync")
        for name in ("mkdir", "rename", "replace", "link"):
            self._wrap(os, name, f"system {name}")
        self._wrap(DefaultDialect, "do_commit", "commit;")
        self._wrap(DefaultDialect, "do_execute", _statement)
        for holder in (builtins, io):
            self._wrap(holder, "open", _opened)

    def _drawing(self) -> None:
        """Report the first noise with the state that another process would find in the ledger."""
        self.draws += 1
        if self.draws == 1:
            with self._quietly():
                ledger = Ledger.of(Home.default())
                found = [c.state for d in ledger.datasets() for c in ledger.charges(d)]
            self._say("drawing", found[-1] if found else "uncharged")

    def _reach(self, name: str) -> None:
        if self._quiet:
            return
        self._counts[name] += 1
        self.passed.append((name, self._counts[name]))
        when, _, call = name.partition(" ")
        full = self._reached and self._lasting and when == "before" and call.startswith(_WRITES)
        if full or self.passed[-1] == self._armed:
            self._reached = True
            self._act(name)

    @contextlib.contextmanager
    def _quietly(self) -> Iterator[None]:
        self._quiet = True
        yield
        self._quiet = False

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
    """Ignore files that are only read."""
    return "open to write" if set(mode) & set("wax+") else ""


def _last(path: str) -> str:
    """The name of an object, without what differs from one run to the next."""
    name = path.rpartition("/")[2]
    return "an anchor" if ".ledger/" in path else name
