"""Every point of a release at which it may die or fail: before and after each call on the way."""

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
import gramercy.archive.release_bundle
import gramercy.archive.remote
import gramercy.archive.store
from gramercy.archive.disk import Files
from gramercy.archive.objects import Objects
from gramercy.archive.remote import RemoteArchive
from gramercy.archive.store import Archive
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.mechanisms.additive import Additive
from gramercy.mechanisms.output_perturbation import Output
from gramercy.mechanisms.rowwise import RowWise
from gramercy.mechanisms.sampling import sampler

Point = tuple[str, int]  # its name, and the how-manieth time it is passed
Say = Callable[..., None]
Act = Callable[[str], None]

# The finer ones: single statements of the database, single files opened or made durable.
FINE = ("execute ", "commit;", "fsync", "open", "system ")


def is_fine(point: Point) -> bool:
    return point[0].partition(" ")[2].startswith(FINE)


def die(_: str) -> None:
    """As with -9."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_in(seconds: float) -> Act:
    """Die a little later, whatever is being done then."""

    def start(_: str) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process as abruptly
        signal.setitimer(signal.ITIMER_REAL, seconds)

    return start


def fail(reason: int) -> Act:
    """Raise what the system, or a database, raises for this reason."""

    def failing(point: str) -> None:
        call = point.partition(" ")[2]
        if not call.startswith(("execute ", "commit;")):
            raise OSError(reason, os.strerror(reason))
        if Home.default().ledger_url:
            raise psycopg.errors.DiskFull("could not extend file")
        raise sqlite3.OperationalError("database or disk is full")

    return failing


# What a full disk refuses.
_WRITES = (
    "fsync",
    "open",
    "write ",
    "execute INSERT",
    "execute UPDATE",
    "execute CREATE",
    "matrix",
)


class Points:
    """Passed one after the other; at the armed one something happens.

    Parameters
    ----------
    say
        Is told what has happened, at once: through a pipe, which outlives the process.
    armed
        The point; None: none.
    act
        What happens there.
    lasting
        Whether it happens before everything else that is written afterwards, too.
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
        """Wrap everything, in a process that does nothing else afterwards."""
        self._wrap(Ledger, "charge", "charge", after=lambda made: self._say("charged", made.state))
        self._wrap(Ledger, "mark", lambda _, __, ___, state, **____: f"mark '{state}'")
        for kind in (Archive, RemoteArchive):
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
        self._wrap(gramercy.archive.store, "renamed", "rename")
        self._wrap(gramercy.archive.remote, "renamed", "rename")
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
        """The first noise: told with what another process would find in the ledger now."""
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
    """Files that are only read are no points."""
    return "open to write" if set(mode) & set("wax+") else ""


def _last(path: str) -> str:
    """The name of an object, without what differs from one run to the next."""
    name = path.rpartition("/")[2]
    return "an anchor" if ".ledger/" in path else name
