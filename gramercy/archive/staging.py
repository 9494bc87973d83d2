"""The staging area: folders in which bundles are made, each locked while somebody works in it.

A folder outlives its block only if its bundle is sealed and kept: then anyone may commit the very
same bytes, whatever became of its owner.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gramercy.archive.bundle import check
from gramercy.archive.held import LOCK, held
from gramercy.archive.layout import link_error
from gramercy.schemas.errors import BundleError

_KEPT = ".sealed"  # ends the name of a staged folder that outlives its block


@dataclass(frozen=True)
class StagingArea:
    """A folder of staged bundles, named by their owners."""

    folder: Path

    @contextmanager
    def new(self, owner: str) -> Iterator[Path]:
        """An empty folder, locked as long as the block lasts; what is still in it is removed.

        Raises
        ------
        ArchiveError
            If the staging area is a link.
        """
        if self.folder.is_symlink():
            raise link_error(self.folder)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.folder.mkdir(exist_ok=True, mode=0o700)  # nothing unfinished is for others
        pid = os.getpid()
        while True:
            staged = self.folder / f"{owner}.{uuid.uuid4().hex}"
            with held(staged) as mine:
                if not mine:  # it was swept before it was locked
                    continue
                staged.mkdir()
                try:
                    yield staged
                finally:
                    if os.getpid() == pid:  # a fork that ends early removes nothing
                        shutil.rmtree(staged, ignore_errors=True)
                return

    def sweep(self, owner: str) -> None:
        """Remove what an owner's unfinished work has left; work in progress stays."""
        left = [path for path in self._of(owner) if not path.is_symlink()]
        for staged in {unkept(path) for path in left}:
            with suppress(OSError), held(staged) as abandoned:
                if abandoned:
                    shutil.rmtree(staged, ignore_errors=True)
                    shutil.rmtree(_kept(staged), ignore_errors=True)

    def keep(self, staged: Path) -> Path:
        """Let a sealed folder outlive its block; returns its new path."""
        return staged.rename(_kept(staged))

    def leftover(self, owner: str, digest: str) -> Path | None:
        """A sealed folder of an owner whose SHA256SUMS has this digest, if there is one."""
        for left in sorted(self._of(owner)):
            with suppress(BundleError):
                if left.is_dir() and check(left) == digest:
                    return left
        return None

    def _of(self, owner: str) -> Iterator[Path]:
        """Folders and locks of an owner; none where the staging area is a link."""
        if not self.folder.is_symlink():
            yield from self.folder.glob(f"{owner}.*")


def unkept(path: Path) -> Path:
    """The staged folder that a folder or a lock in the staging area belongs to."""
    return path.with_name(path.name.removesuffix(LOCK).removesuffix(_KEPT))


def _kept(staged: Path) -> Path:
    return staged.with_name(staged.name + _KEPT)
