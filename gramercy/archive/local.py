"""Archives in a folder: a bundle is committed by one rename."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gramercy.archive.anchors import newest_anchor, write_anchor
from gramercy.archive.bundle import same_content
from gramercy.archive.layout import (
    DEPTH,
    STAGING,
    bundle_path,
    in_release_order,
    is_archive_file,
    is_redirected,
)
from gramercy.archive.neighbours import check_is_archive
from gramercy.archive.protocol import Archive
from gramercy.archive.staging import StagingArea
from gramercy.common.disk import (
    Files,
    disk_errors,
    make_durable,
    make_folder,
    rename_folder,
    write_atomically,
)
from gramercy.common.temporary_files import is_temporary, remove_abandoned
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.problems.archive import write_behind_link
from gramercy.schemas.problems.bundle import not_a_file
from gramercy.schemas.problems.listing import file_too_large


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

    @property
    def is_folder(self) -> bool:
        return True

    def check_exists(self) -> None:
        check_is_archive(self.root)

    def metadata_path(self, dataset: str, release: str, *bundle: str) -> Path | None:
        place = self._path(dataset, release, *(bundle or ("release",)))
        return place if self.contains(place) else None

    def contains(self, place: Path) -> bool:
        return place.exists()

    def bundles(self, dataset: str | None = None) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = []
        for release in self._release_folders(dataset):
            for kind in _folders(release):
                if kind.name in {"release", "withdrawn"}:
                    found.append((*_parts(release), kind.name))
                elif kind.name in DEPTH:
                    names = (each.name for each in _folders(kind.path))
                    found += [(*_parts(release), kind.name, name) for name in names]
        return sorted(found)

    def releases(self, dataset: str | None = None) -> list[tuple[str, str]]:
        folders = self._release_folders(dataset)
        return in_release_order(
            _parts(folder) for folder in folders if _is_folder(f"{folder}/release")
        )

    def other_files(self) -> list[str]:
        with disk_errors(self.root, reading=True):
            names = [name for name in _files_and_links(self.root) if not is_archive_file(name)]
        left = [name for name in names if is_temporary(name.rpartition("/")[2])]
        remove_abandoned(self.root / name for name in left)
        return [name for name in names if name not in left]

    def anchor(self) -> Anchor | None:
        with disk_errors(self.root, reading=True):
            return newest_anchor(Files(self.root), self.location, self.trusted)

    def commit(self, staged: Path, place: Path, confirm: Callable[[], None] | None = None) -> None:
        with disk_errors(self.root):
            make_folder(place.parent)
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

    def read_file(self, name: str, most: int) -> bytes | None:
        path = self.root / name
        with disk_errors(self.root, reading=True):
            if not os.path.lexists(path):
                return None
            if path.is_symlink() or not path.is_file() or is_redirected(self.root, path.parent):
                raise not_a_file(str(path))
            with path.open("rb") as stream:
                content = stream.read(most + 1)
        if len(content) > most:
            raise file_too_large(str(path), most)
        return content

    def write_file(self, name: str, content: bytes) -> None:
        path = self.root / name
        if is_redirected(self.root, path.parent):
            raise write_behind_link(str(path))
        with disk_errors(self.root):
            if path.is_symlink() or not path.is_file() or path.read_bytes() != content:
                make_folder(path.parent)
                write_atomically(path, content)

    def remove_file(self, name: str) -> None:
        path = self.root / name
        with contextlib.suppress(OSError):
            if not is_redirected(self.root, path.parent):
                path.unlink(missing_ok=True)

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

    def _release_folders(self, dataset: str | None) -> Iterator[str]:
        """The folders of releases; none that is reached through a link."""
        datasets = [each.path for each in _folders(self.root) if dataset in {None, each.name}]
        for folder in datasets:
            if os.path.basename(folder) != STAGING:
                yield from (each.path for each in _folders(folder))


def _folders(path: str | Path) -> list[os.DirEntry[str]]:
    """The folders in a folder, without links; none if it does not exist."""
    try:
        with os.scandir(path) as entries:
            return [each for each in entries if each.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _parts(release: str) -> tuple[str, str]:
    """Data set and release id of the folder of a release."""
    parent, name = os.path.split(release)
    return os.path.basename(parent), name


def _files_and_links(root: Path) -> Iterator[str]:
    for parent, folders, files in os.walk(root):
        links = [name for name in folders if (Path(parent) / name).is_symlink()]
        yield from ((Path(parent) / n).relative_to(root).as_posix() for n in [*files, *links])
