"""A home that is restored from a backup gives no budget back, and draws no noise twice."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from gramercy.archive.seal.signing import create_signing_key
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.layout import ANCHORS
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.pipeline.context import Context
from gramercy.pipeline.home_backup import back_up, restore
from gramercy.pipeline.publish import charging, drawing
from gramercy.pipeline.verify.auditing import make_audit
from gramercy.schemas import families
from gramercy.schemas.budget import Budget
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.ledger_history import ChargeState
from tests.support.archives import update_listing
from tests.support.databases import ledger_location, postgresql_tool
from tests.support.factories import run_command, run_json, run_release, write_request
from tests.support.problems import raises


def release(folder: Path, version: str, **changes: Any) -> str:
    """Publish a version, with its page and its listing."""
    name = run_release(write_request(folder, request={"version": version} | changes))
    update_listing(Context.default(), "toy", name)
    return name


def lose_machine(home: Home) -> Path:
    """The home is gone; returns a copy of its archive, which was elsewhere."""
    lost = home.root.with_name("lost")
    home.root.rename(lost)
    return lost / "archive"


def bring_back(home: Home, backup: Path, archive: Path | None = None) -> Context:
    """Restore a home from a backup, and put its archive in place."""
    restore(Context(home), backup)
    if archive is not None:
        shutil.copytree(archive, home.archive)
    return Context(home)


def spent(home: Home) -> float:
    return Ledger.of(home).statement("toy").spent


@pytest.fixture
def backup(tmp_path: Path, home: Path) -> Path:
    """A backup after the first of two releases."""
    assert release(tmp_path, "v1") == "v1-r1"
    folder = tmp_path / "backup"
    back_up(Context.default(), folder)
    return folder


@pytest.mark.slow
def test_older_backup_is_brought_up_to_date(
    tmp_path: Path, backup: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release(tmp_path, "v2")
    release(tmp_path, "v3")
    home = Home.default()
    entries, before = Ledger.of(home).entries(), spent(home)
    bring_back(home, backup, lose_machine(home))
    with raises(families.UNTRUSTED):
        run_release(write_request(tmp_path, request={"version": "v4"}))
    with raises(families.UNTRUSTED):
        Ledger.of(home).mark("toy", "v1-r1", ChargeState.WITHDRAWN, reason="it is a copy")
    assert run_command("budget", "--moved", capsys=capsys)[0] == 2  # a reason is required
    assert len(run_json("budget", "--moved", "--reason", "fire", capsys=capsys)[0]["charges"]) == 3
    *restored, moved = Ledger.of(home).entries()
    assert restored == entries
    assert moved.kind == "moved"
    assert spent(home) == before
    assert release(tmp_path, "v2") == "v2-r1"  # answered from the archive
    assert spent(home) == before
    assert release(tmp_path, "v4") == "v4-r1"
    assert make_audit(Context(home)).discrepancies == []


@pytest.mark.slow
def test_interrupted_charge_after_the_backup_stays_spent(
    tmp_path: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError

    original = drawing.draw_into
    monkeypatch.setattr(charging, "draw_into", fail)
    with pytest.raises(GramercyError):
        release(tmp_path, "v2")
    monkeypatch.setattr(charging, "draw_into", original)
    home = Home.default()
    before = spent(home)
    bring_back(home, backup, lose_machine(home)).move_ledger("a new disk")
    assert spent(home) == before
    with raises(families.SPENT):
        release(tmp_path, "v2")
    assert spent(home) == before
    (charge,) = (each for each in Ledger.of(home).charges("toy") if each.version == "v2")
    assert charge.state is ChargeState.SPENT


@pytest.mark.slow
def test_release_that_the_next_run_finished_is_not_lost_with_its_machine(
    tmp_path: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process dies after the seal, the next one after it has moved the bundle into place."""

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    request = write_request(tmp_path, request={"version": "v2"})
    for owner, name in ((Archive, "commit"), (charging.LockedRequest, "_mark_published")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, die)
            if owner is Archive:
                patch.setattr(Context, "record_head", unanchored_seal(Context.record_head))
            with pytest.raises(KeyboardInterrupt):
                run_release(request)
    home = Home.default()
    before = spent(home)
    bring_back(home, backup, lose_machine(home)).move_ledger("a new disk")
    assert release(tmp_path, "v2") == "v2-r1"
    assert spent(home) == before


