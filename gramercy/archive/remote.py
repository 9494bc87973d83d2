"""Archives at a URL: bundles are read through a mirror, and uploaded in a fixed order.

SHA256SUMS is created first, exclusively: it reserves the place for one content. The other files
follow and are read back. SHA256SUMS.sig is created last, and a bundle counts as committed if and
only if it exists. Readers therefore never see an incomplete bundle, and an interrupted upload can
be finished with the same bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gramercy.archive.anchors import newest_anchor, write_anchor
from gramercy.archive.bundle import SIGNATURE, SUMS, content, file_digest, same_content
from gramercy.archive.layout import (
    ARCHIVE_FILES,
    DEPTH,
    NAME,
    STAGING,
    bundle_path,
    in_release_order,
    is_archive_file,
)
from gramercy.archive.mirrored import MirroredArchive
from gramercy.archive.object_store import ObjectStore
from gramercy.archive.staging import StagingArea
from gramercy.common.disk import disk_errors, link_or_copy, rename_folder
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.errors import ArchiveError
from gramercy.schemas.problems.archive import (
    not_an_archive,
    place_claimed,
    unexpected_object,
    upload_altered,
)
from gramercy.schemas.problems.listing import archive_nearby, file_too_large


@dataclass(frozen=True)
class RemoteArchive(MirroredArchive):
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
    def _source(self) -> ObjectStore:
        return self.objects

    def check_exists(self) -> None:
        if self.objects.children() & ARCHIVE_FILES or self.bundles():
            return
        nearby = self.objects.nearby(ARCHIVE_FILES)
        if nearby:
            raise archive_nearby(self.location, most_similar_first(self.location, nearby))
        raise not_an_archive(self.location)

    def metadata_path(self, dataset: str, release: str, *bundle: str) -> Path | None:
        names = bundle or ("release",)
        return self._mirror.fetch_metadata(bundle_path(self.root, dataset, release, *names))

    def contains(self, place: Path) -> bool:
        self._mirror.fetch(place)
        return place.exists()

    def bundles(self, dataset: str | None = None) -> list[tuple[str, ...]]:
        return sorted(map(tuple, self._committed(dataset or "")))

    def releases(self, dataset: str | None = None) -> list[tuple[str, str]]:
        found = self.bundles(dataset)
        return in_release_order((each[0], each[1]) for each in found if each[2] == "release")

    def other_files(self) -> list[str]:
        return [name for name in self.objects.names("") if not is_archive_file(name)]

    def anchor(self) -> Anchor | None:
        return newest_anchor(self.objects, self.location, self.trusted)

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

    def read_file(self, name: str, most: int) -> bytes | None:
        content = self.objects.read(name, most + 1)
        if content is not None and len(content) > most:
            raise file_too_large(self.objects.display_url(name), most)
        return content

    def write_file(self, name: str, content: bytes) -> None:
        if self.objects.read(name) == content:
            return
        with disk_errors(self.root), self._mirror.temporary() as folder:
            file = folder / name.rpartition("/")[2]  # drivers derive the content type from the name
            file.write_bytes(content)
            self.objects.upload(name, file)

    def remove_file(self, name: str) -> None:
        with contextlib.suppress(ArchiveError):
            self.objects.remove(name)

    @property
    def _staging(self) -> StagingArea:
        return StagingArea(self.staging_folder) if self.staging_folder else super()._staging

    def _path(self, *names: str) -> Path:
        path = bundle_path(self.root, *names)
        self._mirror.fetch(path)
        return path

    def _ids(self, dataset: str, release: str, kind: str) -> list[str]:
        folder = bundle_path(self.root, dataset, release, kind)
        return [parts[-1] for parts in self._committed(self._mirror.name(folder))]

    def _committed(self, under: str) -> list[list[str]]:
        """The path components of all committed bundles below a folder."""
        names = [name.split("/") for name in self.objects.sizes(under)]
        return [
            parts[:-1]
            for parts in names
            if len(parts) > 3
            and DEPTH.get(parts[2]) == len(parts) - 1
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
