"""Archives at any location, small sealed bundles, and publishers in other processes."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gramercy.archive.bundle import seal
from gramercy.archive.local import LocalArchive
from gramercy.archive.objects import Objects, is_url
from gramercy.archive.protocol import Archive
from gramercy.archive.remote import RemoteArchive
from gramercy.schemas.errors import ArchiveError


def archive_at(url: str, folder: Path, *, objects: Objects | None = None, **more: Any) -> Archive:
    """Open an archive as another process would: with its own mirror."""
    if not is_url(url):
        return LocalArchive(Path(url), **more)
    mirror = folder / f"mirror-{uuid.uuid4().hex}"
    return RemoteArchive(
        mirror, **more, objects=objects or Objects(url), staged_in=folder / "staging"
    )


def seal_bundle(folder: Path, text: str, files: int = 3) -> str:
    """Write and seal a small bundle; return its digest."""
    folder.mkdir(parents=True)
    for k in range(files):
        (folder / f"part{k}.csv").write_text(f"{text} {k}\n")
    return seal(folder)


def commit_copy(archive: Archive, bundle: Path, place: Path) -> None:
    """Commit a copy of a bundle from another archive."""
    with archive.staging("copy") as staged:
        shutil.copytree(bundle, staged, dirs_exist_ok=True)
        archive.commit(staged, place)


def publish_bundle(url: str, folder: str, text: str) -> str | None:
    """Publish a bundle; return its digest, or None if another publisher was first."""
    archive = archive_at(url, Path(folder))
    staged = Path(folder) / f"staged-{text}"
    digest = seal_bundle(staged, text)
    try:
        archive.commit(staged, archive.root / "toy/v1-r1/release")
    except ArchiveError:
        return None
    return digest


def publish_and_die(url: str, folder: str, staged: str, steps: int) -> None:
    """Publish, and exit without cleaning up after so many steps."""
    archive = archive_at(url, Path(folder), objects=CrashingObjects(url, steps, os._exit))
    archive.commit(Path(staged), archive.root / "toy/v1-r1/release")


class SimulatedCrash(BaseException):
    """Derives from `BaseException`, so that no handler catches it."""


def raise_crash(_: int) -> None:
    raise SimulatedCrash


@dataclass(frozen=True)
class CrashingObjects(Objects):
    """An object store whose publisher crashes after so many steps."""

    steps: int = 0
    how: Any = raise_crash
    taken: list[str] = field(default_factory=list)

    def _step(self, name: str) -> None:
        self.taken.append(name)
        if len(self.taken) == self.steps:
            self.how(9)

    def create(self, name: str, data: bytes) -> bool:
        made = super().create(name, data)
        self._step(f"create {name}")
        return made

    def upload(self, name: str, source: Path) -> None:
        super().upload(name, source)
        self._step(f"upload {name}")

    def parts(self, name: str, size: int) -> Iterator[bytes]:
        yield from super().parts(name, size)
        self._step(f"read {name}")
