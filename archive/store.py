"""Where bundles lie: ``<dataset>/<release>/release`` and, beside it, ``estimates/<id>``."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from archive.bundle import check, seal
from schemas.errors import ArchiveError

_STAGING = ".staging"


@dataclass(frozen=True)
class Archive:
    """A folder of sealed bundles.

    Parameters
    ----------
    root
        Made when the first bundle is committed.
    """

    root: Path

    def release(self, dataset: str, release: str) -> Path:
        """Where a release lies, or will lie."""
        return self.root / dataset / release / "release"

    def estimate(self, dataset: str, release: str, estimate: str) -> Path:
        """Where an estimate lies, or will lie."""
        return self.root / dataset / release / "estimates" / estimate

    def releases(self) -> list[tuple[str, str]]:
        """(dataset, release id) of every committed release, in the order of their names."""
        found = self.root.glob("*/*/release")
        return sorted(
            (path.parent.parent.name, path.parent.name)
            for path in found
            if path.parent.parent.name != _STAGING
        )

    def estimates(self, dataset: str, release: str) -> list[str]:
        """Ids of the estimates committed beside a release."""
        folder = self.root / dataset / release / "estimates"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """An empty folder on the archive's own disk; what is not committed is removed."""
        folder = self.root / _STAGING / uuid.uuid4().hex
        with self._trouble():
            folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def seal(self, staged: Path) -> str:
        """Seal a staged bundle and read it back; returns the digest of its SHA256SUMS."""
        with self._trouble():
            digest = seal(staged)
        check(staged)
        return digest

    def commit(self, staged: Path, place: Path) -> None:
        """Publish a sealed bundle by one rename: readers see all of it or nothing.

        Raises
        ------
        ArchiveError
            If something already lies there, or the disk refuses.
        """
        with self._trouble():
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.exists():
                raise ArchiveError(
                    f"{place}: already holds a bundle.",
                    "A ledger older than this archive makes ids that are taken: restore the "
                    "ledger that belongs to it.",
                )
            staged.rename(place)
            handle = os.open(place.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        reason = ""
        try:
            yield
        except OSError as caught:
            reason = os.strerror(caught.errno) if caught.errno else type(caught).__name__
        if reason:
            raise ArchiveError(
                f"{self.root}: cannot write to the archive ({reason}).",
                "Make room, or make it writable.",
            )
