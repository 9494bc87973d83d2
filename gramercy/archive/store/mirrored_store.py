"""Stores at a URL: each bundle is fetched once, verified, and cached in a local folder."""

from __future__ import annotations

import atexit
import functools
import os
import posixpath
import shutil
import uuid
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gramercy.archive.seal.bundle import SEAL, SIGNATURE, check, check_file, sealed_digests
from gramercy.archive.store.layout import STAGING
from gramercy.archive.store.store import Store
from gramercy.common.disk import disk_errors, rename_folder, scratch_folder
from gramercy.schemas import families
from gramercy.schemas.errors import BundleError
from gramercy.schemas.url import without_secrets

_METADATA = ".metadata"  # folder of bundles of which only seal and description were fetched


@dataclass(frozen=True)
class MirroredStore(Store):
    """Files at a URL, and copies of bundles under the names that they have there.

    A bundle that was fetched stays at the same path until the process ends.

    Parameters
    ----------
    url
        The URL.
    root
        The folder of the copies; see `mirror_folder`.
    """

    url: str = field(repr=False)
    root: Path

    @abstractmethod
    def check_address(self) -> None:
        """Check the URL and that its driver is installed, without network access.

        Raises
        ------
        RequestError
            If the URL is not supported, or its driver is not installed.
        """

    @abstractmethod
    def sizes_in(self, folder: str) -> Mapping[str, int]:
        """The largest possible size in bytes of every file of a bundle, by name."""

    @abstractmethod
    def chunks(self, name: str, size: int) -> Iterable[bytes]:
        """The content of a file of at most this size, in chunks."""

    def location(self, name: str = "") -> str:
        return joined(without_secrets(self.url), name)

    @contextmanager
    def rewrite_paths_in_errors(self) -> Iterator[None]:
        with _rewrite(self.root, self.location()), _rewrite(self.root / _METADATA, self.location()):
            yield

    def fetch(self, place: Path, *, description: bool = False) -> Path | None:
        if place.exists():
            return place
        name = self.name(place)
        copy = self.root / _METADATA / name if description else place
        if copy.exists():
            return copy
        sizes = self.sizes_in(name)
        if SIGNATURE not in sizes:
            return None
        with self._incoming(copy, name) as incoming:
            if description:
                from gramercy.archive.bundles.package import DESCRIPTOR  # imports pyarrow

                self._download(name, incoming, sizes, (SEAL | {DESCRIPTOR}) & sizes.keys())
                check_file(incoming, DESCRIPTOR)
            else:
                self._download(name, incoming, sizes, SEAL & sizes.keys())
                sealed = sealed_digests(incoming)
                # Refused before the download: an unsealed object may have any size and any name.
                for file in sizes.keys() - sealed.keys() - SEAL:
                    raise families.SEAL(
                        "{url} was added after the bundle was sealed.",
                        "Ask its curator to remove it.",
                        url=f"{incoming}/{file}",
                    )
                self._download(name, incoming, sizes, sizes.keys() - SEAL)
                check(incoming)
        return copy

    @contextmanager
    def temporary(self) -> Iterator[Path]:
        """An empty folder on the disk of the copies; removed at the end unless it was renamed."""
        folder = self.root / STAGING / f".{uuid.uuid4().hex}"
        folder.mkdir(parents=True, mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _incoming(self, path: Path, name: str) -> Iterator[Path]:
        """An empty folder for a download; renamed to `path` if the block succeeds."""
        with (
            disk_errors(self.root),
            self.temporary() as incoming,
            _rewrite(incoming, self.location(name)),
        ):
            yield incoming
            path.parent.mkdir(parents=True, exist_ok=True)
            # Fails if another thread has fetched the same content in the meantime.
            rename_folder(incoming, path)

    def _download(
        self, name: str, to: Path, sizes: Mapping[str, int], files: Collection[str]
    ) -> None:
        for file in sorted(files):
            with (to / file).open("wb") as stream:
                for chunk in self.chunks(f"{name}/{file}", sizes[file]):
                    stream.write(chunk)


def joined(url: str, name: str) -> str:
    """The URL of a file or folder relative to another one; empty if it is above the host."""
    base, gap, folder = url.rstrip("/").partition("://")
    if name.startswith(".."):
        folder = posixpath.normpath(f"{folder}/{name}")
        return f"{base}{gap}{folder}" if folder.strip("./") else ""
    return f"{base}{gap}{folder}/{name}" if name else f"{base}{gap}{folder}"


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
