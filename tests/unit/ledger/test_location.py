"""A copied ledger is recognised, on this machine and on another."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

import gramercy.ledger.database
from gramercy.ledger import Ledger
from gramercy.ledger.database import machine_digest
from gramercy.schemas import families
from tests.support.ledgers import charge, contract
from tests.support.problems import raises


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.sqlite"
    charge(Ledger(path), "v1")
    return path


def assert_refused(path: Path) -> None:
    copy = Ledger(path)
    assert copy.original_location() is not None
    with raises(families.UNTRUSTED, ledger=str(path)):
        charge(copy, "v2")
    with raises(families.UNTRUSTED, ledger=str(path)):
        copy.preview(contract(), "v2")


def test_copy_at_same_path_on_another_machine_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gramercy.ledger.database, "machine_digest", lambda: "0123456789abcdef")
    assert_refused(path)
    monkeypatch.undo()
    assert charge(Ledger(path), "v2") == "v2-r1"


def test_copy_that_replaced_the_ledger_is_refused(path: Path) -> None:
    copy = path.with_suffix(".copy")
    shutil.copy2(path, copy)
    copy.replace(path)
    assert_refused(path)
    Ledger(path).move("restored after a crash of the disk")
    assert charge(Ledger(path), "v2") == "v2-r1"


def test_vacuumed_ledger_is_still_accepted(path: Path) -> None:
    """SQLite keeps the file when it is compacted."""
    with sqlite3.connect(path) as db:
        db.execute("VACUUM")
    db.close()
    assert charge(Ledger(path), "v2") == "v2-r1"
    assert Ledger(path).original_location() is None


def test_missing_machine_id_is_generated_outside_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gramercy.ledger.database, "_MACHINE_IDS", (tmp_path / "none",))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    first = machine_digest()
    assert machine_digest() == first
    assert len(list((tmp_path / "state" / "gramercy").iterdir())) == 1
    with monkeypatch.context() as read_only:  # it is not written a second time
        read_only.setattr(Path, "write_text", None)
        assert machine_digest() == first
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    assert machine_digest() != first


def test_system_machine_id_is_not_revealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine_id = "5d41402abc4b2a76b9719d911017c592"
    (tmp_path / "machine-id").write_text(machine_id + "\n")
    monkeypatch.setattr(gramercy.ledger.database, "_MACHINE_IDS", (tmp_path / "machine-id",))
    assert machine_digest() not in machine_id


def test_location_names_file_and_machine(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte for byte: a ledger whose location is spelled in another way would be refused."""
    machine_id = path.with_name("machine-id")
    machine_id.write_text("5d41402abc4b2a76b9719d911017c592\n")
    monkeypatch.setattr(gramercy.ledger.database, "_MACHINE_IDS", (path / "none", machine_id))
    of_machine = hashlib.sha256(b"gramercy 5d41402abc4b2a76b9719d911017c592").hexdigest()[:16]
    assert machine_digest() == of_machine
    ledger, file = Ledger(path), path.stat()
    ledger.move("moved to another machine")
    expected = f"{path} (machine {of_machine}, device {file.st_dev}, inode {file.st_ino})"
    assert ledger.entries()[-1].fact("place", str) == expected


def test_generated_machine_id_is_in_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gramercy.ledger.database, "_MACHINE_IDS", ())
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    first = machine_digest()
    folder = tmp_path / ".local" / "state" / "gramercy"
    assert [each.name for each in folder.iterdir()] == ["machine-id"]
    machine_id = (folder / "machine-id").read_text()
    assert len(machine_id) == 32
    assert first == hashlib.sha256(f"gramercy {machine_id}".encode()).hexdigest()[:16]
    assert folder.stat().st_mode & 0o777 == 0o700


def test_first_of_several_processes_generates_the_machine_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gramercy.ledger.database, "_MACHINE_IDS", ())
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def another_was_faster(_: Path, target: Path) -> None:
        target.write_text("of the other")
        raise FileExistsError

    monkeypatch.setattr(os, "link", another_was_faster)
    assert machine_digest() == hashlib.sha256(b"gramercy of the other").hexdigest()[:16]
    assert len(list((tmp_path / "gramercy").iterdir())) == 1


def test_machine_id_that_cannot_be_stored_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gramercy.ledger.database, "_MACHINE_IDS", ())
    (tmp_path / "state").write_text("a file, where a folder should be")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "state" / "gramercy" / "machine-id"
    with raises(families.LEDGER, path=str(path), reason="File exists"):
        machine_digest()
