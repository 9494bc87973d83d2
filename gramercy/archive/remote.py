"""Archives at a URL: bundles are read through a mirror, and uploaded in a fixed order.

SHA256SUMS is created first, exclusively: it reserves the place for one content. The other files
follow and are read back. SHA256SUMS.sig is created last, and a bundle counts as committed if and
only if it exists. Readers therefore never see an incomplete bundle, and an interrupted upload can
be finished with the same bytes.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from gramercy.archive.anchors import FOLDER, newest_anchor, write_anchor
from gramercy.archive.bundle import SIGNATURE, SUMS, content, file_digest, same_content
from gramercy.archive.layout import (
    DEPTH,
    INDEX,
    NAME,
    STAGING,
    bundle_path,
    in_release_order,
    is_archive_file,
)
from gramercy.archive.mirror import Mirror
from gramercy.archive.object_store import ObjectStore
from gramercy.archive.protocol import Archive
from gramercy.archive.staging import StagingArea
from gramercy.common.disk import disk_errors, link_or_copy, rename_folder
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.errors import ArchiveError
from gramercy.schemas.problems.archive import place_claimed, unexpected_object, upload_altered


@dataclass(frozen=True)
class RemoteArchive(Archive):
    """Sealed bundles at a URL.

    Parameters
    ----------
    root
        The folder of the mirror.
    objects
        The objects below the URL.
    staging_folder
        The folder in which bundles are staged; default: in the mirror.
    """

    objects: ObjectStore = field(kw_only=True)
    staging_folder: Path | None = None

    @property
    def location(self) -> str:
        return self.objects.display_url()

    def display_path(self, place: Path) -> str:
        return self._mirror.url(place)

    def uri(self, place: Path) -> str:
        return self.display_path(place)

    def rewrite_paths_in_errors(self) -> AbstractContextManager[None]:
        return self._mirror.rewrite_paths_in_errors()

    def exists(self) -> bool:
        self.objects.sizes(FOLDER)
        return True  # a URL without objects is an empty archive

    def metadata_path(self, dataset: str, release: str) -> Path | None:
        return self._mirror.fetch_metadata(bundle_path(self.root, dataset, release, "release"))

    def contains(self, place: Path) -> bool:
        self._mirror.fetch(place)
        return place.exists()

    def releases(self) -> list[tuple[str, str]]:
        return in_release_order(
            (dataset, release) for dataset, release, *_ in self._committed("release")
        )

    def withdrawals(self) -> list[tuple[str, str]]:
        return sorted((dataset, release) for dataset, release, *_ in self._committed("withdrawn"))

    def unknown_files(self) -> list[str]:
        return [name for name in self.objects.names("") if not is_archive_file(name)]

    def anchor(self, signed_from: int = 0) -> Anchor | None:
        return newest_anchor(self.objects, self.location, self.trusted, signed_from)

    def commit(self, staged: Path, place: Path, confirm: Callable[[], None] | None = None) -> None:
        name = self._mirror.name(place)
        with disk_errors(self.root):
            sums, signature = ((staged / file).read_bytes() for file in (SUMS, SIGNATURE))
        if not self.objects.ensure(f"{name}/{SUMS}", sums):
            raise self._conflict(place)
        if not self._is_committed(name):
            for file in content(staged):
                self.objects.upload(f"{name}/{file}", staged / file)
        self._read_back(staged, name)
        with disk_errors(self.root), self._mirror.temporary() as copy:
            shutil.copytree(staged, copy, copy_function=link_or_copy, dirs_exist_ok=True)
            place.parent.mkdir(parents=True, exist_ok=True)
            if confirm is not None and not self._is_committed(name):
                confirm()
            if not self.objects.ensure(f"{name}/{SIGNATURE}", signature):
                # Perhaps the same content was committed with the signature of another key.
                self._mirror.fetch(place)
                if not same_content(staged, place):
                    raise self._conflict(place)
            rename_folder(copy, place)
        shutil.rmtree(staged, ignore_errors=True)

    def _read_back(self, staged: Path, name: str) -> None:
        """Refuse a store that altered the upload, or contains additional files."""
        sizes = self.objects.sizes_in(name)
        for file in sorted((sizes.keys() | {*content(staged), SUMS}) - {SIGNATURE}):
            url = self.objects.display_url(f"{name}/{file}")
            if not (staged / file).is_file():
                raise unexpected_object(url)
            digest = hashlib.sha256()
            for chunk in self.objects.chunks(f"{name}/{file}", sizes.get(file, 0)):
                digest.update(chunk)
            if digest.hexdigest() != file_digest(staged / file):
                raise upload_altered(url)

    def write_anchor(self, anchor: Anchor) -> None:
        write_anchor(self.objects, anchor, self._keys)

    def write_page(self, name: str, text: str) -> None:
        page = text.encode()
        if self.objects.read(name) == page:
            return
        with disk_errors(self.root), self._mirror.temporary() as folder:
            (folder / INDEX).write_bytes(page)  # drivers derive the content type from the name
            self.objects.upload(name, folder / INDEX)

    @property
    def _mirror(self) -> Mirror:
        return Mirror(self.root, self.objects)

    @property
    def _staging(self) -> StagingArea:
        return StagingArea(self.staging_folder or self.root / STAGING)

    def _path(self, *names: str) -> Path:
        path = bundle_path(self.root, *names)
        self._mirror.fetch(path)
        return path

    def _ids(self, dataset: str, release: str, kind: str) -> list[str]:
        folder = bundle_path(self.root, dataset, release, kind)
        return [parts[-1] for parts in self._committed(kind, self._mirror.name(folder))]

    def _committed(self, kind: str, under: str = "") -> list[list[str]]:
        """The path components of all committed bundles of a kind."""
        names = [name.split("/") for name in self.objects.sizes(under)]
        return [
            parts[:-1]
            for parts in names
            if len(parts) == DEPTH[kind] + 1
            and parts[2] == kind
            and parts[-1] == SIGNATURE
            and all(map(NAME.fullmatch, parts))
        ]

    def _is_committed(self, name: str) -> bool:
        return SIGNATURE in self.objects.sizes_in(name)

    def _check_writable(self) -> None:
        super()._check_writable()
        # A trial write. It is never removed, because some stores forbid deletion.
        self.objects.write(f"{STAGING}/writable", b"")

    def _conflict(self, place: Path) -> ArchiveError:
        if self._is_committed(self._mirror.name(place)):
            return super()._conflict(place)
        return place_claimed(f"{self.display_path(place)}/{SUMS}")
