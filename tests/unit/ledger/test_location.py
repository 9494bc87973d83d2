"""A copied ledger is recognised, on this machine and on another."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

import gramercy.ledger.location
from gramercy.ledger import Ledger
from gramercy.schemas.problems.ledger import ledger_copied
from tests.support.ledger_writers import charge, contract
from tests.support.problems import raises


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.sqlite"
    charge(Ledger(path), "v1")
    return path


def assert_refused(path: Path) -> None:
    copy = Ledger(path)
    assert copy.original_location() is not None
    with raises(ledger_copied, ledger=str(path)):
        charge(copy, "v2")
    with raises(ledger_copied, ledger=str(path)):
        copy.preview(contract(), "v2")


def test_copy_at_same_path_on_another_machine_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gramercy.ledger.location, "machine_digest", lambda: "0123456789abcdef")
    assert_refused(path)
    monkeypatch.undo()
    assert charge(Ledger(path), "v2") == "v2-r2"


def test_copy_that_replaced_the_ledger_is_refused(path: Path) -> None:
    copy = path.with_suffix(".copy")
    shutil.copy2(path, copy)
    copy.replace(path)
    assert_refused(path)
    Ledger(path).move("restored after a crash of the disk")
    assert charge(Ledger(path), "v2") == "v2-r2"


def test_vacuumed_ledger_is_still_accepted(path: Path) -> None:
    """SQLite keeps the file when it is compacted."""
    with sqlite3.connect(path) as db:
        db.execute("VACUUM")
    db.close()
    assert charge(Ledger(path), "v2") == "v2-r2"
    assert Ledger(path).original_location() is None


def test_missing_machine_id_is_generated_outside_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gramercy.ledger.location, "_MACHINE_IDS", (tmp_path / "none",))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    first = gramercy.ledger.location.machine_digest()
    assert gramercy.ledger.location.machine_digest() == first
    assert len(list((tmp_path / "state" / "gramercy").iterdir())) == 1
    with monkeypatch.context() as read_only:  # it is not written a second time
        read_only.setattr(Path, "write_text", None)
        assert gramercy.ledger.location.machine_digest() == first
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    assert gramercy.ledger.location.machine_digest() != first


def test_system_machine_id_is_not_revealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine_id = "5d41402abc4b2a76b9719d911017c592"
    (tmp_path / "machine-id").write_text(machine_id + "\n")
    monkeypatch.setattr(gramercy.ledger.location, "_MACHINE_IDS", (tmp_path / "machine-id",))
    assert gramercy.ledger.location.machine_digest() not in machine_id
