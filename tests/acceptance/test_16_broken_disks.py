"""Full disks, archives that take nothing, databases that are locked, cut off or gone.

Each is told by a typed error that names the place, within a bounded time; nothing is published
without a charge, nobody sees half of a bundle, and a charge without a bundle is finished, or called
spent, by the next run.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import gramercy.ledger.ledger
from gramercy.application.auditing import make_audit
from gramercy.archive.store import Archive
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.schemas.errors import ArchiveError, LedgerError, SpentFailure
from tests.support.databases import KINDS, fresh, new_database, new_server
from tests.support.factories import at_scale, run_steps, scene
from tests.support.faults.bench import Bench
from tests.support.faults.forkserver import Ended, Zygote

SECONDS = 30
PLACE = re.compile(r"^(/|postgresql://)\S+: ")  # every message begins with one
CALLS = ("fsync", "open", "system ", "matrix", "execute INSERT", "execute UPDATE", "commit;")


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest, zygote: Zygote, tmp_path: Path) -> Bench:
    return Bench(zygote, tmp_path, request.param)


def told(ended: Ended) -> str:
    """The words of a typed error that came in time; empty where all went well."""
    assert (ended.signal, ended.seconds < SECONDS) == (0, True)
    kind, words = ended.word("answered") or []
    if kind == "published":
        return ""
    assert kind in {"ArchiveError", "LedgerError", "StepFailed"}
    assert PLACE.match(words), words
    return str(words)


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for good"])
def test_no_space_at_any_call(bench: Bench, lasting: bool) -> None:
    passed, _ = bench.traced()
    points = [p for p in passed if p[0].startswith(tuple(f"before {call}" for call in CALLS))]
    assert len(points) > 80
    every = at_scale(len(points) // 2, 1)
    for point in points[1 + lasting :: every]:
        how = {"fail_at": point, "reason": errno.ENOSPC, "lasting": lasting}
        (ended,) = bench.trial(how)
        told(ended)


def test_files_may_only_be_so_large(bench: Bench) -> None:
    """The system itself refuses to write on."""
    heard = set()
    for most in (0, 300, 3_000, 20_000, 60_000)[:: at_scale(2, 1)]:
        (ended,) = bench.trial({"largest_file": most})
        heard.add(told(ended).split(": ")[0])
    assert len(heard) > 1


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Where other users may go, as they may not where pytest puts its folders."""
    folder = Path(tempfile.mkdtemp(prefix="gramercy-open-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("what", ["archive", "ledger.sqlite", "keys"])
def test_what_cannot_be_written(what: str, zygote: Zygote, open_folder: Path) -> None:
    bench = Bench(zygote, open_folder, "sqlite")
    home = bench.home()
    root = Path(home["GRAMERCY_HOME"])
    asked = {"environ": home, "request": bench.request}
    if what == "ledger.sqlite":
        Ledger(root / what)
    else:
        (root / what).mkdir()
    mine = os.geteuid() == 0  # whom no permission stops
    if mine:
        os.chown(root, 65534, 65534)
    (root / what).chmod(0o444 if what == "ledger.sqlite" else 0o555)
    refused = told(zygote.fork("release", as_nobody=mine, **asked))
    assert str(root / what) in refused
    assert ("readonly" in refused or "OperationalError" in refused) or "ermission" in refused
    assert not list((root / "archive").glob("toy"))
    (root / what).chmod(0o755)
    after = zygote.fork("afterwards", **asked)
    assert after.word("found") == [None, ""]
    assert after.word("answers") == [["published", "v1-r1"]] * 2


def test_a_read_only_archive(tmp_path: Path, any_home: Home, monkeypatch: Any) -> None:
    """It becomes so when the release is about to be put in its place."""
    request, renamed = scene(tmp_path), Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if Path(target).name == "release":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(target))
        return renamed(self, target)

    with monkeypatch.context() as failing:
        failing.setattr(Path, "rename", refuse)
        for _ in range(2):
            with pytest.raises(ArchiveError, match="Read-only file system"):
                run_steps(request)
    assert states() == ["sealed"]
    assert Archive(any_home.archive).releases() == []
    assert run_steps(request) == "v1-r1"
    assert states() == ["published"]


def states() -> list[str]:
    books = Ledger.of(Home.default())
    return [c.state for c in books.charges("toy")] if books.datasets() else []


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramercy.ledger.database.BUSY_SECONDS", 1)
    monkeypatch.setattr("gramercy.ledger.turns._WAIT_SECONDS", 1)


# What the next run makes of it, by the entry that could not be made.
AFTERWARDS = {
    "reserved": ([], "published"),
    "drawn": (["reserved"], "spent"),
    "sealed": (["drawn"], "spent"),
    "published": (["sealed"], "published"),
}


def refused(request: Path) -> None:
    """A typed error, in time."""
    began = time.monotonic()
    with pytest.raises(LedgerError) as caught:
        run_steps(request)
    assert time.monotonic() - began < SECONDS
    assert PLACE.match(str(caught.value)), caught.value


def finished(request: Path, kind: str, *, closed: bool = False) -> None:
    """The next run finishes what was begun, or calls it spent; and so does every later one."""
    left, then = AFTERWARDS[kind]
    assert states() == (["spent"] if closed and then == "spent" else left)
    for _ in range(2):
        if then == "spent":
            with pytest.raises(SpentFailure, match="--new-charge"):
                run_steps(request)
        else:
            assert run_steps(request) == "v1-r1"
        assert states() == [then]
    books = Ledger.of(Home.default())
    assert books.examine([books.head()]) == []
    assert make_audit().discrepancies == []


def before(monkeypatch: pytest.MonkeyPatch, kind: str, act: Callable[[], object]) -> None:
    """Do something, once, when an entry of this kind is about to be made."""
    charged, marked, done = Ledger.charge, Ledger.mark, list[object]()

    def charge(self: Ledger, *args: Any, **kwargs: Any) -> Any:
        if kind == "reserved" and not done:
            done.append(act())
        return charged(self, *args, **kwargs)

    def mark(self: Ledger, dataset: str, release: str, state: str, **facts: str) -> None:
        if state == kind and not done:
            done.append(act())
        marked(self, dataset, release, state, **facts)

    monkeypatch.setattr(Ledger, "charge", charge)
    monkeypatch.setattr(Ledger, "mark", mark)


def locked(home: Home) -> Any:
    """The session of somebody else, who writes and does not finish."""
    if home.ledger_url is None:
        other = sqlite3.connect(home.ledger, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        return other
    session = psycopg.connect(home.ledger_url)
    session.execute("SELECT * FROM head FOR UPDATE")
    return session


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("kind", list(AFTERWARDS))
def test_a_locked_database(
    kind: str, tmp_path: Path, any_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, others = scene(tmp_path), list[Any]()
    Ledger.of(any_home)
    with monkeypatch.context() as failing:
        before(failing, kind, lambda: others.append(locked(any_home)))
        refused(request)
    (other,) = others
    other.close()
    finished(request, kind)


@pytest.mark.usefixtures("impatient")
def test_a_turn_that_is_not_given(tmp_path: Path, any_home: Home) -> None:
    request = scene(tmp_path)
    with Ledger.of(any_home).alone("toy"):
        refused(request)
    finished(request, "reserved")


@pytest.mark.parametrize("kind", list(AFTERWARDS))
def test_a_connection_that_is_cut_in_a_transaction(
    kind: str, postgresql: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, appended, cut = scene(tmp_path), gramercy.ledger.ledger.append, list[str]()

    def append(db: Any, entry: Any) -> Any:
        made = appended(db, entry)
        if entry.kind == kind and not cut:
            cut.append(kind)
            with psycopg.connect(str(postgresql.ledger_url), autocommit=True) as admin:
                admin.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
        return made

    with monkeypatch.context() as failing:
        failing.setattr(gramercy.ledger.ledger, "append", append)
        refused(request)
    # The server answers again at once: the failure could be recorded.
    finished(request, kind, closed=True)


@pytest.mark.parametrize("kind", ["reserved", "drawn", "published"])
def test_a_server_that_is_stopped(
    kind: str, own_server: tuple[Home, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, (_, server) = scene(tmp_path), own_server
    with monkeypatch.context() as failing:
        before(failing, kind, server.stop)
        refused(request)
    refused(request)
    server.start()
    finished(request, kind)


@pytest.fixture
def postgresql(home: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("GRAMERCY_LEDGER_URL", str(fresh("postgresql", home)))
    return Home.default()


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """A server of its own, for whoever stops it."""
    made = new_server()
    yield made
    made.stop()


@pytest.fixture
def own_server(server: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Home, Any]:
    monkeypatch.setenv("GRAMERCY_LEDGER_URL", new_database(server))
    return Home.default(), server
