"""The connection of a publisher's turn ends: at every step, with another publisher at work.

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

import gramercy.application.publishing
import gramercy.archive.store
import gramercy.ledger.turns
from gramercy.archive.bundle import SIGNATURE, check
from gramercy.archive.objects import Objects
from gramercy.archive.store import Archive
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.errors import LedgerError, SpentFailure
from tests.support.databases import fresh
from tests.support.factories import FULL, at_scale, bundle_bytes, run_steps, scene

DRAWS = 2  # of one release: a diagonal, and an upper triangle
# The step at which the turn is lost: what is called there, and whether before or after the call.
STEPS: dict[str, tuple[Any, str, str]] = {
    "before the charge": (Ledger, "charge", "before"),
    "after the charge": (Ledger, "charge", "after"),
    "while drawing": (gramercy.application.publishing, "draw_into", "after"),
    "before the seal": (Archive, "seal", "before"),
    "before the mark 'sealed'": (Archive, "keep", "after"),
    "after the mark 'sealed'": (Archive, "commit", "before"),
    "before the rename": (gramercy.archive.store, "renamed", "before"),
    "after the rename": (Archive, "commit", "after"),
}
CLOSED = {"after the charge", "while drawing", "before the seal", "before the mark 'sealed'"}

# Next to another step; each has its turn in full.
CHOSEN = [step for step in STEPS if FULL or step != "before the mark 'sealed'"]
REMOTE = [("uploading", "v2"), ("signing", "v1"), ("uploading", "v1"), ("signing", "v2")]


@pytest.fixture(autouse=True)
def database(home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of the ledger, on a server."""
    url = str(fresh("postgresql", home))
    monkeypatch.setenv("GRAMERCY_LEDGER_URL", url)
    return url


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    made: list[object] = []
    drawn = sampler.rounded_gaussian

    def counted(*args: Any) -> Any:
        made.append(args)
        return drawn(*args)

    monkeypatch.setattr(sampler, "rounded_gaussian", counted)
    return made


def asked(folder: Path, version: str) -> Path:
    folder.mkdir(exist_ok=True)
    return scene(folder, request={"version": version})


def end_turns(database: str) -> int:
    """End every connection that holds an advisory lock, as the server may; how many there were."""
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
    monkeypatch: pytest.MonkeyPatch, step: tuple[Any, str, str], act: Callable[[], None]
) -> list[str]:
    """Do something at this step, the first time it is reached; what is returned is then filled."""
    holder, name, when = step
    original, reached = getattr(holder, name), list[str]()

    def hooked(*args: Any, **kwargs: Any) -> Any:
        first = not reached
        reached.append(name)
        if first and when == "before":
            act()
        done = original(*args, **kwargs)
        if first and when == "after":
            act()
        return done

    monkeypatch.setattr(holder, name, hooked)
    return reached


def hold(states: dict[str, str], drawn: int, draws: list[object]) -> None:
    """What is true at the end: these charges, bundles for those published, nothing drawn twice."""
    books, kept = Ledger.of(Home.default()), Archive.of(Home.default())
    charges = books.charges("toy")
    assert {c.release: c.state for c in charges} == states
    published = [c for c in charges if c.state == "published"]
    assert kept.releases() == [("toy", c.release) for c in published]
    assert [check(kept.release("toy", c.release)) for c in published] == [
        c.sha256 for c in published
    ]
    assert len(draws) == DRAWS * drawn
    assert books.examine([books.head()]) == []
    books.hold_to(kept.anchor())
    kept.sweep("toy")
    assert not list((Home.default().archive / ".staging").glob("*"))
    assert not list(Home.default().staging.glob("*"))


