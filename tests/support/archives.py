"""Archives at any location, small sealed bundles, and publishers in other processes."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gramercy.archive.seal.bundle import seal
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.layout import is_page
from gramercy.archive.store.object_store import UrlStore, is_url
from gramercy.archive.store.opening import open_archive
from gramercy.pipeline.catalogue.catalogue_pages import catalogue_lock, read_entries, write_listing
from gramercy.pipeline.context import Context
from gramercy.schemas.errors import ArchiveError


def archive_at(
    url: str, folder: Path, *, objects: UrlStore | None = None, **options: Any
) -> Archive:
    """Open an archive as another process would: with its own mirror."""
    if not is_url(url):
        return open_archive(Path(url), **options)
    store = objects or UrlStore(url, folder / f"mirror-{uuid.uuid4().hex}")
    return Archive(store, **options, staging_folder=folder / "staging")


def objects_at(url: str) -> UrlStore:
    """The objects at a URL; no bundle of them is read."""
    return UrlStore(url, Path("no mirror"))


def unknown_files(archive: Archive) -> list[str]:
    """Names of files that Gramercy did not write: neither of a bundle nor of the archive."""
    return [name for name in archive.other_files() if not is_page(name)]


def update_listing(context: Context, dataset: str, release: str) -> None:
    """Write the listing as after a release, and no pages, which takes less time."""
    with catalogue_lock(context):
        update = read_entries(context.archive, context.existing_ledger, (dataset, release))
        write_listing(context.archive, update, update.before.pages)


def seal_bundle(folder: Path, text: str, files: int = 3) -> str:
    """Write and seal a small bundle; returns its digest."""
    folder.mkdir(parents=True)
    for k in range(files):
        (folder / f"part{k}.csv").write_text(f"{text} {k}\n")
    return seal(folder)


def commit_copy(archive: Archive, bundle: Path, target: Path) -> None:
    """Commit a copy of a bundle from another archive."""
    with archive.staging("copy") as staging:
        shutil.copytree(bundle, staging, dirs_exist_ok=True)
        archive.commit(staging, target)


def publish_bundle(url: str, folder: str, text: str) -> str | None:
    """Publish a bundle; returns its digest, or None if another publisher was first."""
    archive = archive_at(url, Path(folder))
    staged = Path(folder) / f"staged-{text}"
    digest = seal_bundle(staged, text)
    try:
        archive.commit(staged, archive.root / "toy/v1-r1/release")
    except ArchiveError:
        return None
    return digest


def publish_and_die(url: str, folder: str, staged: str, steps: int) -> None:
    """Publish, and exit without cleaning up after this number of steps."""
    store = CrashingStore(url, Path(folder) / "mirror", steps, os._exit)
    archive = archive_at(url, Path(folder), objects=store)
    archive.commit(Path(staged), archive.root / "toy/v1-r1/release")


class SimulatedCrash(BaseException):
    """Derives from `BaseException`, so that no handler catches it."""


def raise_crash(_: int) -> None:
    raise SimulatedCrash


@dataclass(frozen=True)
class CrashingStore(UrlStore):
    """An object store whose publisher crashes after this number of steps."""

    steps: int = 0
    crash: Any = raise_crash
    taken: list[str] = field(default_factory=list)

    def _step(self, name: str) -> None:
        self.taken.append(name)
        if len(self.taken) == self.steps:
            self.crash(9)

    def create(self, name: str, data: bytes) -> bool:
        created = super().create(name, data)
        self._step(f"create {name}")
        return created

    def upload(self, name: str, source: Path) -> None:
        super().upload(name, source)
        self._step(f"upload {name}")

    def chunks(self, name: str, size: int) -> Iterator[bytes]:
        yield from super().chunks(name, size)
        self._step(f"read {name}")
