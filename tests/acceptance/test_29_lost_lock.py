"""A publisher loses the connection of its lock at every step, while another one publishes.

The server ends every connection that holds an advisory lock, and then another publisher runs from
beginning to end while the first one is in the middle of that step.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

import gramercy.archive.store.storage
import gramercy.pipeline.publish.charging
from gramercy.archive.seal.bundle import SIGNATURE, check
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.object_store import UrlStore
from gramercy.archive.store.opening import archive_of
from gramercy.common.home import Home
from gramercy.ledger import Ledger, advisory_lock
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas import families
from gramercy.schemas.errors import SpentFailure
from gramercy.schemas.ledger_history import ChargeState
from tests.support.databases import ledger_location
from tests.support.factories import FULL, at_scale, bundle_bytes, run_release, write_request
from tests.support.problems import raises

DRAWS = 2  # per release: a diagonal, and an upper triangle
# Where the lock is lost: a function, and whether before or after its first call.
STEPS: dict[str, tuple[Any, str, str]] = {
    "before the charge": (Ledger, "charge", "before"),
    "after the charge": (Ledger, "charge", "after"),
    "while drawing": (gramercy.pipeline.publish.charging, "draw_into", "after"),
    "before the seal": (Archive, "seal", "before"),
    "before the mark 'sealed'": (Archive, "preserve_sealed", "after"),
    "after the mark 'sealed'": (Archive, "commit", "before"),
    "before the rename": (gramercy.archive.store.storage, "rename_folder", "before"),
    "after the rename": (Archive, "commit", "after"),
}
CLOSED = {"after the charge", "while drawing", "before the seal", "before the mark 'sealed'"}

# The reduced run omits a step that is adjacent to another one.
CHOSEN = [step for step in STEPS if FULL or step != "before the mark 'sealed'"]
REMOTE = [("uploading", "v2"), ("signing", "v1"), ("uploading", "v1"), ("signing", "v2")]


@pytest.fixture(autouse=True)
def database(home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of the ledger, on a server."""
    url = str(ledger_location("postgresql", home))
    monkeypatch.setenv("GRAMERCY_LEDGER_URL", url)
    return url


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    calls: list[object] = []
    drawn = sampler.rounded_gaussian

    def counted(*args: Any) -> Any:
        calls.append(args)
        return drawn(*args)

    monkeypatch.setattr(sampler, "rounded_gaussian", counted)
    return calls


def request_for(folder: Path, version: str) -> Path:
    folder.mkdir(exist_ok=True)
    return write_request(folder, request={"version": version})


def end_lock_connections(database: str) -> int:
    """End every connection that holds an advisory lock, as the server may; return their number."""
    with psycopg.connect(database, autocommit=True) as admin:
        ended = admin.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory'"
            " AND granted AND database = (SELECT oid FROM pg_database"
            " WHERE datname = current_database())"
        )
        return sum(done for (done,) in ended)


def staged(home: Path) -> dict[str, dict[str, bytes]]:
    """Every folder of the staging area, with its content."""
    area = home / "archive/.staging"
    return {path.name: bundle_bytes(path) for path in area.glob("*") if path.is_dir()}


def once(
    monkeypatch: pytest.MonkeyPatch, step: tuple[Any, str, str], action: Callable[[], None]
) -> list[str]:
    """Do something the first time this step is reached; the returned list records the calls."""
    holder, name, when = step
    original, reached = getattr(holder, name), list[str]()

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        first = not reached
        reached.append(name)
        if first and when == "before":
            action()
        done = original(*args, **kwargs)
        if first and when == "after":
            action()
        return done

    monkeypatch.setattr(holder, name, wrapped)
    return reached


