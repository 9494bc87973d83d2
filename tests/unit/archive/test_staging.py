"""The staging area: folders in use stay, and abandoned folders are removed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gramercy.archive.seal.bundle import check
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.opening import open_archive
from gramercy.archive.store.staging import LOCK_SUFFIX, try_lock
from gramercy.schemas import families
from gramercy.schemas.errors import SpentFailure
from tests.support.archives import archive_at, seal_bundle
from tests.support.problems import raises

ROOT = Path(__file__).parents[3]
STAGES = """
import sys
from pathlib import Path
from gramercy.archive.store.opening import open_archive
with open_archive(Path(sys.argv[1])).staging("toy") as staged:
    (staged / "a.csv").write_text("1")
    print(staged, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return open_archive(tmp_path / "archive")


def names(archive: Archive) -> set[str]:
    return {path.name for path in (archive.root / ".staging").iterdir()}


def seal_in(staged: Path, text: str = "mine") -> str:
    """Seal a small bundle in a staged folder; returns its digest."""
    staged.rmdir()
    return seal_bundle(staged, text)


def run_in_threads(*steps: object) -> None:
    for step in steps:
        thread = threading.Thread(target=step)
        thread.start()
        thread.join()


@pytest.mark.parametrize("sealed", [False, True])
def test_sweep_leaves_folders_in_use(sealed: bool, archive: Archive) -> None:
    with archive.staging("toy") as staged:
        seal_in(staged)
        folder = archive.preserve_sealed(staged) if sealed else staged
        archive.sweep("toy")
        run_in_threads(lambda: archive.sweep("toy"))
        with archive.staging("toy", sweep_first=True):
            assert check(folder)
    assert names(archive) == ({folder.name} if sealed else set())
    archive.sweep("toy")
    assert names(archive) == set()


@pytest.mark.slow
def test_sweep_removes_folders_of_killed_processes(archive: Archive) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STAGES, archive.root],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    staged = Path(process.stdout.readline().strip())
    try:
        archive.sweep("toy")
        assert (staged / "a.csv").read_text() == "1"
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert staged.exists()
    archive.sweep("toyish")
    assert staged.exists()
    archive.sweep("toy")
    assert names(archive) == set()


def test_sweep_in_a_fork_removes_nothing(archive: Archive) -> None:
    with archive.staging("toy") as staged:
        pid = os.fork()
        if pid == 0:
            archive.sweep("toy")
            os._exit(0 if staged.exists() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert staged.exists()


def test_fork_that_leaves_the_context_removes_nothing(archive: Archive) -> None:
    parent = os.getpid()
    try:
        with archive.staging("toy") as staged:
            pid = os.fork()
            if pid == 0:
                raise InterruptedError
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            archive.sweep("toy")
            run_in_threads(lambda: archive.sweep("toy"))
            assert staged.exists()
    finally:
        if os.getpid() != parent:
            os._exit(0)
    assert names(archive) == set()


def test_lock_has_one_holder_at_a_time(tmp_path: Path) -> None:
    with try_lock(tmp_path / "folder") as first, try_lock(tmp_path / "folder") as second:
        assert (first, second) == (True, False)
        assert [path.name for path in tmp_path.iterdir()] == [f"folder{LOCK_SUFFIX}"]
    with try_lock(tmp_path / "folder") as acquired_again:
        assert acquired_again
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_identical_content_is_committed_once(url: str, tmp_path: Path) -> None:
    """Even if the same process, or another one with a copy, commits it again."""
    archive = archive_at(url, tmp_path)
    digest = seal_bundle(tmp_path / "first", "same")
    for copy in ("second", "third"):
        shutil.copytree(tmp_path / "first", tmp_path / copy)
    archive.commit(tmp_path / "first", archive.root / "toy/v1-r1/release")
    archive.commit(tmp_path / "second", archive.root / "toy/v1-r1/release")
    another = archive_at(url, tmp_path)
    another.commit(tmp_path / "third", another.root / "toy/v1-r1/release")
    assert [(tmp_path / name).exists() for name in ("first", "second", "third")] == [False] * 3
    fresh = archive_at(url, tmp_path)
    assert fresh.releases() == [("toy", "v1-r1")]
    assert check(fresh.release("toy", "v1-r1")) == digest
    seal_bundle(tmp_path / "other", "other")
    with raises(families.EXISTS):
        fresh.commit(tmp_path / "other", fresh.root / "toy/v1-r1/release")
    assert check(tmp_path / "other")
    assert check(archive_at(url, tmp_path).release("toy", "v1-r1")) == digest


@pytest.mark.parametrize("url", ["local", "memory"], indirect=True)
def test_identical_content_signed_by_another_key(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = archive_at(url, tmp_path)
    digest = seal_bundle(tmp_path / "first", "same")
    archive.commit(tmp_path / "first", archive.root / "toy/v1-r1/release")
    monkeypatch.setenv("GRAMERCY_HOME", str(tmp_path / "another home"))
    assert seal_bundle(tmp_path / "second", "same") == digest
    fresh = archive_at(url, tmp_path)
    fresh.commit(tmp_path / "second", fresh.root / "toy/v1-r1/release")
    assert not (tmp_path / "second").exists()
    assert check(archive_at(url, tmp_path).release("toy", "v1-r1")) == digest


def test_refused_confirmation_prevents_publication(url: str, tmp_path: Path) -> None:
    archive, place = archive_at(url, tmp_path), "toy/v1-r1/release"
    seal_bundle(tmp_path / "staged", "mine")

    def refuse() -> None:
        assert archive_at(url, tmp_path).releases() == []
        raise SpentFailure("no")

    with pytest.raises(SpentFailure):
        archive.commit(tmp_path / "staged", archive.root / place, refuse)
    assert archive_at(url, tmp_path).releases() == []
    confirmed: list[int] = []
    archive.commit(tmp_path / "staged", archive.root / place, lambda: confirmed.append(1))
    assert archive_at(url, tmp_path).releases() == [("toy", "v1-r1")]
    assert confirmed == [1]


def test_recovery_leaves_folders_in_use(url: str, tmp_path: Path) -> None:
    owner, other = archive_at(url, tmp_path), archive_at(url, tmp_path)
    with owner.staging("toy") as staged:
        digest = seal_in(staged)
        sealed = owner.preserve_sealed(staged)
        other.commit_leftover("toy", "0" * 64, other.root / "toy/v1-r1/release")
        assert other.releases() == []
        other.commit_leftover("toy", digest, other.root / "toy/v1-r1/release")
        assert other.releases() == [("toy", "v1-r1")]
        assert check(sealed) == digest
        owner.commit(sealed, owner.root / "toy/v1-r1/release")
        assert [path.name for path in sealed.parent.glob("toy.*")] == [staged.name + LOCK_SUFFIX]
    assert check(archive_at(url, tmp_path).release("toy", "v1-r1")) == digest


def test_recovery_removes_abandoned_folders(url: str, tmp_path: Path) -> None:
    archive = archive_at(url, tmp_path)
    with archive.staging("toy") as staged:
        digest = seal_in(staged)
        sealed = archive.preserve_sealed(staged)
    archive.commit_leftover("toy", digest, archive.root / "toy/v1-r1/release")
    assert archive.releases() == [("toy", "v1-r1")]
    assert list(sealed.parent.glob("toy.*")) == []
