"""Bundles that several processes may seal are sealed once; what exists needs no lock."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gramercy.application.context import Context
from gramercy.application.ledger_trust import check_ledger
from gramercy.application.seal_once import seal_once
from gramercy.archive.anchors import FileStore
from gramercy.archive.witness import Witness
from gramercy.common.disk import Files
from tests.support.factories import run_release, write_request


def test_an_existing_bundle_is_found_without_its_lock(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of locks may be read-only, and a lock may be held for an hour."""
    context = Context.default()
    place = context.archive.estimate("toy", "v1-r1", "ridge-1")
    with seal_once(context, place) as staged:
        assert staged is not None
        (staged / "a.csv").write_text("1\n")
    (lock,) = context.home.locks.iterdir()
    before = lock.stat().st_mtime_ns
    monkeypatch.setattr("gramercy.common.process_lock.FileLock", None)
    with seal_once(context, place) as staged:
        assert staged is None
    assert lock.stat().st_mtime_ns == before


@dataclass
class _CountedFiles:
    """The files of a witness, which counts how often each is read."""

    files: FileStore
    reads: dict[str, int] = field(default_factory=dict)

    def names(self, under: str) -> list[str]:
        self.reads["names"] = self.reads.get("names", 0) + 1
        return list(self.files.names(under))

    def read(self, name: str) -> bytes | None:
        self.reads[name] = self.reads.get(name, 0) + 1
        return self.files.read(name)

    def write(self, name: str, data: bytes) -> None:
        self.files.write(name, data)

    def remove(self, name: str) -> None:
        self.files.remove(name)


def test_the_witness_is_read_once(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAMERCY_WITNESS_URL", str(tmp_path / "witness"))
    run_release(write_request(tmp_path))
    context, files = Context.default(), _CountedFiles(Files(tmp_path / "witness"))
    witness = Witness(files, str(tmp_path / "witness"), context.home.keys)
    check = check_ledger(context.ledger, context.archive, [], witness)
    assert not check.problems
    assert check.anchors["witness"] == 1
    assert len(files.reads) == 2
    assert set(files.reads.values()) == {1}
