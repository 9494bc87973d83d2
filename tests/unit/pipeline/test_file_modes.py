"""Regardless of the umask, no other user can write to what Gramercy creates."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from gramercy.common.disk import make_folder
from gramercy.pipeline.catalogue.catalogue_pages import write_site
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import withdraw
from gramercy.pipeline.verify.auditing import new_audit_folder
from tests.support.factories import run_pipeline, write_request


@pytest.fixture
def open_umask() -> Iterator[None]:
    earlier = os.umask(0)
    yield
    os.umask(earlier)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.usefixtures("open_umask")
def test_home_and_archive(home: Path, tmp_path: Path) -> None:
    run_pipeline(write_request(tmp_path, request={"estimates": [{"name": "ridge"}]}))
    withdraw(Context.default(), "toy", "v1-r1", "a mistake")
    write_site(Context.default())
    make_folder(new_audit_folder(Context.default().home), 0o700)
    assert mode(home) == 0o700
    paths = [path for path in home.rglob("*") if not path.is_symlink()]
    writable = [path for path in paths if mode(path) & (stat.S_IWGRP | stat.S_IWOTH)]
    assert len(paths) > 20
    assert writable == []
    readable = [path for path in (home / "archive").rglob("*") if ".staging" not in path.parts]
    folders = {mode(path) for path in readable if path.is_dir() and ".ledger" not in path.parts}
    assert folders == {0o755}


@pytest.mark.usefixtures("open_umask")
def test_parents_of_a_private_folder_are_private(tmp_path: Path) -> None:
    make_folder(tmp_path / "a/b", 0o700)
    assert [mode(tmp_path / "a"), mode(tmp_path / "a/b")] == [0o700, 0o700]


def test_an_existing_folder_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o750)
    make_folder(tmp_path / "a", 0o700)
    assert mode(tmp_path / "a") == 0o750
