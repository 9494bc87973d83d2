"""Archives at a URL: what is read comes through a mirror, what is published goes up in an order.

A bundle's SHA256SUMS goes up first, exclusively: it claims the place for one content. Then its
other files, which are read back; its SHA256SUMS.sig goes up last. Readers take a bundle for
committed if and only if that file is there, so nobody ever sees half of one, and whoever died in
between can be finished with the very same bytes.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import tempfile
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gramercy.archive.anchors import FOLDER, newest_anchor, write_anchor
from gramercy.archive.bundle import (
    SEAL,
    SIGNATURE,
    SUMS,
    check,
    check_file,
    content,
    file_digest,
    sealed_digests,
)
from gramercy.archive.disk import linked
from gramercy.archive.objects import Objects, is_url
from gramercy.archive.package import DESCRIPTOR
from gramercy.archive.store import (
    INDEX,
    NAME,
    STAGING,
    Archive,
    in_a_bundle,
    in_order,
    renamed,
    same_content,
)
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.errors import ArchiveError, BundleError, RequestError
from gramercy.schemas.url import has_secrets, without_secrets

_LOCAL = {"file", "local"}
_DESCRIBED = ".described"  # in the mirror: bundles of which no more than the description was read


def open_archive(
    where: str | Path,
    *,
    trusted: frozenset[str] = frozenset(),
    keys: Path | None = None,
    staged_in: Path | None = None,
) -> Archive:
    """The archive at a folder or a URL.

    Parameters
    ----------
    where
        A path, or a URL of any protocol that fsspec has a driver for.
    trusted, keys
        See `Archive`.
    staged_in
        Where bundles are made that go to a URL: outlives this process.

    Raises
    ------
    RequestError
        If the URL is of no known protocol, or its driver is not installed.
    """
    text = str(where)
    if not is_url(text):
        if has_secrets(text):
            raise RequestError(
                f"{without_secrets(text)}: is neither a folder nor a URL.",
                "Write a URL as s3://bucket/path.",
            )
        return Archive(Path(where).expanduser(), trusted, keys)
    if text.partition("://")[0].lower() in _LOCAL:
        parts = urllib.parse.urlsplit(text)
        if parts.netloc not in {"", "localhost"}:
            raise RequestError(
                f"{without_secrets(text)}: names another machine.", "Write file:///path."
            )
        return Archive(Path(urllib.request.url2pathname(parts.path)), trusted, keys)
    objects = Objects(text)
    objects.open()
    return RemoteArchive(
        _mirror(text, os.getpid()), trusted, keys, objects=objects, staged_in=staged_in
    )


@dataclass(frozen=True)
class RemoteArchive(Archive):
    """Sealed bundles at a URL.

    Parameters
    ----------
    root
        The mirror: a folder that holds what was read, verified.
    objects
        What lies at the URL.
    staged_in
        Where bundles are made; default: in the mirror.
    """

    objects: Objects = field(kw_only=True)
    staged_in: Path | None = None

    @property
    def where(self) -> str:
        """The archive's URL, without credentials."""
        return self.objects.at()

    def shown(self, place: Path) -> str:
        """A bundle's URL, without credentials."""
        return self.objects.at(self._name(place).removeprefix(f"{_DESCRIBED}/"))

    def uri(self, place: Path) -> str:
        """A bundle's URL, without credentials."""
        return self.shown(place)

    def there(self) -> bool:
        """True: where nothing lies yet, there is an empty archive.

        Raises
        ------
        ArchiveError
            If the store cannot be reached.
        """
        self.objects.sizes(FOLDER)
        return True

    def described(self, dataset: str, release: str) -> Path | None:
        """See `Archive.described`: of a release that was not read yet, nothing else is fetched."""
        place = super()._inside(dataset, release, "release")
        if place.exists():
            return place
        name = self._name(place)
        folder = self.root / _DESCRIBED / name
        if not folder.exists():
            sizes = self._files(name)
            if SIGNATURE not in sizes:
                return None
            with self._trouble(), self._aside() as coming, _named(coming, self.shown(place)):
                for file in sorted((SEAL | {DESCRIPTOR}) & sizes.keys()):
                    self._download(f"{name}/{file}", sizes[file], coming / file)
                check_file(coming, DESCRIPTOR)
                folder.parent.mkdir(parents=True, exist_ok=True)
                renamed(coming, folder)  # or another thread's was, a moment before
        return folder

    def holds(self, place: Path) -> bool:
        """Whether a bundle was committed there, by now."""
        self._fetch(place)
        return place.exists()

    @contextlib.contextmanager
    def naming(self) -> Iterator[None]:
        """Have errors of what is read inside name URLs."""
        with _named(self.root, self.where), _named(self.root / _DESCRIBED, self.where):
            yield

    def anchor(self) -> Anchor | None:
        """The newest anchor of the ledger that lies here; raises as `Archive.anchor`."""
        return newest_anchor(self.objects, self.where)

    def write_anchor(self, anchor: Anchor) -> None:
        """Anchor the ledger here; raises as `Archive.write_anchor`."""
        write_anchor(self.objects, anchor)

    def releases(self) -> list[tuple[str, str]]:
        """(dataset, release id) of every committed release; see `Archive.releases`."""
        found = self._committed("", "release")
        return in_order((dataset, release) for dataset, release, *_ in found)

    def withdrawals(self) -> list[tuple[str, str]]:
        """See `Archive.withdrawals`."""
        found = self._committed("", "withdrawn")
        return sorted((dataset, release) for dataset, release, *_ in found)

    def strays(self) -> list[str]:
        """What lies at the URL and is no part of any bundle; see `Archive.strays`."""
        return [name for name in self.objects.names("") if not in_a_bundle(name)]

    def write_page(self, name: str, text: str) -> None:
        """Write or replace a page of the catalogue; see `Archive.write_page`."""
        page = text.encode()
        if self.objects.read(name) == page:
            return
        with self._trouble(), self._aside() as folder:
            (folder / INDEX).write_bytes(page)  # drivers know by the name that it is HTML
            self.objects.upload(name, folder / INDEX)

    def commit(self, staged: Path, place: Path, confirm: Callable[[], None] | None = None) -> None:
        """Publish a sealed bundle; what it was staged in is removed.

        The same content may be committed again: that finishes what was interrupted.

        Parameters
        ----------
        staged, place, confirm
            See `Archive.commit`.

        Raises
        ------
        ArchiveError
            If other content is in place, or the store cannot be reached, or does not keep what it
            was given. Nothing of the bundle can be seen then.
        """
        name = self._name(place)
        with self._trouble():
            sums, signature = ((staged / each).read_bytes() for each in (SUMS, SIGNATURE))
        if not self.objects.same(f"{name}/{SUMS}", sums):
            raise self._taken(place)
        if SIGNATURE not in self._files(name):
            for file in content(staged):
                self.objects.upload(f"{name}/{file}", staged / file)
        self._read_back(staged, name)
        with self._trouble(), self._aside() as copy:
            shutil.copytree(staged, copy, copy_function=linked, dirs_exist_ok=True)
            place.parent.mkdir(parents=True, exist_ok=True)
            if confirm is not None and SIGNATURE not in self._files(name):
                confirm()
            if not self.objects.same(f"{name}/{SIGNATURE}", signature):
                self._fetch(place)  # the same content, perhaps, with the signature of another key
                if not same_content(staged, place):
                    raise self._taken(place)
            renamed(copy, place)
        shutil.rmtree(staged, ignore_errors=True)

    def _read_back(self, staged: Path, name: str) -> None:
        sizes = self._files(name)
        for file in sorted(sizes.keys() | {*content(staged), SUMS}):
            url = self.objects.at(f"{name}/{file}")
            if file != SIGNATURE and not (staged / file).is_file():
                raise ArchiveError(f"{url}: is no part of the bundle.", "Remove it, and try again.")
            if file == SIGNATURE:
                continue
            held = hashlib.sha256()
            for part in self.objects.parts(f"{name}/{file}", sizes.get(file, 0)):
                held.update(part)
            if held.hexdigest() != file_digest(staged / file):
                raise ArchiveError(f"{url}: does not hold what was written to it.", "Try again.")

    def _fetch(self, place: Path) -> None:
        """Bring a committed bundle into the mirror, verified, unless it is there."""
        if place.exists():
            return
        name = self._name(place)
        sizes = self._files(name)
        if SIGNATURE not in sizes:
            return
        with self._trouble(), self._aside() as coming, _named(coming, self.shown(place)):
            for file in sorted(SEAL & sizes.keys()):
                self._download(f"{name}/{file}", sizes[file], coming / file)
            listed = sealed_digests(coming)
            # Before it is downloaded: it may be of any size and of any name.
            for file in sizes.keys() - listed.keys() - SEAL:
                raise BundleError(
                    f"{coming}/{file}: was not there when the bundle was sealed.",
                    "Ask its curator to remove it.",
                )
            for file in sorted(sizes.keys() - SEAL):
                self._download(f"{name}/{file}", sizes[file], coming / file)
            check(coming)
            place.parent.mkdir(parents=True, exist_ok=True)
            renamed(coming, place)  # or another thread's was, a moment before

    def _download(self, name: str, size: int, to: Path) -> None:
        with to.open("wb") as stream:
            for part in self.objects.parts(name, size):
                stream.write(part)

    @contextlib.contextmanager
    def _aside(self) -> Iterator[Path]:
        """An empty folder in the mirror, to be renamed within it; else removed."""
        folder = self.root / STAGING / f".{uuid.uuid4().hex}"
        folder.mkdir(parents=True, mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _files(self, name: str) -> dict[str, int]:
        """Sizes of the files of one bundle, by name."""
        found = self.objects.sizes(name)
        return {file.removeprefix(f"{name}/"): size for file, size in found.items()}

    def _committed(self, under: str, kind: str) -> list[list[str]]:
        """Where bundles of a kind were committed, as parts of their names."""
        found = [name.split("/") for name in self.objects.sizes(under)]
        length = 3 if kind in {"release", "withdrawn"} else 4
        return [
            parts[:-1]
            for parts in found
            if len(parts) == length + 1
            and parts[2] == kind
            and parts[-1] == SIGNATURE
            and all(map(NAME.fullmatch, parts))
        ]

    def _beside(self, dataset: str, release: str, kind: str) -> list[str]:
        under = self._name(super()._inside(dataset, release, kind))
        return [parts[-1] for parts in self._committed(under, kind)]

    def _inside(self, *names: str) -> Path:
        place = super()._inside(*names)
        self._fetch(place)
        return place

    def _name(self, place: Path) -> str:
        return place.relative_to(self.root).as_posix()

    @property
    def _staging(self) -> Path:
        return self.staged_in or super()._staging

    def _ready(self) -> None:
        super()._ready()
        # Also that the store takes what is written to it; never removed, for some keep all.
        self.objects.write(f"{STAGING}/writable", b"")

    def _taken(self, place: Path) -> ArchiveError:
        if SIGNATURE in self._files(self._name(place)):
            return super()._taken(place)
        claim = f"{self.shown(place)}/{SUMS}"
        return ArchiveError(
            f"{claim}: another bundle is on its way there.",
            "Wait for it to appear. If whoever published it died, have them finish, or remove "
            "that file.",
        )


@contextlib.contextmanager
def _named(folder: Path, url: str) -> Iterator[None]:
    """Have errors name a URL where they would name its copy in a folder."""
    told = ""
    try:
        yield
    except BundleError as caught:
        told = str(caught)
    if told:
        raise BundleError(told.replace(str(folder), url), "")  # the mend is in it


@functools.cache
def _mirror(url: str, pid: int) -> Path:
    """The folder that mirrors a URL for one process, and for no fork of it; gone at its end."""
    folder = Path(tempfile.mkdtemp(prefix="gramercy-mirror-")).resolve()

    def remove() -> None:
        if os.getpid() == pid:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder
