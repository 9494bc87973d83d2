"""Where bundles lie: ``<dataset>/<release>/release``, and ``estimates``, ``reports`` beside it."""

from __future__ import annotations

import errno
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gramercy.archive.anchors import FOLDER, newest_anchor, write_anchor
from gramercy.archive.bundle import SEAL, SIGNATURE, check, content, seal, signer
from gramercy.archive.disk import Files, linked, make_durable, replace
from gramercy.archive.held import LOCK, held
from gramercy.archive.signature import key_id
from gramercy.archive.signing_keys import steward_key
from gramercy.common.home import Home
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.errors import ArchiveError, BundleError, UnknownRelease

STAGING = ".staging"
_KEPT = ".sealed"  # ends the name of a staged folder that outlives its block
INDEX, GLOSSARY = "index.html", "glossary.html"  # pages of the catalogue
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)


@dataclass(frozen=True)
class Archive:
    """A folder of sealed bundles.

    Parameters
    ----------
    root
        Made when the first bundle is committed.
    trusted
        The public keys, in hexadecimal, of those whose bundles are to be read. Empty: whoever
        reads has named none.
    keys
        The folder of the key that signs; default: that of the home in use.
    """

    root: Path
    trusted: frozenset[str] = frozenset()
    keys: Path | None = None

    @classmethod
    def of(cls, home: Home, trusted: frozenset[str] | None = None) -> Archive:
        """The archive of a home.

        Parameters
        ----------
        home
            Whose.
        trusted
            See `Archive`; default: every public key that lies in the home.

        Raises
        ------
        RequestError
            If ``GRAMERCY_ARCHIVE_URL`` cannot be one, or a key is none.
        """
        from gramercy.archive.remote import open_archive
        from gramercy.archive.signing_keys import trusted_keys

        return open_archive(
            home.archive_url or home.archive,
            trusted=trusted_keys(home.keys) if trusted is None else trusted,
            keys=home.keys,
            staged_in=home.staging,
        )

    @property
    def where(self) -> str:
        """The archive, for people: its folder or URL."""
        return str(self.root)

    def shown(self, place: Path) -> str:
        """A bundle's place, for people."""
        return str(place)

    def uri(self, place: Path) -> str:
        """A bundle's place, as a link."""
        return place.absolute().as_uri()

    def there(self) -> bool:
        """Whether there is such an archive.

        Raises
        ------
        ArchiveError
            If that cannot be found out.
        """
        return self.root.is_dir()

    def release(self, dataset: str, release: str) -> Path:
        """Where a release lies, or will lie.

        Raises
        ------
        UnknownRelease
            If a name, or a link in the archive, could lead elsewhere.
        """
        return self._inside(dataset, release, "release")

    def described(self, dataset: str, release: str) -> Path | None:
        """A folder that holds the seal and the description of a release, and perhaps all of it.

        None where there is no such release; raises as `release` does.
        """
        place = self.release(dataset, release)
        return place if self.holds(place) else None

    def estimate(self, dataset: str, release: str, estimate: str) -> Path:
        """Where an estimate lies, or will lie; raises as `release` does."""
        return self._inside(dataset, release, "estimates", estimate)

    def report(self, dataset: str, release: str, report: str) -> Path:
        """Where a report lies, or will lie; raises as `release` does."""
        return self._inside(dataset, release, "reports", report)

    def withdrawal(self, dataset: str, release: str) -> Path:
        """Where the notice that a release was withdrawn lies, or will lie; raises as `release`."""
        return self._inside(dataset, release, "withdrawn")

    def holds(self, place: Path) -> bool:
        """Whether a bundle was committed there, by now."""
        return place.exists()

    def hold_to_key(self, place: Path) -> None:
        """Refuse a bundle that nobody who is trusted has signed, where anyone was named.

        Raises
        ------
        BundleError
            Naming its signature.
        """
        if not self.trusted:
            return
        public = signer(place)
        if public not in self.trusted:
            raise BundleError(
                f"{self.shown(place)}/{SIGNATURE}: is by the key {key_id(public)}, which is none "
                f"of those that are trusted ({', '.join(sorted(map(key_id, self.trusted)))}).",
                "If it is the curator's, ask for its public key, and name it beside the others.",
            )

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Have errors of what is read inside name the place that people know."""
        yield

    def anchor(self) -> Anchor | None:
        """The newest anchor of the ledger that lies here, if any.

        Raises
        ------
        BundleError
            If a file is no anchor, or there are those of two ledgers, or of one that was forked.
        ArchiveError
            If the archive cannot be read.
        """
        with self._trouble("read"):
            return newest_anchor(Files(self.root), self.where)

    def write_anchor(self, anchor: Anchor) -> None:
        """Anchor the ledger here, durably; older anchors of it are removed where possible.

        Raises
        ------
        ArchiveError
            If the archive cannot be written to.
        """
        with self._trouble():
            write_anchor(Files(self.root), anchor)

    def releases(self) -> list[tuple[str, str]]:
        """(dataset, release id) of every committed release, those of a data set oldest first."""
        found = self.root.glob("*/*/release")
        return in_order(
            (path.parent.parent.name, path.parent.name)
            for path in found
            if path.parent.parent.name != STAGING and self._is_real(path)
        )

    def withdrawals(self) -> list[tuple[str, str]]:
        """(dataset, release id) of every release that has a notice of withdrawal."""
        found = self.root.glob("*/*/withdrawn")
        return sorted((path.parent.parent.name, path.parent.name) for path in found)

    def strays(self) -> list[str]:
        """What lies in the archive and is no part of any bundle, by its name in it."""
        with self._trouble("read"):
            return [name for name in _files_and_links(self.root) if not in_a_bundle(name)]

    def write_page(self, name: str, text: str) -> None:
        """Write or replace a page of the catalogue: it is part of no bundle, and not signed.

        Parameters
        ----------
        name
            ``index.html``, ``glossary.html``, or an ``index.html`` beside a data set's releases or
            a release's bundle.
        text
            HTML. Where it lies there already, nothing is written.

        Raises
        ------
        ArchiveError
            If it cannot be written, or a link leads elsewhere.
        """
        place, page = self.root / name, text.encode()
        if self._led_away(place.parent):
            raise ArchiveError(
                f"{place}: a link leads elsewhere, and none is followed.",
                "Put the folder itself there.",
            )
        with self._trouble():
            if place.is_symlink() or not place.is_file() or place.read_bytes() != page:
                place.parent.mkdir(parents=True, exist_ok=True)
                replace(place, page)

    def estimates(self, dataset: str, release: str) -> list[str]:
        """Ids of the estimates committed beside a release."""
        return self._beside(dataset, release, "estimates")

    def reports(self, dataset: str, release: str) -> list[str]:
        """Ids of the reports committed beside a release."""
        return self._beside(dataset, release, "reports")

    def _beside(self, dataset: str, release: str, kind: str) -> list[str]:
        folder = self.release(dataset, release).parent / kind
        return sorted(path.name for path in folder.glob("*/") if self._is_real(path))

    def _is_real(self, folder: Path) -> bool:
        """Whether a folder lies in this archive, and not where a link leads."""
        return folder.is_dir() and not self._led_away(folder)

    @contextmanager
    def staging(self, owner: str, *, alone: bool = False) -> Iterator[Path]:
        """An empty folder on the archive's own disk; what is not committed is removed.

        It is locked as long as the block lasts, so that no other thread or process sweeps it.

        Parameters
        ----------
        owner
            Whose folder it is.
        alone
            Sweep first what this owner's unfinished work has left. See `finish` before.

        Raises
        ------
        ArchiveError
            If nothing could be sealed or committed: found here, before there is anything to lose.
            Also if the disk refuses what is written into the folder.
        """
        self._ready()
        for place in (self._staging, self.root / owner):  # where it is made, and may be committed
            if self._led_away(place):
                raise ArchiveError(
                    f"{place}: a link leads elsewhere, and none is followed.",
                    "Put the folder itself there.",
                )
        if alone:
            self.sweep(owner)
        with self._trouble():
            self._staging.parent.mkdir(parents=True, exist_ok=True)
            self._staging.mkdir(exist_ok=True, mode=0o700)  # nothing unfinished is for others
            with self._new_folder(owner) as folder:
                yield folder

    @contextmanager
    def _new_folder(self, owner: str) -> Iterator[Path]:
        pid = os.getpid()
        while True:
            folder = self._staging / f"{owner}.{uuid.uuid4().hex}"
            with held(folder) as mine:
                if not mine:  # it was swept before it was locked
                    continue
                folder.mkdir()
                try:
                    yield folder
                finally:
                    if os.getpid() == pid:  # a fork that ends early removes nothing
                        shutil.rmtree(folder, ignore_errors=True)
                return

    def sweep(self, owner: str) -> None:
        """Remove what an owner's unfinished work has left; work in progress stays."""
        if self._led_away(self._staging):
            return
        left = self._staging.glob(f"{owner}.*")
        for folder in {_unsealed(path) for path in left if not self._led_away(path)}:
            with suppress(OSError), held(folder) as abandoned:
                if abandoned:
                    shutil.rmtree(folder, ignore_errors=True)
                    shutil.rmtree(_sealed(folder), ignore_errors=True)

    def keep(self, staged: Path) -> Path:
        """Let a sealed folder outlive the block it was staged in; returns where it is now.

        Until it is committed or discarded, or its owner's leftovers are swept.
        """
        kept = _sealed(staged)
        with self._trouble():
            return staged.rename(kept)

    def discard(self, sealed: Path) -> None:
        """Remove what `keep` has kept."""
        shutil.rmtree(sealed, ignore_errors=True)

    def finish(
        self, owner: str, digest: str, place: Path, confirm: Callable[[], None] | None = None
    ) -> None:
        """Commit what somebody has sealed and not committed, if it is in the staging area.

        What its owner is still at work on stays there: a copy is committed, and the owner then
        finds its own content in place.

        Parameters
        ----------
        owner, digest
            See `sealed_leftover`.
        place, confirm
            See `commit`, which this raises as.
        """
        left = self.sealed_leftover(owner, digest)
        if left is None:
            return
        try:
            with self._trouble(), held(_unsealed(left)) as abandoned:
                if abandoned:
                    self.commit(left, place, confirm)
                    return
            with self.staging(owner) as copy:
                for name in (*content(left), *sorted(SEAL)):
                    linked(left / name, copy / name)
                    make_durable(copy / name)
                make_durable(copy)
                check(copy)
                self.commit(copy, place, confirm)
        except (ArchiveError, BundleError):
            if left.exists() or not self.holds(place):  # else its owner was faster
                raise

    def sealed_leftover(self, owner: str, digest: str) -> Path | None:
        """What somebody has sealed and not committed: the very bytes, to be committed.

        Parameters
        ----------
        owner
            Whose folder it was.
        digest
            What `seal` returned.
        """
        if self._led_away(self._staging):
            return None
        for left in sorted(self._staging.glob(f"{owner}.*")):
            with suppress(BundleError):
                if left.is_dir() and check(left) == digest:
                    return left
        return None

    def seal(self, staged: Path) -> str:
        """Seal and sign a staged bundle, and read it back; the digest of its SHA256SUMS.

        Raises
        ------
        ArchiveError
            If it cannot be written or signed.
        """
        with self._trouble():
            digest = seal(staged, self._keys)
        check(staged)
        return digest

    def commit(self, staged: Path, place: Path, confirm: Callable[[], None] | None = None) -> None:
        """Publish a sealed bundle by one rename: readers see all of it or nothing.

        Where the same content is in place, the staged copy is removed, and that is all.

        Parameters
        ----------
        staged
            The sealed bundle.
        place
            Where it goes.
        confirm
            Called at the last moment before others can see the bundle; what it raises stops that.

        Raises
        ------
        ArchiveError
            If other content is in place, or the disk refuses.
        """
        with self._trouble():
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

    @property
    def _keys(self) -> Path:
        return self.keys or Home.default().keys

    @property
    def _staging(self) -> Path:
        return self.root / STAGING

    def _ready(self) -> None:
        steward_key(self._keys)

    def _taken(self, place: Path) -> ArchiveError:
        if place.name == "release":
            fix = "Its id was given twice: use the ledger that belongs to this archive."
        else:
            fix = "Another run has published it first. Run again to use what it has published."
        return ArchiveError(f"{self.shown(place)}: already holds a bundle of other content.", fix)

    def _inside(self, *names: str) -> Path:
        if not all(NAME.fullmatch(name) for name in names):
            raise UnknownRelease(
                f"'{'/'.join(names[:2])}': is not the name of a release.",
                "It is DATASET/RELEASE; see 'gramercy list'.",
            )
        place = self.root.joinpath(*names)
        if self._led_away(place):
            raise UnknownRelease(
                f"{place}: a link leads elsewhere, and none is followed.",
                "Put the folder itself there.",
            )
        return place

    def _led_away(self, place: Path) -> bool:
        """Whether a link in the archive leads away from a place, out of it or to another's."""
        if not place.is_relative_to(self.root):  # the staging of an archive that lies elsewhere
            return place.is_symlink()
        return place.resolve() != self.root.resolve() / place.relative_to(self.root)

    @contextmanager
    def _trouble(self, doing: str = "write to") -> Iterator[None]:
        reason, path = "", str(self.root)
        try:
            yield
        except OSError as caught:
            path = str(caught.filename or path)
            reason = os.strerror(caught.errno) if caught.errno else type(caught).__name__
        if reason:
            raise ArchiveError(
                f"{path}: cannot {doing} the archive ({reason}).",
                "Make room, or make it writable." if doing == "write to" else "Make it readable.",
            )