def unanchored_seal(record: Callable[..., Any]) -> Callable[..., Any]:
    """`Context.record_head`, where the process dies before a seal is anchored."""

    def killed(context: Context, **options: Any) -> Any:
        if context.ledger.sealed_charges("toy"):
            raise KeyboardInterrupt
        return record(context, **options)

    return killed


@pytest.mark.slow
@pytest.mark.parametrize("step", ["_mark_published", "_mark_sealed"])
def test_release_that_was_interrupted_after_the_backup_is_finished_or_spent(
    tmp_path: Path, backup: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Its process dies before the ledger states that the bundle is in the archive, or sealed."""

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    original = getattr(charging.LockedRequest, step)
    monkeypatch.setattr(charging.LockedRequest, step, die)
    with pytest.raises(KeyboardInterrupt):
        run_release(write_request(tmp_path, request={"version": "v2"}))
    monkeypatch.setattr(charging.LockedRequest, step, original)
    home = Home.default()
    before = spent(home)
    bring_back(home, backup, lose_machine(home)).move_ledger("a new disk")
    if step == "_mark_published":
        assert release(tmp_path, "v2") == "v2-r1"
    else:
        with raises(families.SPENT):
            release(tmp_path, "v2")
    assert spent(home) == before
    assert release(tmp_path, "v3") == "v3-r1"
    assert make_audit(Context(home)).discrepancies == []


@pytest.mark.slow
def test_lowered_budget_after_the_backup_stays_lowered(
    tmp_path: Path, backup: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_json("budget", "toy", "--lower", 2, 1e-6, "--reason", "board", capsys=capsys)
    home = Home.default()
    bring_back(home, backup, lose_machine(home)).move_ledger("a new disk")
    assert Ledger.of(home).statement("toy").budget == Budget(epsilon=2, delta=1e-6)


@pytest.mark.slow
def test_lost_archive_is_not_proof_that_nothing_was_charged(
    tmp_path: Path, backup: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release(tmp_path, "v2")
    home = Home.default()
    lose_machine(home)
    context = bring_back(home, backup)
    for _ in range(2):
        with raises(families.UNTRUSTED, ledger=str(home.ledger)):
            context.move_ledger("everything is lost")
        with raises(families.UNTRUSTED):
            run_release(write_request(tmp_path, request={"version": "v3"}))
    assert len(Ledger.of(home).charges("toy")) == 1


@pytest.mark.slow
def test_witness_replaces_a_lost_archive(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAMERCY_WITNESS_URL", str(tmp_path / "witness"))
    release(tmp_path, "v1")
    backup, of_home = tmp_path / "backup", Home.default()
    back_up(Context.default(), backup)
    old_archive = tmp_path / "old"
    shutil.copytree(of_home.archive, old_archive)
    release(tmp_path, "v2")
    before = spent(of_home)
    lose_machine(of_home)
    # The archive was restored from the same day as the ledger.
    bring_back(of_home, backup, old_archive).move_ledger("archive of the same day")
    assert spent(of_home) == before
    # Or it is the copy of a reader, who has no anchors.
    shutil.rmtree(of_home.root)
    of_reader = tmp_path / "lost/archive"
    shutil.rmtree(of_reader / ANCHORS)
    bring_back(of_home, backup, of_reader).move_ledger("archive of a reader")
    assert spent(of_home) == before
    assert release(tmp_path, "v2") == "v2-r1"
    assert release(tmp_path, "v3") == "v3-r1"
    assert make_audit(Context(of_home)).discrepancies == []


@pytest.mark.slow
def test_releases_that_cannot_be_brought_back_are_named(tmp_path: Path, backup: Path) -> None:
    home = Home.default()
    release(tmp_path, "v2")
    archive = lose_machine(home)
    for copy in (archive / ANCHORS).rglob("*.entries"):
        copy.unlink()
    bring_back(home, backup, archive)
    with raises(families.UNTRUSTED, releases=("toy/v2-r1",), last=6):
        Context(home).move_ledger("a new disk")
    with raises(families.UNTRUSTED):
        run_release(write_request(tmp_path, request={"version": "v3"}))


@pytest.mark.slow
def test_backup_is_brought_up_to_date_after_a_change_of_the_key(
    tmp_path: Path, backup: Path
) -> None:
    home = Home.default()
    create_signing_key(home.keys)
    release(tmp_path, "v2")
    before = spent(home)
    bring_back(home, backup, lose_machine(home))
    with raises(families.SIGNER):
        Context(home).move_ledger("the public key has to be added first")
    for public in (home.root.with_name("lost") / "keys").glob("*.pub"):
        shutil.copy2(public, home.keys)  # the private key is lost
    Context(home).move_ledger("a new disk")
    assert spent(home) == before
    assert release(tmp_path, "v2") == "v2-r1"
    assert make_audit(Context(home)).discrepancies == []


@pytest.mark.slow
def test_last_of_two_machines_with_the_same_backup_charges(
    tmp_path: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Home(tmp_path / "first"), Home(tmp_path / "second")
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", str(lose_machine(Home.default())))
    for home in (first, second):
        bring_back(home, backup).move_ledger("a new machine")
    monkeypatch.setenv("GRAMERCY_HOME", str(first.root))
    with raises(families.UNTRUSTED):
        run_release(write_request(tmp_path, request={"version": "v2"}))
    monkeypatch.setenv("GRAMERCY_HOME", str(second.root))
    assert run_release(write_request(tmp_path, request={"version": "v2"})) == "v2-r1"
    assert len(Ledger.of(first).charges("toy")) == 1


@pytest.mark.slow
def test_copy_that_charges_at_the_same_time_draws_no_noise(
    tmp_path: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second machine takes the ledger over between the checks of a release and its charge."""
    home, second = Home.default(), Home(tmp_path / "second")
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", str(home.archive))
    charged, restored = Ledger.charge, list[Path]()

    def race(*args: Any, **options: Any) -> Any:
        if not restored:
            restored.append(second.root)
            bring_back(second, backup).move_ledger("the first machine is lost")
        return charged(*args, **options)

    monkeypatch.setattr(Ledger, "charge", race)
    monkeypatch.setattr(charging, "draw_into", lambda *_: pytest.fail("noise was drawn"))
    with raises(families.ANCHOR):
        run_release(write_request(tmp_path, request={"version": "v2"}))
    assert [each.state for each in Ledger.of(home).charges("toy")][1:] == [ChargeState.SPENT]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["archive", "witness"])
