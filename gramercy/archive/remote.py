"""Archives at a URL: bundles are read through a mirror, and uploaded in a fixed order.

A bundle's SHA256SUMS goes up first, exclusively: it claims the place for one content. Then its
other files, which are read back; its SHA256SUMS.sig goes up last. Readers take a bundle for
committed if and only if that file is there, so nobody ever sees half of one, and an upload that
was interrupted can be finished with the very same bytes.
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
from gramercy.archive.layout import DEPTH, INDEX, NAME, STAGING, bundle_path, by_turn, is_known
from gramercy.archive.mirror import Mirror
from gramercy.archive.objects import Objects
from gramercy.archive.protocol import Archive
from gramercy.archive.staging import StagingArea
from gramercy.common.disk import disk_errors, linked, renamed
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.errors import ArchiveError


@dataclass(frozen=True)
class RemoteArchive(Archive):
    """Sealed bundles at a URL.

    Parameters
    ----------
    root
        The folder of the mirror.
    objects
        What is at the URL.
    staged_in
        Where bundles are made; default: in the mirror.
    """

    objects: Objects = field(kw_only=True)
    staged_in: Path | None = None

    @property
    def where(self) -> str:
        return self.objects.at()

    def shown(self, place: Path) -> str:
        return self._mirror.url(place)

    def uri(self, place: Path) -> str:
        return self.shown(place)

    def naming(self) -> AbstractContextManager[None]:
        return self._mirror.naming()

    def there(self) -> bool:
        self.objects.sizes(FOLDER)
        return True  # where nothing was published yet, there is an empty archive

    def described(self, dataset: str, release: str) -> Path | None:
        return self._mirror.fetch_metadata(bundle_path(self.root, dataset, release, "release"))

    def holds(self, place: Path) -> bool:
        self._mirror.fetch(place)
        return place.exists()

    def releases(self) -> list[tuple[str, str]]:
        return by_turn((dataset, release) for dataset, release, *_ in self._committed("release"))

    def withdrawals(self) -> list[tuple[str, str]]:
        return sorted((dataset, release) for dataset, release, *_ in self._committed("withdrawn"))

    def strays(self) -> list[str]:
        return [name for name in self.objects.names("") if not is_known(name)]

    def anchor(self) -> Anchor | None:
        return newest_anchor(self.objects, self.where)

    def commit(self, staged: Path, place: Path, confirm: Callable[[], None] | None = None) -> None:
        name = self._mirror.name(place)
        with disk_errors(self.root):
            sums, signature = ((staged / file).read_bytes() for file in (SUMS, SIGNATURE))
        if not self.objects.same(f"{name}/{SUMS}", sums):
            raise self._taken(place)
        if not self._is_committed(name):
            for file in content(staged):
                self.objects.upload(f"{name}/{file}", staged / file)
        self._read_back(staged, name)
        with disk_errors(self.root), self._mirror.temporary() as copy:
            shutil.copytree(staged, copy, copy_function=linked, dirs_exist_ok=True)
            place.parent.mkdir(parents=True, exist_ok=True)
            if confirm is not None and not self._is_committed(name):
                confirm()
            if not self.objects.same(f"{name}/{SIGNATURE}", signature):
                # The same content, perhaps, with the signature of another key.
                self._mirror.fetch(place)
                if not same_content(staged, place):
                    raise self._taken(place)
            renamed(copy, place)
        shutil.rmtree(staged, ignore_errors=True)

    def _read_back(self, staged: Path, name: str) -> None:
        """Refuse a store that does not hold what was uploaded, or holds more."""
        sizes = self.objects.sizes_in(name)
        for file in sorted((sizes.keys() | {*content(staged), SUMS}) - {SIGNATURE}):
            url = self.objects.at(f"{name}/{file}")
            if not (staged / file).is_file():
                raise ArchiveError(f"{url}: is no part of the bundle.", "Remove it, and try again.")
            digest = hashlib.sha256()
            for part in self.objects.parts(f"{name}/{file}", sizes.get(file, 0)):
                digest.update(part)
            if digest.hexdigest() != file_digest(staged / file):
                raise ArchiveError(f"{url}: does not hold what was written to it.", "Try again.")

    def write_anchor(self, anchor: Anchor) -> None:
        write_anchor(self.objects, anchor)

    def write_page(self, name: str, text: str) -> None:
        page = text.encode()
        if self.objects.read(name) == page:
            return
        with disk_errors(self.root), self._mirror.temporary() as folder:
            (folder / INDEX).write_bytes(page)  # drivers know by the name that it is HTML
            self.objects.upload(name, folder / INDEX)

    @property
    def _mirror(self) -> Mirror:
        return Mirror(self.root, self.objects)

    @property
    def _staging(self) -> StagingArea:
        return StagingArea(self.staged_in or self.root / STAGING)

    def _path(self, *names: str) -> Path:
        path = bundle_path(self.root, *names)
        self._mirror.fetch(path)
        return path

    def _ids(self, dataset: str, release: str, kind: str) -> list[str]:
        folder = bundle_path(self.root, dataset, release, kind)
        return [parts[-1] for parts in self._committed(kind, self._mirror.name(folder))]

    def _committed(self, kind: str, under: str = "") -> list[list[str]]:
        """The parts of the names of all committed bundles of a kind."""
        found = [name.split("/") for name in self.objects.sizes(under)]
        return [
            parts[:-1]
            for parts in found
            if len(parts) == DEPTH[kind] + 1
            and parts[2] == kind
            and parts[-1] == SIGNATURE
            and all(map(NAME.fullmatch, parts))
        ]

    def _is_committed(self, name: str) -> bool:
        return SIGNATURE in self.objects.sizes_in(name)

    def _check_writable(self) -> None:
        super()._check_writable()
        # The store must take what is written to it; never removed, for some stores keep all.
        self.objects.write(f"{STAGING}/writable", b"")

    def _taken(self, place: Path) -> ArchiveError:
        if self._is_committed(self._mirror.name(place)):
            return super()._taken(place)
        claim = f"{self.shown(place)}/{SUMS}"
        return ArchiveError(
            f"{claim}: another bundle is on its way there.",
            "Wait for it to appear. If whoever published it died, have them finish, or remove "
            "that file.",
        )