def in_order(releases: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """By data set, and by the turns that end their ids: VERSION-r2 comes before VERSION-r10."""

    def place(each: tuple[str, str]) -> tuple[str, int, str]:
        turn = each[1].rpartition("-r")[2]
        return each[0], int(turn) if turn.isdecimal() and len(turn) < _DIGITS else 0, each[1]

    return sorted(releases, key=place)


def _files_and_links(root: Path) -> Iterator[str]:
    for place, folders, files in os.walk(root):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        yield from ((Path(place) / n).relative_to(root).as_posix() for n in [*files, *links])


_DIGITS = 20  # of a turn; what has more was made by nobody of ours
_PLACES = {("release", 4), ("withdrawn", 4), ("estimates", 5), ("reports", 5)}


def in_a_bundle(name: str) -> bool:
    """Whether a file's name is one that a bundle's file has, or a page, or work under way."""
    parts = name.split("/")
    if name == GLOSSARY or (parts[-1] == INDEX and len(parts) <= 3):
        return True
    return parts[0] in {STAGING, FOLDER} or (len(parts) > 2 and (parts[2], len(parts)) in _PLACES)


def _sealed(folder: Path) -> Path:
    """Where `Archive.keep` puts a staged folder."""
    return folder.with_name(folder.name + _KEPT)


def _unsealed(path: Path) -> Path:
    """The staged folder that a folder or a lock in the staging area belongs to."""
    return path.with_name(path.name.removesuffix(LOCK).removesuffix(_KEPT))


def same_content(staged: Path, place: Path) -> bool:
    """Whether two bundles are whole, and have the same content."""
    with suppress(BundleError):
        return check(staged) == check(place)
    return False


def renamed(folder: Path, place: Path) -> bool:
    """Whether a folder has become `place`; not if somebody else's did, a moment before."""
    try:
        folder.rename(place)
    except OSError as caught:
        if caught.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise
        return False
    return True
