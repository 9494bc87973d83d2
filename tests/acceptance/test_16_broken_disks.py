"""Full disks, read-only archives, and databases that are locked, disconnected or stopped.

Each fault gives a typed error that names the location, within a bounded time. Releases are charged
before they are published, readers see complete bundles only, and the next run finishes a charge
without a bundle or marks it as spent.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest

import gramercy.ledger.budget_ledger
from gramercy.archive.store.layout import STAGING
from gramercy.archive.store.opening import open_archive
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.charging import publish, replay
from gramercy.pipeline.publish.private_table import accumulate
from gramercy.pipeline.verify.auditing import make_audit
from gramercy.schemas import families
from gramercy.schemas.errors import LedgerError
from tests.support.archives import update_listing
from tests.support.databases import KINDS, ledger_location, new_database, new_server
from tests.support.factories import at_scale, read_plan, run_release, write_request
from tests.support.faults.forkserver import ChildResult, ForkServer
from tests.support.faults.trials import Trials
from tests.support.problems import raises

SECONDS = 30
CALLS = ("fsync", "open", "system ", "matrix", "execute INSERT", "execute UPDATE", "commit;")


@pytest.fixture(params=KINDS)
def trials(request: pytest.FixtureRequest, fork_server: ForkServer, tmp_path: Path) -> Trials:
    return Trials(fork_server, tmp_path, request.param)


def location(facts: Mapping[str, Any]) -> str:
    """The path or the URL that an error names."""
    return next(str(x) for x in facts.values() if str(x).startswith(("/", "postgresql://")))


def error_facts(result: ChildResult) -> dict[str, Any]:
    """The facts of a typed error, which came in time; none if the release succeeded."""
    assert (result.signal, result.seconds < SECONDS) == (0, True)
    kind, _, facts = result.message("answered") or []
    if kind == "published":
        return {}
    assert kind in {"ArchiveError", "LedgerError", "StepFailed"}
    assert location(facts)
    return dict(facts)


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
def test_full_disk_at_any_call(trials: Trials, lasting: bool) -> None:
    passed, _ = trials.trace()
    points = [p for p in passed if p[0].startswith(tuple(f"before {call}" for call in CALLS))]
    assert len(points) > 80
    stride = at_scale(len(points) // 2, 1)
    for point in points[1 + lasting :: stride]:
        fault = {"fail_at": point, "reason": errno.ENOSPC, "lasting": lasting}
        (result,) = trials.run(fault)
        error_facts(result)


def test_file_size_limit(trials: Trials) -> None:
    """The operating system refuses further writes."""
    locations = set()
    for limit in (0, 300, 3_000, 20_000, 60_000)[:: at_scale(2, 1)]:
        (result,) = trials.run({"largest_file": limit})
        facts = error_facts(result)
        locations.add(location(facts) if facts else "")
    assert len(locations) > 1


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can enter, unlike the folders of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="gramercy-open-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("unwritable", ["archive", "ledger.sqlite", "keys"])
def test_unwritable_folders_and_files(
    unwritable: str, fork_server: ForkServer, open_folder: Path
) -> None:
    trials = Trials(fork_server, open_folder, "sqlite")
    home = trials.home()
    root = Path(home["GRAMERCY_HOME"])
    arguments = {"environ": home, "request": trials.request}
    if unwritable == "ledger.sqlite":
        Ledger(root / unwritable)
    else:
        (root / unwritable).mkdir()
    is_root = os.geteuid() == 0  # permissions do not apply to root
    if is_root:
        os.chown(root, 65534, 65534)
    (root / unwritable).chmod(0o444 if unwritable == "ledger.sqlite" else 0o555)
    facts = error_facts(fork_server.fork("release", as_unprivileged=is_root, **arguments))
    assert location(facts).startswith(str(root / unwritable))
    assert not list((root / "archive").glob("toy"))
    (root / unwritable).chmod(0o755)
    after = fork_server.fork("recover", **arguments)
    assert after.message("charge before") == [None, ""]
    assert after.message("answers") == [["published", "v1-r1", {}]] * 2


def test_archive_that_becomes_read_only(tmp_path: Path, any_home: Home, monkeypatch: Any) -> None:
    """It becomes read-only just before the release is renamed."""
    request, rename = write_request(tmp_path), Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if Path(target).name == "release":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(target))
        return rename(self, target)

    with monkeypatch.context() as failing:
        failing.setattr(Path, "rename", refuse)
        for _ in range(2):
            with raises(families.ARCHIVE_DISK, reason="Read-only file system"):
                run_release(request)
    assert states() == ["sealed"]
    assert open_archive(any_home.archive).releases() == []
    assert run_release(request) == "v1-r1"
    assert states() == ["published"]


ON_SMALL_DISK = """
import sys
from pathlib import Path
from gramercy.schemas.errors import GramercyError
from tests.support.factories import run_release
try:
    print(run_release(Path(sys.argv[1])))
