"""Bundles that several processes may seal are sealed once; what exists needs no lock."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gramercy.archive.store.opening import Witness
from gramercy.archive.store.storage import FolderStore
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import seal_once
from gramercy.pipeline.verify.auditing import check_ledger
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


@dataclass(frozen=True)
class _CountedStore(FolderStore):
    """The store of a witness, which counts how often each file is read."""

    reads: Counter[str] = field(default_factory=Counter)

    def names(self, under: str = "") -> list[str]:
        self.reads["names"] += 1
        return super().names(under)

    def read(self, name: str, most: int | None = None) -> bytes | None:
        self.reads[name] += 1
        return super().read(name, most)


def test_the_witness_is_read_once(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAMERCY_WITNESS_URL", str(tmp_path / "witness"))
    run_release(write_request(tmp_path))
    context, store = Context.default(), _CountedStore(tmp_path / "witness")
    witness = Witness(store, context.home.keys)
    check = check_ledger(context.ledger, context.archive, [], witness)
    assert not check.problems
    assert check.anchors["witness"] == 1
    assert len(store.reads) == 2
    assert set(store.reads.values()) == {1}
