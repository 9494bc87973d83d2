"""Full disks, read-only archives, databases that are locked, disconnected or stopped.

Each gives a typed error that names the location, within a bounded time. Nothing is published
without a charge, no reader sees a partial bundle, and a charge without a bundle is finished, or
marked spent, by the next run.
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

import gramercy.ledger.writer
from gramercy.application.auditing import make_audit
from gramercy.application.context import Context
from gramercy.archive.local import LocalArchive
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.schemas.errors import ArchiveError, LedgerError, SpentFailure
from tests.support.databases import KINDS, ledger_location, new_database, new_server
from tests.support.factories import at_scale, run_release, write_request
from tests.support.faults.bench import Bench
from tests.support.faults.forkserver import ChildResult, ForkServer

SECONDS = 30
PLACE = re.compile(r"^(/|postgresql://)\S+: ")  # every message begins with one
CALLS = ("fsync", "open", "system ", "matrix", "execute INSERT", "execute UPDATE", "commit;")


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest, fork_server: ForkServer, tmp_path: Path) -> Bench:
    return Bench(fork_server, tmp_path, request.param)


def error_message(ended: ChildResult) -> str:
    """The message of a typed error that came in time, or an empty text."""
    assert (ended.signal, ended.seconds < SECONDS) == (0, True)
    kind, words = ended.message("answered") or []
    if kind == "published":
        return ""
    assert kind in {"ArchiveError", "LedgerError", "StepFailed"}
    assert PLACE.match(words), words
    return str(words)


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for good"])
def test_full_disk_at_any_call(bench: Bench, lasting: bool) -> None:
    passed, _ = bench.traced()
    points = [p for p in passed if p[0].startswith(tuple(f"before {call}" for call in CALLS))]
    assert len(points) > 80
    every = at_scale(len(points) // 2, 1)
    for point in points[1 + lasting :: every]:
        how = {"fail_at": point, "reason": errno.ENOSPC, "lasting": lasting}
        (ended,) = bench.trial(how)
        error_message(ended)


def test_file_size_limit(bench: Bench) -> None:
    """The operating system refuses further writes."""
    heard = set()
    for most in (0, 300, 3_000, 20_000, 60_000)[:: at_scale(2, 1)]:
        (ended,) = bench.trial({"largest_file": most})
        heard.add(error_message(ended).split(": ")[0])
    assert len(heard) > 1


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="gramercy-open-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("what", ["archive", "ledger.sqlite", "keys"])
def test_unwritable_folders_and_files(
    what: str, fork_server: ForkServer, open_folder: Path
) -> None:
    bench = Bench(fork_server, open_folder, "sqlite")
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
    refused = error_message(fork_server.fork("release", as_nobody=mine, **asked))
    assert str(root / what) in refused
    assert ("readonly" in refused or "OperationalError" in refused) or "ermission" in refused
    assert not list((root / "archive").glob("toy"))
    (root / what).chmod(0o755)
    after = fork_server.fork("afterwards", **asked)
    assert after.message("found") == [None, ""]
    assert after.message("answers") == [["published", "v1-r1"]] * 2


def test_archive_that_becomes_read_only(tmp_path: Path, any_home: Home, monkeypatch: Any) -> None:
    """It becomes read-only when the release is about to be renamed."""
    request, renamed = write_request(tmp_path), Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if Path(target).name == "release":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(target))
        return renamed(self, target)

    with monkeypatch.context() as failing:
        failing.setattr(Path, "rename", refuse)
        for _ in range(2):
            with pytest.raises(ArchiveError, match="Read-only file system"):
                run_release(request)
    assert states() == ["sealed"]
    assert LocalArchive(any_home.archive).releases() == []
    assert run_release(request) == "v1-r1"
    assert states() == ["published"]


def states() -> list[str]:
    books = Ledger.of(Home.default())
    return [c.state for c in books.charges("toy")] if books.datasets() else []


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramercy.ledger.database.BUSY_SECONDS", 1)
    monkeypatch.setattr("gramercy.common.process_lock.WAIT_SECONDS", 1)


# What the next run makes of it, by the entry that could not be made.
AFTERWARDS = {
    "reserved": ([], "published"),
    "drawn": (["reserved"], "spent"),
    "sealed": (["drawn"], "spent"),
    "published": (["sealed"], "published"),
}


def assert_refused(request: Path) -> None:
    """The release fails with a typed error in time."""
    began = time.monotonic()
    with pytest.raises(LedgerError) as caught:
        run_release(request)
    assert time.monotonic() - began < SECONDS
    assert PLACE.match(str(caught.value)), caught.value


def assert_recovers(request: Path, kind: str, *, closed: bool = False) -> None:
    """The next run finishes the release, or marks it spent; every later run agrees."""
    left, then = AFTERWARDS[kind]
    assert states() == (["spent"] if closed and then == "spent" else left)
    for _ in range(2):
        if then == "spent":
            with pytest.raises(SpentFailure, match="--new-charge"):
                run_release(request)
        else:
            assert run_release(request) == "v1-r1"
        assert states() == [then]
    books = Ledger.of(Home.default())
    assert books.examine([books.head()]) == []
    assert make_audit(Context.default()).discrepancies == []


def once_before(monkeypatch: pytest.MonkeyPatch, kind: str, act: Callable[[], object]) -> None:
    """Do something once, just before an entry of this kind is appended."""
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


def lock_database(home: Home) -> Any:
    """Another session that holds a write transaction open."""
    if home.ledger_url is None:
        other = sqlite3.connect(home.ledger, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        return other
    session = psycopg.connect(home.ledger_url)
    session.execute("SELECT * FROM head FOR UPDATE")
    return session


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("kind", list(AFTERWARDS))
def test_locked_database(
    kind: str, tmp_path: Path, any_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, others = write_request(tmp_path), list[Any]()
    Ledger.of(any_home)
    with monkeypatch.context() as failing:
        once_before(failing, kind, lambda: others.append(lock_database(any_home)))
        assert_refused(request)
    (other,) = others
    other.close()
    assert_recovers(request, kind)


@pytest.mark.usefixtures("impatient")
def test_lock_held_by_another_process(tmp_path: Path, any_home: Home) -> None:
    request = write_request(tmp_path)
    with Ledger.of(any_home).alone("toy"):
        assert_refused(request)
    assert_recovers(request, "reserved")


@pytest.mark.parametrize("kind", list(AFTERWARDS))
def test_connection_lost_in_a_transaction(
    kind: str, postgresql: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, appended, cut = write_request(tmp_path), gramercy.ledger.writer.append, list[str]()

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
        failing.setattr(gramercy.ledger.writer, "append", append)
        assert_refused(request)
    # The server answers again at once: the failure could be recorded.
    assert_recovers(request, kind, closed=True)


@pytest.mark.parametrize("kind", ["reserved", "drawn", "published"])
def test_stopped_database_server(
    kind: str, own_server: tuple[Home, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, (_, server) = write_request(tmp_path), own_server
    with monkeypatch.context() as failing:
        once_before(failing, kind, server.stop)
        assert_refused(request)
    assert_refused(request)
    server.start()
    assert_recovers(request, kind)


@pytest.fixture
def postgresql(home: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("GRAMERCY_LEDGER_URL", str(ledger_location("postgresql", home)))
    return Home.default()


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """A separate server, for tests that stop it."""
    made = new_server()
    yield made
    made.stop()


@pytest.fixture
def own_server(server: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Home, Any]:
    monkeypatch.setenv("GRAMERCY_LEDGER_URL", new_database(server))
    return Home.default(), server
