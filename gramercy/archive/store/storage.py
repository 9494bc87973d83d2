"""Where an archive is stored: small files by their names, and sealed bundles.

`Archive` is written once above a store. A store lists, reads, writes, creates and removes files,
and makes a sealed bundle visible as a whole: a folder by one rename, a URL by a fixed order of
uploads, which are `FolderStore` here and `gramercy.archive.store.object_store`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import os
import posixpath
import shutil
import stat
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gramercy.archive.seal.bundle import (
    SEAL,
    SIGNATURE,
    check,
    check_file,
    same_content,
    sealed_digests,
)
from gramercy.archive.store.layout import ARCHIVE_FILES, DEPTH, NAME, STAGING, is_redirected
from gramercy.common.disk import (
    disk_errors,
    make_durable,
    make_folder,
    rename_folder,
    scratch_folder,
    write_atomically,
)
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import ArchiveError, BundleError, GramercyError
from gramercy.schemas.problem import Wording
from gramercy.schemas.url import without_secrets

_release_exists = Wording(
    families.EXISTS,
    "{path} already contains a release with other content.",
    "Two ledgers assigned the same id: use the ledger that belongs to this archive.",
)


_bundle_exists = Wording(
    families.EXISTS,
    "{path} already contains a bundle with other content.",
    "Another run published it first. Run again to use that bundle.",
)


_MOST_NEARBY = 200  # folders that are looked at for a suggestion


class Store(ABC):
    """Files and sealed bundles by their names, relative to a folder or URL.

    Every method raises `ArchiveError` if the store cannot be reached or refuses.
    """

    root: Path
    """The folder that contains all bundles, or their local copies."""

    is_folder = False

    @abstractmethod
    def location(self, name: str = "") -> str:
        """The path or URL of a file or bundle, without credentials, for messages."""

    @abstractmethod
    def children(self, folder: str = "", most: int | None = None) -> set[str]:
        """Names of files and folders directly in a folder, which may be above the store.

        Empty if it does not exist; with `most`, a folder on a disk gives at most so many.
        """

    @abstractmethod
    def names(self, under: str = "") -> list[str]:
        """Names of all files below a folder, sorted; empty if it does not exist."""

    @abstractmethod
    def read(self, name: str, most: int | None = None) -> bytes | None:
        """The content of a small file; None if it does not exist."""

    @abstractmethod
    def write(self, name: str, data: bytes) -> None:
        """Write or replace a small file; readers see the old or the new content."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file."""

    @abstractmethod
    def check_writable(self) -> None:
        """Check that files can be written, as far as this can be known."""

    @abstractmethod
    def bundles(
        self, dataset: str | None = None, release: str | None = None, kind: str | None = None
    ) -> list[tuple[str, ...]]:
        """The path components of every committed bundle, or of those with these first ones."""

    @abstractmethod
    def fetch(self, place: Path, *, description: bool = False) -> Path | None:
        """The folder in which a bundle can be read; None if it was not committed."""

    @abstractmethod
    def commit(self, staged: Path, place: Path, confirm: Callable[[], None] | None) -> None:
        """Make a bundle visible as a whole; see `Archive.commit`."""

    def rewrite_paths_in_errors(self) -> AbstractContextManager[None]:
        """Have errors in the block name files by their `location`."""
        return contextlib.nullcontext()

    def name(self, place: Path) -> str:
        """The name of a path below `root`."""
        return place.relative_to(self.root).as_posix()

    def nearby(self) -> list[str]:
        """The locations of archives directly above, below and next to this one."""
        folders, found = ["..", "../.."], dict[str, None]()
        for base in ("", ".."):
            with contextlib.suppress(GramercyError):  # only a suggestion: an error means none
                names = self.children(base, _MOST_NEARBY) - ARCHIVE_FILES
                folders += [posixpath.join(base, name) for name in sorted(names)]
        for folder in folders[:_MOST_NEARBY]:
            with contextlib.suppress(GramercyError):
                if ARCHIVE_FILES & self.children(folder, _MOST_NEARBY):
                    found[self.location(folder)] = None
        return list(found)

    def _conflict(self, place: Path) -> ArchiveError:
        exists = _release_exists if place.name == "release" else _bundle_exists
        return exists(self.location(self.name(place)))


