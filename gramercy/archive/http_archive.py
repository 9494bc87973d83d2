"""Archives at an HTTP address: read only, by their signed listing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from gramercy.archive.bundle import SUMS, file_digest
from gramercy.archive.contents import Contents, bundle_digests
from gramercy.archive.http_files import HttpFiles
from gramercy.archive.layout import LISTING_FILE, bundle_path
from gramercy.archive.mirrored import MirroredArchive
from gramercy.archive.signed_listing import read_root
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.errors import GramercyError, RequestError
from gramercy.schemas.problems.listing import (
    archive_nearby,
    listed_bundle_missing,
    no_listing,
    not_as_listed,
    read_only,
)

_NEARBY = ("archive", "..", "../archive", "../..")  # where an archive may be instead


@dataclass(frozen=True)
class HttpArchive(MirroredArchive):
    """Sealed bundles at an HTTP address; every bundle must be the one that the listing names.

    Parameters
    ----------
    root
        The folder of the local copies.
    files
        The files at the address.
    """

    files: HttpFiles = field(kw_only=True)
    # The digests of bundles in the last root that was read.
    _listed: dict[tuple[str, ...], str] = field(default_factory=dict, init=False, compare=False)
    _last_root: list[bytes] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def _source(self) -> HttpFiles:
        return self.files

    @property
    def needs_listing(self) -> bool:
        return True

    def check_exists(self) -> None:
        try:
            read_root(self)
            return
        except RequestError:  # there is no listing
            nearby = []
        for path in _NEARBY:
            files = HttpFiles(_joined(self.files.url, path), seconds=5.0)  # only a suggestion
            with contextlib.suppress(GramercyError):
                if files.url and read_root(HttpArchive(self.root, files=files)):
                    nearby.append(files.display_url())
        if nearby:
            raise archive_nearby(self.location, most_similar_first(self.location, nearby))
        raise no_listing(self.location)

    def metadata_path(self, dataset: str, release: str, *bundle: str) -> Path | None:
        names = (dataset, release, *(bundle or ("release",)))
        path, digest = bundle_path(self.root, *names), self._digest(names)
        if digest is None:
            return None
        folder = self._mirror.fetch_metadata(path)
        if folder is None:
            raise listed_bundle_missing(self.display_path(path))
        self._check_digest(folder, path, digest)
        return folder

    def contains(self, place: Path) -> bool:
        return self._path(*place.relative_to(self.root).parts).exists()

    def bundles(self, dataset: str | None = None) -> list[tuple[str, ...]]:
        return sorted(self._read_listing(dataset))

    def releases(self, dataset: str | None = None) -> list[tuple[str, str]]:
        return self._contents.names(dataset)

    def other_files(self) -> list[str]:
        return []  # a server tells only what the listing names

    def anchor(self) -> Anchor | None:
        signed = read_root(self)
        return None if signed is None else signed.root.ledger

    def read_file(self, name: str, most: int) -> bytes | None:
        content = self.files.read(name, most)
        if name == LISTING_FILE:
            if content is None:
                raise no_listing(self.location)
            if self._last_root != [content]:
                self._last_root[:] = [content]
                self._listed.clear()
        return content

    def commit(self, staged: Path, place: Path, confirm: Callable[[], None] | None = None) -> None:
        self._refuse_writing()

    def write_anchor(self, anchor: Anchor) -> None:
        self._refuse_writing()

    def write_file(self, name: str, content: bytes) -> None:
        self._refuse_writing()

    def remove_file(self, name: str) -> None:
        self._refuse_writing()

    @property
    def _contents(self) -> Contents:
        return Contents(self)

    def _path(self, *names: str) -> Path:
        path, digest = bundle_path(self.root, *names), self._digest(names)
        if digest is not None:
            self._mirror.fetch(path)
            if not path.exists():
                raise listed_bundle_missing(self.display_path(path))
            self._check_digest(path, path, digest)
        return path

    def _ids(self, dataset: str, release: str, kind: str) -> list[str]:
        self._digest((dataset, release, "release"))
        return sorted(each[3] for each in self._listed if each[:3] == (dataset, release, kind))

    def _digest(self, names: tuple[str, ...]) -> str | None:
        """The digest of a bundle, as the listing names it; None if it does not."""
        if (*names[:2], "release") not in self._listed:
            self._read_listing(names[0])
        return self._listed.get(names)

    def _read_listing(self, dataset: str | None) -> dict[tuple[str, ...], str]:
        """The digests of all bundles in the listing, or of those of one data set."""
        listed: dict[tuple[str, ...], str] = {}
        for name, entry in self._contents.entries(dataset).items():
            listed |= bundle_digests(name, entry)
        self._listed.update(listed)
        return listed

    def _check_digest(self, folder: Path, place: Path, digest: str) -> None:
        if file_digest(folder / SUMS) != digest:
            raise not_as_listed(self.display_path(place))

    def _check_writable(self) -> None:
        self._refuse_writing()

    def _refuse_writing(self) -> NoReturn:
        raise read_only(self.location)


def _joined(url: str, path: str) -> str:
    """The address of a folder relative to another one; empty if it is above the host."""
    base, _, folder = url.rstrip("/").partition("://")
    parts = folder.split("/")
    for part in path.split("/"):
        parts = parts[:-1] if part == ".." else [*parts, part]
    return f"{base}://{'/'.join(parts)}" if parts and parts[0] else ""