@pytest.mark.parametrize("step", CHOSEN)
def test_another_request(
    step: str,
    database: str,
    home: Path,
    tmp_path: Path,
    draws: list[object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both are published, each once, and nothing of the first is touched while it is unfinished."""
    first, other = asked(tmp_path / "first", "v1"), asked(tmp_path / "other", "v2")
    answers: list[str] = []

    def interfere() -> None:
        assert end_turns(database) == 1
        before = staged(home)
        answers.append(run_steps(other))
        assert staged(home) == before

    reached = once(monkeypatch, STEPS[step], interfere)
    answers.append(run_steps(first))
    assert reached
    early = step == "before the charge"
    assert answers == (["v2-r1", "v1-r2"] if early else ["v2-r2", "v1-r1"])
    hold(dict.fromkeys(answers, "published"), 2, draws)


@pytest.mark.parametrize("step", CHOSEN)
def test_the_same_request(
    step: str,
    database: str,
    home: Path,
    tmp_path: Path,
    draws: list[object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same release for both; or a spent charge for both, where nothing was sealed."""
    first, other = asked(tmp_path / "first", "v1"), asked(tmp_path / "other", "v1")
    answers: list[str] = []

    def answer(request: Path) -> None:
        try:
            answers.append(run_steps(request))
        except SpentFailure:
            answers.append("spent")

    def interfere() -> None:
        assert end_turns(database) == 1
        before = staged(home)
        answer(other)
        assert staged(home) == before

    reached = once(monkeypatch, STEPS[step], interfere)
    answer(first)
    assert reached
    if step in CLOSED:
        assert answers == ["spent"] * 2
        hold({"v1-r1": "spent"}, step != "after the charge", draws)
    else:
        assert answers == ["v1-r1"] * 2
        hold({"v1-r1": "published"}, 1, draws)


@pytest.mark.parametrize(("step", "version"), REMOTE[: at_scale(2, 4)])
def test_a_remote_archive(
    step: str,
    version: str,
    database: str,
    tmp_path: Path,
    draws: list[object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Files go up one by one; the other publisher finishes them from what is staged."""
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", f"memory://{tmp_path.name}-{step}-{version}")
    first, other = asked(tmp_path / "first", "v1"), asked(tmp_path / "other", version)
    answers: list[str] = []

    def interfere() -> None:
        assert end_turns(database) == 1
        answers.append(run_steps(other))

    if step == "uploading":
        reached = once(monkeypatch, (Objects, "upload", "after"), interfere)
    else:
        same, reached = Objects.same, []

        def signing(self: Objects, name: str, data: bytes) -> bool:
            if name.endswith(SIGNATURE) and not reached:
                reached.append(name)
                interfere()
            return same(self, name, data)

        monkeypatch.setattr(Objects, "same", signing)
    answers.append(run_steps(first))
    assert reached
    assert answers == (["v1-r1", "v1-r1"] if version == "v1" else ["v2-r2", "v1-r1"])
    hold(dict.fromkeys(answers, "published"), len(set(answers)), draws)


def test_a_charge_called_spent_is_not_published(
    database: str, tmp_path: Path, draws: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a publisher on another machine, which does not see what is staged here."""
    request = asked(tmp_path / "first", "v1")

    def interfere() -> None:
        assert end_turns(database) == 1
        Ledger(database).mark("toy", "v1-r1", "spent", reason="found without a release")

    reached = once(monkeypatch, STEPS["after the mark 'sealed'"], interfere)
    with pytest.raises(SpentFailure):
        run_steps(request)
    assert reached
    hold({"v1-r1": "spent"}, 1, draws)


def test_it_waits_for_who_has_the_turn(
    database: str, tmp_path: Path, draws: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sealed while another publisher has the turn."""
    order: list[str] = []
    others: list[threading.Thread] = []

    def take() -> None:
        with Ledger(database).alone("toy"):
            order.append("taken")
            with psycopg.connect(database, autocommit=True) as watching:
                waiting = (
                    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
                )
                while watching.execute(waiting).fetchone() == (0,):
                    time.sleep(0.01)
            order.append("ended")

    def interfere() -> None:
        assert end_turns(database) == 1
        others.append(threading.Thread(target=take, daemon=True))
        others[0].start()
        while not order:
            time.sleep(0.01)

    once(monkeypatch, STEPS["while drawing"], interfere)
    once(monkeypatch, (Archive, "seal", "before"), lambda: order.append("sealed"))
    assert run_steps(asked(tmp_path / "first", "v1")) == "v1-r1"
    others[0].join()
    assert order == ["taken", "ended", "sealed"]
    hold({"v1-r1": "published"}, 1, draws)


def test_a_turn_is_taken_again(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    books = Ledger(database)
    with books.alone("toy") as turn:
        assert turn.hold()
        assert end_turns(database) == 1
        assert not turn.hold()
        assert turn.hold()
        assert end_turns(database) == 1
        monkeypatch.setattr("gramercy.ledger.turns._WAIT_SECONDS", 1)
        with Ledger(database).alone("toy"), pytest.raises(LedgerError):
            turn.hold()
        assert not turn.hold()
    with books.alone("toy") as turn:
        assert turn.hold()


def test_a_lock_that_is_released_is_noticed(database: str) -> None:
    """The connection may outlive its lock, where something between it and the server resets it."""
    with Ledger(database).alone("toy") as turn:
        assert isinstance(turn, gramercy.ledger.turns._ServerTurn)
        assert turn._db is not None
        turn._db.exec_driver_sql("SELECT pg_advisory_unlock_all()")
        assert not turn.hold()
        assert turn.hold()


def test_its_connection_is_never_idle_for_long(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gramercy.ledger.turns._BEAT_SECONDS", 0.01)
    holder = (
        "SELECT state_change FROM pg_stat_activity JOIN pg_locks USING (pid)"
        " WHERE locktype = 'advisory' AND granted"
    )
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {admin.info.dbname} SET idle_session_timeout = '10min'")
        with Ledger(database).alone("toy") as turn:
            assert isinstance(turn, gramercy.ledger.turns._ServerTurn)
            assert turn._db is not None
            with turn._one_at_a_time:
                (found,) = turn._db.exec_driver_sql("SHOW idle_session_timeout").one()
            assert found == "0"
            before = admin.execute(holder).fetchone()
            end = time.monotonic() + 60
            while admin.execute(holder).fetchone() == before and time.monotonic() < end:
                time.sleep(0.01)
            assert admin.execute(holder).fetchone() != before
            assert turn.hold()
            assert end_turns(database) == 1  # which the thread that keeps it busy survives
            assert not turn.hold()
    end = time.monotonic() + 60
    while any(t.name == "gramercy-turn" for t in threading.enumerate()) and time.monotonic() < end:
        time.sleep(0.01)
    assert not any(t.name == "gramercy-turn" for t in threading.enumerate())


def test_a_turn_on_this_machine_is_never_lost(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite").alone("toy") as turn:
        assert turn.hold()
        assert turn.hold()