@pytest.mark.parametrize("changes", [0, 1])
def test_copy_that_is_taken_over_while_the_original_draws_charges_nothing(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, place: str, changes: int
) -> None:
    """Not even if changes of its budget are anchored later than the charge of the original."""
    if place == "witness":
        monkeypatch.setenv("GRAMERCY_WITNESS_URL", str(tmp_path / "witness"))
    release(tmp_path, "v1")
    first, second, backup = Home.default(), Home(tmp_path / "second"), tmp_path / "backup"
    back_up(Context(first), backup)
    if place == "archive":
        monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", str(first.archive))
    copy = bring_back(second, backup, first.archive if place == "witness" else None)
    moved, drawn = Ledger.move, list[str]()

    def die(*_: object) -> None:
        drawn.append("v2")
        raise KeyboardInterrupt

    def race(ledger: Ledger, reason: str) -> None:
        request = write_request(tmp_path, request={"version": "v2"})
        with monkeypatch.context() as patch:
            patch.setattr(charging, "draw_into", die)
            with pytest.raises(KeyboardInterrupt):
                run_release(request)
        moved(ledger, reason)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "move", race)
        with contextlib.suppress(GramercyError):
            copy.move_ledger("the first machine is lost")
    assert drawn == ["v2"]
    for _ in range(changes):
        copy.ledger.change_budget("toy", Budget(epsilon=20, delta=1e-5), "more is needed")
        with contextlib.suppress(GramercyError):
            copy.record_head(outside=True)
    monkeypatch.setenv("GRAMERCY_HOME", str(second.root))
    with pytest.raises(GramercyError):
        run_release(write_request(tmp_path, request={"version": "v3"}))
    assert len(copy.ledger.charges("toy")) == 1
    # It is taken over with what the original has charged, once.
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "move", die)
        with pytest.raises(KeyboardInterrupt):
            copy.move_ledger("the first machine is lost")
    copy.move_ledger("the first machine is lost")
    before = spent(first)
    assert spent(second) == before
    assert run_release(write_request(tmp_path, request={"version": "v3"})) == "v3-r1"
    states = [(each.release, each.state) for each in copy.ledger.charges("toy")]
    assert states[1] == ("v2-r1", ChargeState.SPENT)
    assert spent(second) > before
    update_listing(Context(second), "toy", "v3-r1")
    assert make_audit(Context(second)).discrepancies == []
    monkeypatch.setenv("GRAMERCY_HOME", str(first.root))
    with raises(families.UNTRUSTED):
        run_release(write_request(tmp_path, request={"version": "v4"}))


