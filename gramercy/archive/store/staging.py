"""The staging area: folders in which bundles are written, each locked while in use.

The operating system releases a lock when its process ends, for any reason. If the lock of a folder
is free, the process that made the folder has ended.

A folder is removed after use, unless its bundle is sealed and preserved: then any process may
commit the same bytes, even if the one that wrote them has ended.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from gramercy.archive.seal.bundle import check
from gramercy.common.disk import make_folder
from gramercy.schemas import wordings
from gramercy.schemas.errors import BundleError

LOCK_SUFFIX = ".lock"
_SEALED_SUFFIX = ".sealed"  # suffix of a sealed folder that is kept after its block


@contextmanager
def try_lock(folder: Path) -> Iterator[bool]:
    """Lock a folder, unless another thread or process holds its lock; never waits.

    Parameters
    ----------
    folder
        The folder; it need not exist. The lock is a file next to it, which is removed at the end.
    """
    path, pid = folder.with_name(folder.name + LOCK_SUFFIX), os.getpid()
    lock = FileLock(path, timeout=0, thread_local=False, mode=0o644)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    acquired = path.exists()  # otherwise another holder has removed the file since it was opened
    try:
        yield acquired
    finally:
        if os.getpid() == pid:  # a fork has a copy of this block, but does not own the lock
            if acquired:
                path.unlink(missing_ok=True)
            lock.release()


@dataclass(frozen=True)
class StagingArea:
    """A folder of staged bundles, named by their owners."""

    folder: Path

    @contextmanager
    def new(self, owner: str) -> Iterator[Path]:
        """Yield an empty folder, locked during the block; removed after the block."""
        if self.folder.is_symlink():
            raise wordings.write_behind_link(str(self.folder))
        make_folder(self.folder.parent)
        self.folder.mkdir(exist_ok=True, mode=0o700)  # unfinished bundles are private
        pid = os.getpid()
        while True:
            staged = self.folder / f"{owner}.{uuid.uuid4().hex}"
            with try_lock(staged) as acquired:
                if not acquired:  # another process swept it before it was locked
                    continue
                staged.mkdir(mode=0o755)
                try:
                    yield staged
                finally:
                    if os.getpid() == pid:  # a fork that ends early removes nothing
                        shutil.rmtree(staged, ignore_errors=True)
                return

    def sweep(self, owner: str) -> None:
        """Remove an owner's abandoned folders; folders in use stay."""
        paths = [path for path in self._paths(owner) if not path.is_symlink()]
        for staged in {staged_folder(path) for path in paths}:
            with suppress(OSError), try_lock(staged) as abandoned:
                if abandoned:
                    shutil.rmtree(staged, ignore_errors=True)
                    shutil.rmtree(_sealed_path(staged), ignore_errors=True)

    def preserve_sealed(self, staged: Path) -> Path:
        """Keep a sealed folder after the block of `new` ends; returns its new path."""
        return staged.rename(_sealed_path(staged))

    def leftover(self, owner: str, digest: str) -> Path | None:
        """A sealed folder of an owner whose SHA256SUMS has this digest, if there is one."""
        for path in sorted(self._paths(owner)):
            with suppress(BundleError):
                if path.is_dir() and check(path) == digest:
                    return path
        return None

    def _paths(self, owner: str) -> Iterator[Path]:
        """Folders and locks of an owner; none if the staging area is a link."""
        if not self.folder.is_symlink():
            yield from self.folder.glob(f"{owner}.*")


def staged_folder(path: Path) -> Path:
    """The staged folder that a folder or a lock in the staging area belongs to."""
    return path.with_name(path.name.removesuffix(LOCK_SUFFIX).removesuffix(_SEALED_SUFFIX))


def _sealed_path(staged: Path) -> Path:
    return staged.with_name(staged.name + _SEALED_SUFFIX)
