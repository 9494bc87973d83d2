"""Archives wherever they lie, small sealed bundles, and publishers that are processes."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gramercy.archive.bundle import seal
from gramercy.archive.objects import Objects, is_url
from gramercy.archive.remote import RemoteArchive
from gramercy.archive.store import Archive
from gramercy.schemas.errors import ArchiveError


def archive_at(url: str, folder: Path, *, objects: Objects | None = None, **more: Any) -> Archive:
    """An archive as another process would see it: with a mirror of its own."""
    if not is_url(url):
        return Archive(Path(url), **more)
    mirror = folder / f"mirror-{uuid.uuid4().hex}"
    return RemoteArchive(
        mirror, **more, objects=objects or Objects(url), staged_in=folder / "staging"
    )


def bundle(folder: Path, text: str, files: int = 3) -> str:
    """A small sealed bundle; returns its digest."""
    folder.mkdir(parents=True)
    for k in range(files):
        (folder / f"part{k}.csv").write_text(f"{text} {k}\n")
    return seal(folder)


def brought(archive: Archive, bundle: Path, place: Path) -> None:
    """Commit a copy of a bundle that was sealed elsewhere."""
    with archive.staging("copy") as staged:
        shutil.copytree(bundle, staged, dirs_exist_ok=True)
        archive.commit(staged, place)


def publisher(url: str, folder: str, text: str) -> str | None:
    """Publish one's own bundle; its digest, or None if somebody else's was."""
    archive = archive_at(url, Path(folder))
    staged = Path(folder) / f"staged-{text}"
    digest = bundle(staged, text)
    try:
        archive.commit(staged, archive.root / "toy/v1-r1/release")
    except ArchiveError:
        return None
    return digest


def dying(url: str, folder: str, staged: str, steps: int) -> None:
    """A publisher that is gone, without a word, after so many steps."""
    archive = archive_at(url, Path(folder), objects=Dying(url, steps, os._exit))
    archive.commit(Path(staged), archive.root / "toy/v1-r1/release")


class DiedError(BaseException):
    """Nothing catches it."""


def died(_: int) -> None:
    raise DiedError


@dataclass(frozen=True)
class Dying(Objects):
    """Objects that let a publisher die after so many of its steps."""

    steps: int = 0
    how: Any = died
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
