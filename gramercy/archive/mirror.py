"""Local copies of bundles at a URL: each bundle is fetched once, verified, and cached."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gramercy.archive.bundle import SEAL, SIGNATURE, check, check_file, sealed_digests
from gramercy.archive.layout import STAGING
from gramercy.common.disk import disk_errors, rename_folder
from gramercy.common.scratch_folders import scratch_folder
from gramercy.schemas.errors import BundleError
from gramercy.schemas.problems.bundle import object_added

_METADATA = ".metadata"  # folder of bundles of which only seal and description were fetched


class BundleSource(Protocol):
    """The files of bundles at a URL, by their names relative to it."""

    def display_url(self, name: str = "") -> str: ...
    def sizes_in(self, folder: str) -> Mapping[str, int]: ...
    def chunks(self, name: str, size: int) -> Iterable[bytes]: ...


@dataclass(frozen=True)
class Mirror:
    """A cache of the bundles at a URL, under the names they have there.

    A bundle that was fetched stays at the same path until the process ends.

    Parameters
    ----------
    folder
        The folder of the copies.
    objects
        The objects below the URL.
    """

    folder: Path
    objects: BundleSource

    def name(self, path: Path) -> str:
        """The name of a path relative to the mirror."""
        return path.relative_to(self.folder).as_posix()

    def url(self, path: Path) -> str:
        """The URL of the object at a path of the mirror, without credentials."""
        return self.objects.display_url(self.name(path).removeprefix(f"{_METADATA}/"))

    @contextmanager
    def rewrite_paths_in_errors(self) -> Iterator[None]:
        """Replace paths of the mirror by URLs in the errors that are raised in the block."""
        url = self.objects.display_url()
        with _rewrite(self.folder, url), _rewrite(self.folder / _METADATA, url):
            yield

    def fetch(self, path: Path) -> None:
        """Fetch and verify a bundle, unless it is cached or was not committed.

        Raises
        ------
        BundleError
            If it differs from what was sealed.
        ArchiveError
            If it cannot be read.
        """
        name = self.name(path)
        if path.exists() or SIGNATURE not in (sizes := self.objects.sizes_in(name)):
            return
        with self._incoming(path) as incoming:
            self._download(name, incoming, sizes, SEAL & sizes.keys())
            sealed = sealed_digests(incoming)
            # Refused before the download: an unsealed object may have any size and any name.
            for file in sizes.keys() - sealed.keys() - SEAL:
                raise object_added(f"{incoming}/{file}")
            self._download(name, incoming, sizes, sizes.keys() - SEAL)
            check(incoming)

    def fetch_metadata(self, path: Path) -> Path | None:
        """A folder with the seal and the description of a bundle, or the whole bundle if cached.

        None if the bundle was not committed; raises as `fetch` does.
        """
        from gramercy.archive.package import DESCRIPTOR  # imports pyarrow

        name = self.name(path)
        if path.exists():
            return path
        metadata = self.folder / _METADATA / name
        if not metadata.exists():
            sizes = self.objects.sizes_in(name)
            if SIGNATURE not in sizes:
                return None
            with self._incoming(metadata) as incoming:
                self._download(name, incoming, sizes, (SEAL | {DESCRIPTOR}) & sizes.keys())
                check_file(incoming, DESCRIPTOR)
        return metadata

    @contextmanager
    def temporary(self) -> Iterator[Path]:
        """An empty folder on the disk of the mirror; removed at the end unless it was renamed."""
        folder = self.folder / STAGING / f".{uuid.uuid4().hex}"
        folder.mkdir(parents=True, mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _incoming(self, path: Path) -> Iterator[Path]:
        """An empty folder for a download; renamed to `path` if the block succeeds."""
        url = self.url(path)
        with disk_errors(self.folder), self.temporary() as incoming, _rewrite(incoming, url):
            yield incoming
            path.parent.mkdir(parents=True, exist_ok=True)
            # Fails if another thread has fetched the same content in the meantime.
            rename_folder(incoming, path)

    def _download(
        self, name: str, to: Path, sizes: Mapping[str, int], files: Collection[str]
    ) -> None:
        for file in sorted(files):
            with (to / file).open("wb") as stream:
                for chunk in self.objects.chunks(f"{name}/{file}", sizes[file]):
                    stream.write(chunk)


@functools.cache
def mirror_folder(url: str, pid: int) -> Path:
    """The folder that mirrors a URL for one process (a fork has its own); removed at exit."""
    folder = scratch_folder("gramercy-mirror-")

    def remove() -> None:
        if os.getpid() == pid:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


@contextmanager
def _rewrite(folder: Path, url: str) -> Iterator[None]:
    """Replace the path of a folder by a URL in the errors that are raised in the block."""
    try:
        yield
    except BundleError as error:
        raise error.renamed(str(folder), url) from None