@pytest.mark.slow
def test_copy_that_is_taken_over_while_the_original_publishes_has_to_be_older(
    tmp_path: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = Home.default(), Home(tmp_path / "second"), Home(tmp_path / "third")
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", str(first.archive))
    copy, moved = bring_back(second, backup), Ledger.move

    def race(ledger: Ledger, reason: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "move", moved)
            release(tmp_path, "v2")
        moved(ledger, reason)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "move", race)
        with raises(families.UNTRUSTED):
            copy.move_ledger("the first machine is lost")
    before = spent(first)
    for context in (copy, Context(first)):
        monkeypatch.setenv("GRAMERCY_HOME", str(context.home.root))
        with pytest.raises(GramercyError):
            run_release(write_request(tmp_path, request={"version": "v3"}))
    with raises(families.UNTRUSTED, last=6):
        copy.move_ledger("the first machine is lost")
    bring_back(third, backup).move_ledger("both machines are lost")
    assert spent(third) == before
    monkeypatch.setenv("GRAMERCY_HOME", str(third.root))
    assert release(tmp_path, "v2") == "v2-r1"
    assert release(tmp_path, "v3") == "v3-r1"
    assert make_audit(Context(third)).discrepancies == []


def test_backup_is_private_complete_and_not_replaced(backup: Path, home: Path) -> None:
    of_home = Home.default()
    for path in (backup, *backup.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    key = of_home.keys / "steward.pem"
    assert (backup / "keys/steward.pem").read_bytes() == key.read_bytes()
    # Nothing of the archive, and no file that the home does not have.
    names = {path.relative_to(backup).as_posix() for path in backup.rglob("*") if path.is_file()}
    own = {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}
    assert names - own == {"ledger.jsonl", "SHA256SUMS"}
    assert not any(name.startswith("archive") for name in names)
    with raises(families.EXISTS, folder=str(backup)):
        back_up(Context(of_home), backup)
    with raises(families.EXISTS, folder=str(home)):
        restore(Context(of_home), backup)
    (existing := backup.with_name("existing")).mkdir(mode=0o750)
    for root, mode in ((existing, 0o750), (backup.with_name("new"), 0o700)):
        restore(Context(Home(root)), backup)
        assert stat.S_IMODE(root.stat().st_mode) == mode
        assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in root.rglob("*"))
    assert {path.name for path in backup.parent.iterdir() if path.name.startswith(".")} == set()


def test_backup_has_what_links_in_the_home_lead_to(tmp_path: Path, home: Path) -> None:
    of_home, backup = Home.default(), tmp_path / "backup"
    Ledger.of(of_home)
    of_home.contracts.mkdir()
    (elsewhere := tmp_path / "toy.yaml").write_text("id: toy\n")
    of_home.registered_contract("toy").symlink_to(elsewhere)
    of_home.registered_contract("gone").symlink_to(tmp_path / "gone.yaml")
    back_up(Context(of_home), backup)
    restored = Home(tmp_path / "new")
    restore(Context(restored), backup)
    assert [each.name for each in restored.contracts.iterdir()] == ["toy.yaml"]
    assert restored.registered_contract("toy").read_text() == elsewhere.read_text()


def test_damaged_backup_is_refused(backup: Path, tmp_path: Path) -> None:
    target = Home(tmp_path / "new")

    def without_last(path: Path) -> None:
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))

    damages: dict[str, Callable[[Path], object]] = {
        "ledger.jsonl": without_last,
        "SHA256SUMS": Path.unlink,
        "keys/steward.pem": Path.unlink,
        "keys/other.pub": Path.touch,
    }
    for name, damage in damages.items():
        copy = tmp_path / name.replace("/", "-")
        shutil.copytree(backup, copy)
        damage(copy / name)
        with raises(families.UNTRUSTED, folder=str(copy)):
            restore(Context(target), copy)
        assert not target.root.exists()


