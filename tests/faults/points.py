"""Every point of a release at which its process may die: before and after each call on the way."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.default import DefaultDialect

import archive.release
import archive.remote
import archive.store
import tasks.publish
from archive.disk import Files
from archive.objects import Objects
from archive.remote import RemoteArchive
from archive.store import Archive
from ledger import Ledger
from mechanisms import sampler
from mechanisms.additive import Additive
from mechanisms.output import Output
from mechanisms.rowwise import RowWise
from schemas.home import Home

Point = tuple[str, int]  # its name, and the how-manieth time it is passed
Say = Callable[..., None]

# The finer ones: single statements of the database, and single files that are made durable.
FINE = ("execute ", "commit", "fsync")


def is_fine(point: Point) -> bool:
    return point[0].partition(" ")[2].startswith(FINE)


class Points:
    """Passed one after the other; at the armed one the process kills itself, as with -9.

    Parameters
    ----------
    say
        Is told what has happened, at once: through a pipe, which outlives the process.
    armed
        Where to die; None: nowhere.
    delay
        Seconds that are left to live from there on, whatever it is doing then.
    """

    def __init__(self, say: Say, armed: Point | None = None, delay: float = 0.0) -> None:
        self.passed: list[Point] = []
        self.draws = 0
        self._say, self._armed, self._delay = say, armed, delay
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
        self._wrap(archive.release, "write_matrix", "matrix")
        self._wrap(archive.store, "renamed", "rename")
        self._wrap(archive.remote, "renamed", "rename")
        self._wrap(tasks.publish, "_record", "record")
        self._wrap(sampler, "_bits", "bits", before=self._drawing)
        self._wrap(os, "fsync", "fsync")
        self._wrap(DefaultDialect, "do_commit", "commit")
        sa.event.listen(sa.Engine, "before_cursor_execute", self._executing("before"))
        sa.event.listen(sa.Engine, "after_cursor_execute", self._executing("after"))

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
        if self.passed[-1] == self._armed:
            if self._delay:  # what nobody handles ends the process as abruptly as -9
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.setitimer(signal.ITIMER_REAL, self._delay)
                return
            os.kill(os.getpid(), signal.SIGKILL)

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
            self._reach(f"before {called}")
            before()
            done = original(*args, **kwargs)
            after(done)
            self._reach(f"after {called}")
            return done

        setattr(holder, attribute, wrapped)

    def _executing(self, when: str) -> Callable[..., None]:
        def reached(_: Any, __: Any, statement: str, *___: Any) -> None:
            self._reach(f"{when} execute {' '.join(statement.split()[:3])}")

        return reached


def _last(path: str) -> str:
    """The name of an object, without what differs from one run to the next."""
    name = path.rpartition("/")[2]
    return "an anchor" if ".ledger/" in path else name