def check_outcome(states: dict[str, str], releases_drawn: int, draws: list[object]) -> None:
    """Check the final state: these charges, a bundle for each published one, and no second draw."""
    ledger, archive = Ledger.of(Home.default()), archive_of(Home.default())
    charges = ledger.charges("toy")
    assert {c.release: c.state for c in charges} == states
    published = [c for c in charges if c.state == "published"]
    assert archive.releases() == sorted(("toy", c.release) for c in published)
    assert [check(archive.release("toy", c.release)) for c in published] == [
        c.sha256 for c in published
    ]
    assert len(draws) == DRAWS * releases_drawn
    assert ledger.find_inconsistencies([ledger.head()]) == []
    ledger.verify_anchor(archive.anchor())
    archive.sweep("toy")
    assert not list((Home.default().archive / ".staging").glob("*"))
    assert not list(Home.default().staging.glob("*"))


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("step", CHOSEN)
def test_lock_lost_at_every_step(
    step: str,
    version: str,
    database: str,
    home: Path,
    tmp_path: Path,
    draws: list[object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another publisher answers the same request, or another one, in the middle of the step.

    Both get the same release, or a spent charge if nothing was sealed; two versions are published
    once each. The unfinished first release is not touched.
    """
    first, second = request_for(tmp_path / "first", "v1"), request_for(tmp_path / "second", version)
    answers: list[str] = []

    def answer(request: Path) -> None:
        try:
            answers.append(run_release(request))
        except SpentFailure:
            answers.append("spent")

    def interfere() -> None:
        assert end_lock_connections(database) == 1
        before = staged(home)
        answer(second)
        assert staged(home) == before

    reached = once(monkeypatch, STEPS[step], interfere)
    answer(first)
    assert reached
    if version == "v2":
        assert answers == ["v2-r1", "v1-r1"]
        check_outcome(dict.fromkeys(answers, "published"), 2, draws)
    elif step in CLOSED:
        assert answers == ["spent"] * 2
        check_outcome({"v1-r1": "spent"}, step != "after the charge", draws)
    else:
        assert answers == ["v1-r1"] * 2
        check_outcome({"v1-r1": "published"}, 1, draws)


@pytest.mark.parametrize(("step", "version"), REMOTE[: at_scale(2, 4)])
def test_lock_lost_with_a_remote_archive(
    step: str,
    version: str,
    database: str,
    tmp_path: Path,
    draws: list[object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Files are uploaded one by one; the other publisher finishes them from the staging area."""
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", f"memory://{tmp_path.name}-{step}-{version}")
    first, second = request_for(tmp_path / "first", "v1"), request_for(tmp_path / "second", version)
    answers: list[str] = []

    def interfere() -> None:
        assert end_lock_connections(database) == 1
        answers.append(run_release(second))

    if step == "uploading":
        reached = once(monkeypatch, (UrlStore, "upload", "after"), interfere)
    else:
        ensure, reached = UrlStore.ensure, []

        def signing(self: UrlStore, name: str, data: bytes) -> bool:
            if name.endswith(SIGNATURE) and not reached:
                reached.append(name)
                interfere()
            return ensure(self, name, data)

        monkeypatch.setattr(UrlStore, "ensure", signing)
    answers.append(run_release(first))
    assert reached
    assert answers == (["v1-r1", "v1-r1"] if version == "v1" else ["v2-r1", "v1-r1"])
    check_outcome(dict.fromkeys(answers, "published"), len(set(answers)), draws)


def test_charge_marked_spent_is_not_published(
    database: str, tmp_path: Path, draws: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A publisher on another machine does not see this staging area."""
    request = request_for(tmp_path / "first", "v1")

    def interfere() -> None:
        assert end_lock_connections(database) == 1
        Ledger(database).mark("toy", "v1-r1", ChargeState.SPENT, reason="found without a release")

    reached = once(monkeypatch, STEPS["after the mark 'sealed'"], interfere)
    with raises(families.SPENT, release="toy/v1-r1"):
        run_release(request)
    assert reached
    check_outcome({"v1-r1": "spent"}, 1, draws)


def test_publisher_waits_for_the_lock_holder(
    database: str, tmp_path: Path, draws: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A publisher does not seal while another one holds the lock."""
    order: list[str] = []
    others: list[threading.Thread] = []

    def take() -> None:
        with Ledger(database).lock("toy"):
            order.append("taken")
            with psycopg.connect(database, autocommit=True) as watching:
                waiting = (
                    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
                )
                while watching.execute(waiting).fetchone() == (0,):
                    time.sleep(0.01)
            order.append("ended")

    def interfere() -> None:
        assert end_lock_connections(database) == 1
        others.append(threading.Thread(target=take, daemon=True))
        others[0].start()
        while not order:
            time.sleep(0.01)

    once(monkeypatch, STEPS["while drawing"], interfere)
    once(monkeypatch, (Archive, "seal", "before"), lambda: order.append("sealed"))
    assert run_release(request_for(tmp_path / "first", "v1")) == "v1-r1"
    others[0].join()
    assert order == ["taken", "ended", "sealed"]
    check_outcome({"v1-r1": "published"}, 1, draws)


def test_lost_lock_is_acquired_again(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(database)
    with ledger.lock("toy") as lock:
        assert lock.renew()
        assert end_lock_connections(database) == 1
        assert not lock.renew()
        assert lock.renew()
        assert end_lock_connections(database) == 1
        monkeypatch.setattr("gramercy.common.process_lock.WAIT_SECONDS", 1)
        with Ledger(database).lock("toy"), raises(families.LOCK, lock="toy"):
            lock.renew()
        assert not lock.renew()
    with ledger.lock("toy") as lock:
        assert lock.renew()


def test_released_advisory_lock_is_noticed(database: str) -> None:
    """A proxy between client and server may reset the session and keep the connection."""
    with Ledger(database).lock("toy") as lock:
        assert isinstance(lock, advisory_lock._AdvisoryLock)
        assert lock._db is not None
        lock._db.exec_driver_sql("SELECT pg_advisory_unlock_all()")
        assert not lock.renew()
        assert lock.renew()


def test_lock_connection_is_kept_alive(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramercy.ledger.advisory_lock._KEEP_ALIVE_SECONDS", 0.01)
    holder = (
        "SELECT state_change FROM pg_stat_activity JOIN pg_locks USING (pid)"
        " WHERE locktype = 'advisory' AND granted"
    )
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {admin.info.dbname} SET idle_session_timeout = '10min'")
        with Ledger(database).lock("toy") as lock:
            assert isinstance(lock, advisory_lock._AdvisoryLock)
            assert lock._db is not None
            with lock._mutex:
                (timeout,) = lock._db.exec_driver_sql("SHOW idle_session_timeout").one()
            assert timeout == "0"
            before = admin.execute(holder).fetchone()
            end = time.monotonic() + 60
            while admin.execute(holder).fetchone() == before and time.monotonic() < end:
                time.sleep(0.01)
            assert admin.execute(holder).fetchone() != before
            assert lock.renew()
            assert end_lock_connections(database) == 1
            assert not lock.renew()  # after the thread that keeps the connection busy failed
    end = time.monotonic() + 60
    while any(t.name == "gramercy-lock" for t in threading.enumerate()) and time.monotonic() < end:
        time.sleep(0.01)
    assert not any(t.name == "gramercy-lock" for t in threading.enumerate())


def test_file_lock_is_never_lost(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite").lock("toy") as lock:
        assert lock.renew()
        assert lock.renew()