except GramercyError as error:
    print(error.code)
"""
MOUNT = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=1m none "$0" && exec "$@"']


def test_real_disk_that_is_too_small_costs_no_charge(tmp_path: Path, home: Path) -> None:
    """The archive is on a small file system, which only the process that publishes sees."""
    (home / "archive").mkdir(parents=True)
    inside = [*MOUNT, str(home / "archive")]
    try:
        subprocess.run([*inside, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user cannot mount file systems")
    request = write_request(tmp_path)
    command = [*inside, sys.executable, "-c", ON_SMALL_DISK, str(request)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == families.ARCHIVE_DISK.code
    assert states() == []
    assert run_release(request) == "v1-r1"


@pytest.mark.parametrize("full", ["archive", "."])
def test_full_disk_costs_no_charge(
    full: str, tmp_path: Path, any_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Space is looked for before the table is read, and again before the charge."""
    request, root, of = write_request(tmp_path), any_home.root / full, shutil.disk_usage
    (any_home.root / "archive").mkdir(parents=True)

    def usage(path: Path) -> Any:
        return of(path)._replace(free=1000) if path == root else of(path)

    context, plan = Context.default(), read_plan(request)
    with monkeypatch.context() as disk:
        disk.setattr(shutil, "disk_usage", usage)
        with raises(
            families.ARCHIVE_DISK, folder=str(root / STAGING if full == "archive" else root)
        ):
            replay(context, plan)
    assert replay(context, plan) is None
    sums = accumulate(plan)
    with monkeypatch.context() as disk:
        disk.setattr(shutil, "disk_usage", usage)
        with raises(families.ARCHIVE_DISK, free=0):
            publish(context, plan, sums)
    assert states() == []
    assert run_release(request) == "v1-r1"


def states() -> list[str]:
    ledger = Ledger.of(Home.default())
    return [c.state for c in ledger.charges("toy")] if ledger.datasets() else []


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramercy.ledger.database.BUSY_SECONDS", 1)
    monkeypatch.setattr("gramercy.common.process_lock.WAIT_SECONDS", 1)


# By the entry that could not be appended: the states left behind, and the state after the next run.
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
    assert location(caught.value.facts)


def assert_recovers(request: Path, kind: str, *, recorded_as_spent: bool = False) -> None:
    """The next run finishes the release, or marks it spent; every later run agrees."""
    states_before, final = AFTERWARDS[kind]
    assert states() == (["spent"] if recorded_as_spent and final == "spent" else states_before)
    for _ in range(2):
        if final == "spent":
            with raises(families.SPENT, release="toy/v1-r1"):
                run_release(request)
        else:
            assert run_release(request) == "v1-r1"
        assert states() == [final]
    ledger = Ledger.of(Home.default())
    assert ledger.find_inconsistencies([ledger.head()]) == []
    update_listing(Context.default(), "toy", "v1-r1")
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
    """A second session with an open write transaction."""
    if home.ledger_url is None:
        connection = sqlite3.connect(home.ledger, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        return connection
    session = psycopg.connect(home.ledger_url)
    session.execute("SELECT * FROM head FOR UPDATE")
    return session


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("kind", list(AFTERWARDS))
def test_locked_database(
    kind: str, tmp_path: Path, any_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, sessions = write_request(tmp_path), list[Any]()
    Ledger.of(any_home)
    with monkeypatch.context() as failing:
        once_before(failing, kind, lambda: sessions.append(lock_database(any_home)))
        assert_refused(request)
    (session,) = sessions
    session.close()
    assert_recovers(request, kind)


@pytest.mark.usefixtures("impatient")
def test_lock_held_by_another_process(tmp_path: Path, any_home: Home) -> None:
    request = write_request(tmp_path)
    with Ledger.of(any_home).lock("toy"):
        assert_refused(request)
    assert_recovers(request, "reserved")


@pytest.mark.parametrize("kind", list(AFTERWARDS))
def test_connection_lost_in_a_transaction(
    kind: str, postgresql: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, appended, cut = (
        write_request(tmp_path),
        gramercy.ledger.budget_ledger.append,
        list[str](),
    )

    def append(db: Any, entry: Any) -> Any:
        appended_entry = appended(db, entry)
        if entry.kind == kind and not cut:
            cut.append(kind)
            with psycopg.connect(str(postgresql.ledger_url), autocommit=True) as admin:
                admin.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
        return appended_entry

    with monkeypatch.context() as failing:
        failing.setattr(gramercy.ledger.budget_ledger, "append", append)
        assert_refused(request)
    # The server accepts connections again at once, so the failure was recorded.
    assert_recovers(request, kind, recorded_as_spent=True)


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
    started = new_server()
    yield started
    started.stop()


@pytest.fixture
def own_server(server: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Home, Any]:
    monkeypatch.setenv("GRAMERCY_LEDGER_URL", new_database(server))
    return Home.default(), server
