"""Copies of what was read from a URL: each bundle is fetched once, verified, and kept."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gramercy.archive.bundle import SEAL, SIGNATURE, check, check_file, sealed_digests
from gramercy.archive.layout import STAGING
from gramercy.archive.objects import Objects
from gramercy.archive.package import DESCRIPTOR
from gramercy.common.disk import disk_errors, renamed
from gramercy.schemas.errors import BundleError

_METADATA = ".described"  # in the mirror: bundles of which only the description was fetched


@dataclass(frozen=True)
class Mirror:
    """The bundles of a URL that were read, under the names they have there.

    Parameters
    ----------
    folder
        Where the copies are.
    objects
        Where they come from.
    """

    folder: Path
    objects: Objects

    def name(self, path: Path) -> str:
        """The name of a path relative to the mirror."""
        return path.relative_to(self.folder).as_posix()

    def url(self, path: Path) -> str:
        """The URL of what is at a path of the mirror, without credentials."""
        return self.objects.at(self.name(path).removeprefix(f"{_METADATA}/"))

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Have errors name URLs instead of paths of the mirror."""
        where = self.objects.at()
        with _naming(self.folder, where), _naming(self.folder / _METADATA, where):
            yield

    def fetch(self, path: Path) -> None:
        """Fetch and verify a bundle, unless it is here already or was not committed.

        Raises
        ------
        BundleError
            If it is not what was sealed.
        ArchiveError
            If it cannot be read.
        """
        name = self.name(path)
        if path.exists() or SIGNATURE not in (sizes := self.objects.sizes_in(name)):
            return
        with self._incoming(path) as incoming:
            self._download(name, incoming, sizes, SEAL & sizes.keys())
            listed = sealed_digests(incoming)
            # Before it is downloaded: it may be of any size and of any name.
            for file in sizes.keys() - listed.keys() - SEAL:
                raise BundleError(
                    f"{incoming}/{file}: was not there when the bundle was sealed.",
                    "Ask its curator to remove it.",
                )
            self._download(name, incoming, sizes, sizes.keys() - SEAL)
            check(incoming)

    def fetch_metadata(self, path: Path) -> Path | None:
        """A folder with the seal and the description of a bundle, and all of it if it is here.

        None if it was not committed; raises as `fetch` does.
        """
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
        """An empty folder on the disk of the mirror; removed in the end, unless it was renamed."""
        folder = self.folder / STAGING / f".{uuid.uuid4().hex}"
        folder.mkdir(parents=True, mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _incoming(self, path: Path) -> Iterator[Path]:
        """An empty folder for what is downloaded; it takes its place if the block succeeds."""
        url = self.url(path)
        with disk_errors(self.folder), self.temporary() as incoming, _naming(incoming, url):
            yield incoming
            path.parent.mkdir(parents=True, exist_ok=True)
            renamed(incoming, path)  # or another thread's was, a moment before

    def _download(
        self, name: str, to: Path, sizes: Mapping[str, int], files: Collection[str]
    ) -> None:
        for file in sorted(files):
            with (to / file).open("wb") as stream:
                for part in self.objects.parts(f"{name}/{file}", sizes[file]):
                    stream.write(part)


@functools.cache
def mirror_folder(url: str, pid: int) -> Path:
    """The folder that mirrors a URL for one process, and for no fork of it; removed at its end."""
    folder = Path(tempfile.mkdtemp(prefix="gramercy-mirror-")).resolve()

    def remove() -> None:
        if os.getpid() == pid:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


@contextmanager
def _naming(folder: Path, url: str) -> Iterator[None]:
    """Have errors name a URL where they would name its copy in a folder."""
    text = ""
    try:
        yield
    except BundleError as caught:
        text = str(caught)
    if text:
        raise BundleError(text.replace(str(folder), url), "")  # the text includes the hint
