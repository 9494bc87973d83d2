"""Archives in a folder: a bundle is committed by one rename."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gramercy.archive.anchors import newest_anchor, write_anchor
from gramercy.archive.bundle import same_content
from gramercy.archive.layout import (
    STAGING,
    bundle_path,
    in_release_order,
    is_archive_file,
    is_redirected,
)
from gramercy.archive.protocol import Archive
from gramercy.archive.staging import StagingArea
from gramercy.common.disk import Files, disk_errors, make_durable, rename_folder, write_atomically
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.problems.archive import write_behind_link


class LocalArchive(Archive):
    """Sealed bundles in a folder, which is created when the first one is committed."""

    @property
    def location(self) -> str:
        return str(self.root)

    def display_path(self, place: Path) -> str:
        return str(place)

    def uri(self, place: Path) -> str:
        return place.absolute().as_uri()

    @contextmanager
    def rewrite_paths_in_errors(self) -> Iterator[None]:
        yield

    def exists(self) -> bool:
        return self.root.is_dir()

    def metadata_path(self, dataset: str, release: str) -> Path | None:
        place = self.release(dataset, release)
        return place if self.contains(place) else None

    def contains(self, place: Path) -> bool:
        return place.exists()

    def releases(self) -> list[tuple[str, str]]:
        paths = self.root.glob("*/*/release")
        return in_release_order(
            (path.parent.parent.name, path.parent.name)
            for path in paths
            if path.parent.parent.name != STAGING and self._is_bundle(path)
        )

    def withdrawals(self) -> list[tuple[str, str]]:
        paths = self.root.glob("*/*/withdrawn")
        return sorted((path.parent.parent.name, path.parent.name) for path in paths)

    def unknown_files(self) -> list[str]:
        with disk_errors(self.root, reading=True):
            return [name for name in _files_and_links(self.root) if not is_archive_file(name)]

    def anchor(self, signed_from: int = 0) -> Anchor | None:
        with disk_errors(self.root, reading=True):
            return newest_anchor(Files(self.root), self.location, self.trusted, signed_from)

    def commit(self, staged: Path, place: Path, confirm: Callable[[], None] | None = None) -> None:
        with disk_errors(self.root):
            place.parent.mkdir(parents=True, exist_ok=True)
            if confirm is not None and not place.exists():
                confirm()
            if place.exists() or not rename_folder(staged, place):
                if not same_content(staged, place):
                    raise self._conflict(place)
                shutil.rmtree(staged, ignore_errors=True)
            # The ledger survives a power cut, so the new folders must survive it as well.
            for folder in place.relative_to(self.root).parents:
                make_durable(self.root / folder)

    def write_anchor(self, anchor: Anchor) -> None:
        with disk_errors(self.root):
            write_anchor(Files(self.root), anchor, self._keys)

    def write_page(self, name: str, text: str) -> None:
        path, page = self.root / name, text.encode()
        if is_redirected(self.root, path.parent):
            raise write_behind_link(str(path))
        with disk_errors(self.root):
            if path.is_symlink() or not path.is_file() or path.read_bytes() != page:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, page)

    @property
    def _staging(self) -> StagingArea:
        return StagingArea(self.root / STAGING)

    def _path(self, *names: str) -> Path:
        return bundle_path(self.root, *names)

    def _ids(self, dataset: str, release: str, kind: str) -> list[str]:
        folder = self.release(dataset, release).parent / kind
        return sorted(path.name for path in folder.glob("*/") if self._is_bundle(path))

    def _is_bundle(self, folder: Path) -> bool:
        return folder.is_dir() and not is_redirected(self.root, folder)


def _files_and_links(root: Path) -> Iterator[str]:
    for parent, folders, files in os.walk(root):
        links = [name for name in folders if (Path(parent) / name).is_symlink()]
        yield from ((Path(parent) / n).relative_to(root).as_posix() for n in [*files, *links])
