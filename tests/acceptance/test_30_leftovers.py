"""What a crash leaves is removed by the next command, and no old private key remains."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gramercy.archive.seal.signing import STEWARD, create_signing_key, steward_key
from gramercy.archive.store.layout import STAGING
from gramercy.common.disk import (
    is_temporary,
    scratch_folder,
    sweep,
    temporary_file,
    write_atomically,
)
from gramercy.pipeline.context import Context
from tests.support.archives import unknown_files
from tests.support.factories import at_scale, run_release, write_request
from tests.support.faults.forkserver import ForkServer

EARLIER = f".{'0123456789abcdef' * 2}"  # as version 0.1 named them


def temporary_files(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if is_temporary(path.name)]


def private_keys(home: Path) -> list[str]:
    files = [path for path in home.rglob("*") if path.is_file()]
    return [path.name for path in files if b"PRIVATE KEY" in path.read_bytes()]


def test_killed_at_file_operations(fork_server: ForkServer, tmp_path: Path) -> None:
    """200 kills in the full run: the operations of two more homes and repetitions."""
    request = str(write_request(tmp_path))
    trace = fork_server.fork(
        "write_small_files", {"GRAMERCY_HOME": str(tmp_path / "trace")}, request=request
    )
    (operations,) = trace.message("operations") or (0,)
    assert operations > 30
    left = 0
    points = range(1, operations + 1, at_scale(8, 1))
    for turn, point in enumerate([*points] * at_scale(1, -(-200 // operations))):
        home = tmp_path / f"home{turn}"
        environ = {"GRAMERCY_HOME": str(home)}
        killed = fork_server.fork("write_small_files", environ, request=request, die_at=point)
        assert killed.signal == signal.SIGKILL
        left += bool(temporary_files(home))
        after = fork_server.fork("write_small_files", environ, request=request)
        assert after.message("operations")
        assert temporary_files(home) == []
        assert private_keys(home) == [STEWARD]
    assert left  # otherwise nothing was tested


def test_killed_while_an_internal_record_is_written(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    """It has exact facts about the private data: no copy of them stays."""
    request = str(write_request(tmp_path))

    def write(home: Path, die_at: int = 0) -> list[object]:
        environ = {"GRAMERCY_HOME": str(home)}
        facts = {"request": request, "record": True, "die_at": die_at}
        return fork_server.fork("write_small_files", environ, **facts).message("operations") or [0]

    (operations,) = write(tmp_path / "trace")
    assert isinstance(operations, int)
    assert operations > 6
    for point in range(1, operations + 1):
        home = tmp_path / f"home{point}"
        assert write(home, point) == [0]
        write(home)
        names = [path.name for path in (home / "internal").rglob("*") if path.is_file()]
        assert sorted(names) == ["v1-r1.html", "v1-r1.json"]
        shutil.rmtree(home)


def test_audit_removes_leftovers_of_earlier_versions(home: Path) -> None:
    archive = Context.default().archive
    for folder in (home / "archive", home / "archive/toy/v1-r1"):
        folder.mkdir(parents=True)
        (folder / EARLIER).write_text("half a page")
    (home / "archive/toy/unknown").write_text("")
    assert unknown_files(archive) == ["toy/unknown"]
    assert temporary_files(home) == []


def test_old_private_key_is_removed(home: Path) -> None:
    """Version 0.1 could leave a second copy of the private key."""
    steward_key(home / "keys")
    (home / "keys" / EARLIER).hardlink_to(home / "keys" / STEWARD)
    create_signing_key(home / "keys")
    assert private_keys(home) == [STEWARD]


def test_temporary_folders_of_killed_processes_are_removed() -> None:
    command = "from gramercy.common.disk import scratch_folder; import os, sys;"
    command += "print(scratch_folder('gramercy-x-'), flush=True); sys.stdin.read(); os._exit(9)"
    pipe = subprocess.PIPE
    environ = os.environ | {"TMPDIR": tempfile.gettempdir()}
    with subprocess.Popen(
        [sys.executable, "-c", command], stdin=pipe, stdout=pipe, text=True, env=environ
    ) as process:
        assert process.stdout is not None
        abandoned = Path(process.stdout.readline().strip())
        own = scratch_folder("gramercy-x-")
        assert own != abandoned
        assert abandoned.exists()  # in use
    assert abandoned.exists()
    other = scratch_folder("gramercy-x-")
    assert not abandoned.exists()
    assert own.exists()
    for folder in (own, other):
        shutil.rmtree(folder)


def test_files_in_use_stay(tmp_path: Path) -> None:
    with temporary_file(tmp_path / "page.html", b"new") as temporary:
        sweep(tmp_path)
        write_atomically(tmp_path / "other.html", b"other")
        assert temporary.read_bytes() == b"new"
        temporary.replace(tmp_path / "page.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.html", "page.html"]


@pytest.mark.parametrize("name", [".gramercy-x", ".gitignore", "0" * 32, f"{EARLIER}0"])
def test_other_files_stay(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    sweep(tmp_path)
    assert (tmp_path / name).read_text() == "mine"


def test_replay_sweeps_the_staging_area(tmp_path: Path, home: Path) -> None:
    """A budget that is spent allows no other command that would stage a bundle."""
    request = write_request(tmp_path)
    release = run_release(request)
    abandoned = home / "archive" / STAGING / "toy.0123"
    abandoned.mkdir(parents=True)
    (abandoned / "matrix.parquet").write_bytes(b"unfinished")
    assert run_release(request) == release
    assert not abandoned.exists()