_RESTORE = """
import os, sys
from pathlib import Path
from gramercy.common.home import Home
from gramercy.pipeline import home_backup
from gramercy.pipeline.context import Context
calls = [0]
def killed(function):
    def step(*args, **options):
        calls[0] += 1
        if calls[0] == int(sys.argv[3]):
            os.kill(os.getpid(), 9)
        return function(*args, **options)
    return step
for name in ("_write", "_restore_file", "make_durable", "rename_folder"):
    setattr(home_backup, name, killed(getattr(home_backup, name)))
home_backup.restore(Context(Home(Path(sys.argv[1]))), Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_killed_restore_leaves_no_home_or_a_whole_one(tmp_path: Path, backup: Path) -> None:
    step, whole = 0, False
    while not whole:
        step += 1
        home = Home(tmp_path / f"home{step}")
        line = (sys.executable, "-c", _RESTORE, str(home.root), str(backup), str(step))
        whole = subprocess.run(line, check=False).returncode == 0
        if home.root.exists():
            assert len(Ledger.of(home).entries()) == 6
            assert (home.keys / "steward.pem").exists()
        else:
            restore(Context(home), backup)  # again
    assert step > 8


@pytest.mark.slow
def test_postgresql_ledger_is_restored_from_a_backup_or_a_dump(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = str(ledger_location("postgresql", tmp_path))
    monkeypatch.setenv("GRAMERCY_LEDGER_URL", original)
    release(tmp_path, "v1")
    backup, dump, of_home = tmp_path / "backup", tmp_path / "ledger.sql", Home.default()
    back_up(Context.default(), backup)
    subprocess.run([postgresql_tool("pg_dump"), "--file", dump, original], check=True)
    release(tmp_path, "v2")
    before = spent(of_home)
    archive = lose_machine(of_home)
    for way in ("backup", "dump"):
        url = str(ledger_location("postgresql", tmp_path))
        monkeypatch.setenv("GRAMERCY_LEDGER_URL", url)
        if way == "dump":
            load = [postgresql_tool("psql"), "--quiet", "--output", os.devnull]
            subprocess.run([*load, "--file", dump, url], check=True)
        context = bring_back(of_home, backup, archive)
        with raises(families.UNTRUSTED):
            run_release(write_request(tmp_path, request={"version": "v3"}))
        context.move_ledger("another server")
        assert spent(of_home) == before
        assert release(tmp_path, "v3") == "v3-r1"
        assert make_audit(Context(of_home)).discrepancies == []
        shutil.rmtree(of_home.root)
    # A database with another ledger is not taken for this one.
    monkeypatch.setenv("GRAMERCY_LEDGER_URL", str(ledger_location("postgresql", tmp_path)))
    Ledger.of(of_home)
    with raises(families.UNTRUSTED):
        restore(Context(of_home), backup)
    assert not of_home.root.exists()


def test_backup_from_before_the_first_release_does_not_prove_that_nothing_was_charged(
    tmp_path: Path, home: Path
) -> None:
    of_home, backup = Home.default(), tmp_path / "backup"
    Ledger.of(of_home)
    back_up(Context(of_home), backup)
    release(tmp_path, "v1")
    lose_machine(of_home)
    context = bring_back(of_home, backup)
    with raises(families.UNTRUSTED):
        context.move_ledger("everything is lost")


@pytest.mark.slow
def test_database_of_the_same_name_does_not_look_like_the_original(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, backup, of_home = str(ledger_location("postgresql", tmp_path)), tmp_path / "b", Home(home)
    monkeypatch.setenv("GRAMERCY_LEDGER_URL", url)
    release(tmp_path, "v1")
    back_up(Context.default(), backup)
    release(tmp_path, "v2")
    lose_machine(of_home)
    address = make_url(url)
    server = address.set(database="postgres").render_as_string(hide_password=False)
    for command in ("DROP", "CREATE"):
        line = [postgresql_tool("psql"), "-qc", f"{command} DATABASE {address.database}", server]
        subprocess.run(line, check=True)
    with raises(families.UNTRUSTED):
        restore(Context(of_home), backup)
    assert not of_home.root.exists()
    with raises(families.UNTRUSTED):  # nor was anything left in the database
        restore(Context(of_home), backup)


@pytest.mark.slow
def test_archive_without_its_newest_anchors_is_refused(tmp_path: Path, backup: Path) -> None:
    """What else was charged is unknown, and no entry may take the number of a lost one."""
    home, old = Home.default(), tmp_path / "old"
    shutil.copytree(home.archive / ANCHORS, old)
    release(tmp_path, "v2")
    archive = lose_machine(home)
    shutil.rmtree(archive / ANCHORS)
    shutil.copytree(old, archive / ANCHORS)
    context = bring_back(home, backup, archive)
    before = Ledger.of(home).head()
    with raises(families.UNTRUSTED, releases=("toy/v2-r1",)):
        context.move_ledger("a new disk")
    assert Ledger.of(home).head() == before
