"""Where bundles lie: ``<dataset>/<release>/release``, and ``estimates``, ``reports`` beside it."""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from archive.bundle import check, make_durable, seal
from schemas.errors import ArchiveError, UnknownRelease

_STAGING = ".staging"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)


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
        """Where a release lies, or will lie.

        Raises
        ------
        UnknownRelease
            If a name, or a link in the archive, could lead elsewhere.
        """
        return self._inside(dataset, release, "release")

    def estimate(self, dataset: str, release: str, estimate: str) -> Path:
        """Where an estimate lies, or will lie; raises as `release` does."""
        return self._inside(dataset, release, "estimates", estimate)

    def report(self, dataset: str, release: str, report: str) -> Path:
        """Where a report lies, or will lie; raises as `release` does."""
        return self._inside(dataset, release, "reports", report)

    def releases(self) -> list[tuple[str, str]]:
        """(dataset, release id) of every committed release, in the order of their names."""
        found = self.root.glob("*/*/release")
        return sorted(
            (path.parent.parent.name, path.parent.name)
            for path in found
            if path.is_dir() and path.parent.parent.name != _STAGING and not self._strays(path)
        )

    def estimates(self, dataset: str, release: str) -> list[str]:
        """Ids of the estimates committed beside a release."""
        return self._beside(dataset, release, "estimates")

    def reports(self, dataset: str, release: str) -> list[str]:
        """Ids of the reports committed beside a release."""
        return self._beside(dataset, release, "reports")

    def _beside(self, dataset: str, release: str, kind: str) -> list[str]:
        folder = self.release(dataset, release).parent / kind
        return sorted(
            path.name for path in folder.glob("*/") if path.is_dir() and not self._strays(path)
        )

    @contextmanager
    def staging(self, owner: str, *, alone: bool = False) -> Iterator[Path]:
        """An empty folder on the archive's own disk; what is not committed is removed.

        Parameters
        ----------
        owner
            Whose folder it is.
        alone
            No other folder of this owner is in use: what one that died has left is removed, too.
        """
        folder = self.root / _STAGING / f"{owner}.{uuid.uuid4().hex}"
        for place in (folder, self.root / owner):  # where it is made, and where it may be committed
            if self._strays(place):
                raise ArchiveError(
                    f"{place}: a link leads elsewhere, and none is followed.",
                    "Put the folder itself there.",
                )
        if alone:
            self.sweep(owner)
        with self._trouble():
            self.root.mkdir(parents=True, exist_ok=True)
            folder.parent.mkdir(exist_ok=True, mode=0o700)  # what is unfinished is nobody's yet
            folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def sweep(self, owner: str) -> None:
        """Remove what an owner's unfinished work has left."""
        for left in (self.root / _STAGING).glob(f"{owner}.*"):
            if self._strays(left):
                continue
            shutil.rmtree(left, ignore_errors=True)

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
            # The new folders must outlive a power cut, or the ledger would outlive them.
            for folder in place.relative_to(self.root).parents:
                make_durable(self.root / folder)

    def _inside(self, *names: str) -> Path:
        if not all(_NAME.fullmatch(name) for name in names):
            raise UnknownRelease(
                f"'{'/'.join(names[:2])}': is not the name of a release.",
                "It is DATASET/RELEASE; see 'gramercy list'.",
            )
        place = self.root.joinpath(*names)
        if self._strays(place):
            raise UnknownRelease(
                f"{place}: a link leads elsewhere, and none is followed.",
                "Put the folder itself there.",
            )
        return place

    def _strays(self, place: Path) -> bool:
        """Whether a link in the archive leads away from a place, out of it or to another's."""
        return place.resolve() != self.root.resolve() / place.relative_to(self.root)

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