@dataclass(frozen=True)
class FolderStore(Store):
    """A folder, which is created when something is written to it."""

    root: Path
    is_folder = True

    def location(self, name: str = "") -> str:
        path = self.root / name
        return os.path.normpath(path.absolute()) if name.startswith("..") else str(path)

    def children(self, folder: str = "", most: int | None = None) -> set[str]:
        with (
            disk_errors(self.root, reading=True),
            contextlib.suppress(FileNotFoundError),
            os.scandir(os.path.normpath(self.root.absolute() / folder)) as entries,
        ):
            return {each.name for each in itertools.islice(entries, most)}
        return set()

    def names(self, under: str = "") -> list[str]:
        names: list[str] = []
        with disk_errors(self.root, reading=True):
            for folder, folders, files in os.walk(self.root / under, onerror=_raise):
                links = [each for each in folders if os.path.islink(f"{folder}/{each}")]
                parent = Path(folder).relative_to(self.root).as_posix()
                start = "" if parent == "." else f"{parent}/"
                names += [f"{start}{each}" for each in [*files, *links]]
        return sorted(names)

    def read(self, name: str, most: int | None = None) -> bytes | None:
        path = self.root / name
        with disk_errors(self.root, reading=True):
            try:
                if not stat.S_ISREG(path.lstat().st_mode) or is_redirected(self.root, path.parent):
                    raise wordings.not_a_file(str(path))
                with path.open("rb") as stream:
                    content = stream.read(-1 if most is None else most + 1)
            except FileNotFoundError:
                return None
        if most is not None and len(content) > most:
            raise wordings.served_file_too_large(str(path), most)
        return content

    def write(self, name: str, data: bytes) -> None:
        path = self.root / name
        if is_redirected(self.root, path.parent):
            raise wordings.write_behind_link(str(path))
        with disk_errors(self.root):
            make_folder(self.root)
            # Anchors are readable by the steward and auditors only.
            make_folder(path.parent, 0o700 if name.startswith(".") else 0o755)
            write_atomically(path, data)
            self._make_folders_durable(path.parent)

    def remove(self, name: str) -> None:
        path = self.root / name
        with disk_errors(self.root):
            if not is_redirected(self.root, path.parent):
                path.unlink(missing_ok=True)

    def check_writable(self) -> None:
        """Nothing is checked: what is staged is written to the same disk."""

    def bundles(
        self, dataset: str | None = None, release: str | None = None, kind: str | None = None
    ) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = []
        for folder, data in _folders(self.root, dataset):
            for inner, name in _folders(folder, release) if data != STAGING else ():
                for path, each in _folders(inner, kind):
                    if DEPTH.get(each) == 3:
                        found.append((data, name, each))
                    elif each in DEPTH:
                        found += [(data, name, each, last) for _, last in _folders(path)]
        return sorted(found)

    def fetch(self, place: Path, *, description: bool = False) -> Path | None:
        return place if place.exists() else None

    def commit(self, staged: Path, place: Path, confirm: Callable[[], None] | None) -> None:
        with disk_errors(self.root):
            make_folder(place.parent)
            if confirm is not None and not place.exists():
                confirm()
            if place.exists() or not rename_folder(staged, place):
                if not same_content(staged, place):
                    raise self._conflict(place)
                shutil.rmtree(staged, ignore_errors=True)
            # The ledger survives a power cut, so the new folders must survive it as well.
            self._make_folders_durable(place)

    def _make_folders_durable(self, path: Path) -> None:
        for folder in path.relative_to(self.root).parents:
            make_durable(self.root / folder)


def _folders(path: str | Path, only: str | None = None) -> Iterator[tuple[str, str]]:
    """Path and name of each folder in a folder, or of one of them, without links."""
    if only is not None:
        inner = f"{path}/{only}"
        if NAME.fullmatch(only) and os.path.isdir(inner) and not os.path.islink(inner):
            yield inner, only
        return
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(path) as entries:
        yield from (
            (each.path, each.name) for each in entries if each.is_dir(follow_symlinks=False)
        )


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


_METADATA = ".metadata"  # folder of bundles of which only seal and description were fetched


@dataclass(frozen=True)
class MirroredStore(Store):
    """Files at a URL, and copies of bundles under the names that they have there.

    A bundle that was fetched stays at the same path until the process ends.
    """

    url: str = field(repr=False)  # the URL
    root: Path  # the folder of the copies; see `mirror_folder`

    @abstractmethod
    def check_address(self) -> None:
        """Check the URL and that its driver is installed, without network access."""

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
