"""Archives that are a folder: a bundle is committed by one rename."""

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
    by_turn,
    is_known,
    is_redirected,
    link_error,
)
from gramercy.archive.protocol import Archive
from gramercy.archive.staging import StagingArea
from gramercy.common.disk import Files, disk_errors, make_durable, renamed, replace
from gramercy.schemas.anchor import Anchor


class LocalArchive(Archive):
    """Sealed bundles in a folder, which is made when the first one is committed."""

    @property
    def where(self) -> str:
        return str(self.root)

    def shown(self, place: Path) -> str:
        return str(place)

    def uri(self, place: Path) -> str:
        return place.absolute().as_uri()

    @contextmanager
    def naming(self) -> Iterator[None]:
        yield

    def there(self) -> bool:
        return self.root.is_dir()

    def described(self, dataset: str, release: str) -> Path | None:
        place = self.release(dataset, release)
        return place if self.holds(place) else None

    def holds(self, place: Path) -> bool:
        return place.exists()

    def releases(self) -> list[tuple[str, str]]:
        found = self.root.glob("*/*/release")
        return by_turn(
            (path.parent.parent.name, path.parent.name)
            for path in found
            if path.parent.parent.name != STAGING and self._is_bundle(path)
        )

    def withdrawals(self) -> list[tuple[str, str]]:
        found = self.root.glob("*/*/withdrawn")
        return sorted((path.parent.parent.name, path.parent.name) for path in found)

    def strays(self) -> list[str]:
        with disk_errors(self.root, "read"):
            return [name for name in _files_and_links(self.root) if not is_known(name)]

    def anchor(self) -> Anchor | None:
        with disk_errors(self.root, "read"):
            return newest_anchor(Files(self.root), self.where)

    def commit(self, staged: Path, place: Path, confirm: Callable[[], None] | None = None) -> None:
        with disk_errors(self.root):
            place.parent.mkdir(parents=True, exist_ok=True)
            if confirm is not None and not place.exists():
                confirm()
            if place.exists() or not renamed(staged, place):
                if not same_content(staged, place):
                    raise self._taken(place)
                shutil.rmtree(staged, ignore_errors=True)
            # The new folders must outlive a power cut, or the ledger would outlive them.
            for folder in place.relative_to(self.root).parents:
                make_durable(self.root / folder)

    def write_anchor(self, anchor: Anchor) -> None:
        with disk_errors(self.root):
            write_anchor(Files(self.root), anchor)

    def write_page(self, name: str, text: str) -> None:
        path, page = self.root / name, text.encode()
        if is_redirected(self.root, path.parent):
            raise link_error(path)
        with disk_errors(self.root):
            if path.is_symlink() or not path.is_file() or path.read_bytes() != page:
                path.parent.mkdir(parents=True, exist_ok=True)
                replace(path, page)

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
    for place, folders, files in os.walk(root):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        yield from ((Path(place) / n).relative_to(root).as_posix() for n in [*files, *links])
