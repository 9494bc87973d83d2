"""What an archive can do, wherever it is: `gramercy.archive.open` finds the kind for an address.

An abstract class, not a structural protocol: archives of every kind name, stage and seal bundles
alike, and differ only in how bundles are committed, found and read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

from gramercy.archive.bundle import SIGNATURE, check, seal, signer
from gramercy.archive.layout import is_redirected, link_error
from gramercy.archive.signature import key_id
from gramercy.archive.signing_keys import steward_key
from gramercy.archive.staging import StagingArea
from gramercy.common.disk import disk_errors
from gramercy.common.home import Home
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.errors import ArchiveError, BundleError


@dataclass(frozen=True)
class Archive(ABC):
    """Sealed bundles.

    Parameters
    ----------
    root
        The folder that the paths of all bundles start with.
    trusted
        The public keys, in hexadecimal, of those whose bundles may be read. Empty: anyone's.
    keys
        The folder of the key that signs; default: that of the home in use.
    """

    root: Path
    trusted: frozenset[str] = frozenset()
    keys: Path | None = None

    @property
    @abstractmethod
    def where(self) -> str:
        """The archive, for people: its folder or URL, without credentials."""

    @abstractmethod
    def shown(self, place: Path) -> str:
        """The path or URL of a bundle, for people."""

    @abstractmethod
    def uri(self, place: Path) -> str:
        """The URI of a bundle, for links."""

    @abstractmethod
    def naming(self) -> AbstractContextManager[None]:
        """Have errors about files that are read inside show paths as `shown` does."""

    @abstractmethod
    def there(self) -> bool:
        """Whether the archive exists.

        Raises
        ------
        ArchiveError
            If that cannot be found out.
        """

    def release(self, dataset: str, release: str) -> Path:
        """The path of a release, committed or not.

        Raises
        ------
        UnknownRelease
            If a name, or a link in the archive, could lead elsewhere.
        BundleError, ArchiveError
            If it is at a URL and has been changed, or cannot be read.
        """
        return self._path(dataset, release, "release")

    def estimate(self, dataset: str, release: str, estimate: str) -> Path:
        """The path of an estimate, committed or not; raises as `release` does."""
        return self._path(dataset, release, "estimates", estimate)

    def report(self, dataset: str, release: str, report: str) -> Path:
        """The path of a report, committed or not; raises as `release` does."""
        return self._path(dataset, release, "reports", report)

    def withdrawal(self, dataset: str, release: str) -> Path:
        """The path of a release's notice of withdrawal, committed or not; raises as `release`."""
        return self._path(dataset, release, "withdrawn")

    @abstractmethod
    def described(self, dataset: str, release: str) -> Path | None:
        """A folder with at least the seal and the description of a release.

        None if there is no such release; raises as `release` does.
        """

    @abstractmethod
    def holds(self, place: Path) -> bool:
        """Whether a bundle has been committed at a path."""

    @abstractmethod
    def releases(self) -> list[tuple[str, str]]:
        """(dataset, release id) of every committed release; oldest first in each data set."""

    @abstractmethod
    def withdrawals(self) -> list[tuple[str, str]]:
        """(dataset, release id) of every release that has a notice of withdrawal."""

    def estimates(self, dataset: str, release: str) -> list[str]:
        """Ids of the estimates that were committed for a release."""
        return self._ids(dataset, release, "estimates")

    def reports(self, dataset: str, release: str) -> list[str]:
        """Ids of the reports that were committed for a release."""
        return self._ids(dataset, release, "reports")

    @abstractmethod
    def strays(self) -> list[str]:
        """Names of the files in the archive that belong neither to a bundle nor to the archive."""

    @abstractmethod
    def anchor(self) -> Anchor | None:
        """The newest anchor of the ledger in the archive, if any.

        Raises
        ------
        BundleError
            If a file is not an anchor, or anchors are of two ledgers, or of a forked one.
        ArchiveError
            If the archive cannot be read.
        """

    def hold_to_key(self, place: Path) -> None:
        """Refuse a bundle that was not signed by a trusted key; any key will do if none is named.

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
    def staging(self, owner: str, *, alone: bool = False) -> Iterator[Path]:
        """An empty folder, locked as long as the block lasts; what is not committed is removed.

        Parameters
        ----------
        owner
            Names the folder.
        alone
            First `sweep` what this owner's unfinished work has left; to commit what was already
            sealed, see `gramercy.archive.recovery`.

        Raises
        ------
        ArchiveError
            If nothing could be sealed or committed: found here, before there is anything to lose.
            Also if the disk refuses what is written into the folder.
        """
        self._check_writable()
        if is_redirected(self.root, self.root / owner):
            raise link_error(self.root / owner)
        if alone:
            self.sweep(owner)
        with disk_errors(self.root), self._staging.new(owner) as staged:
            yield staged

    def seal(self, staged: Path) -> str:
        """Seal and sign a staged bundle, and read it back; the digest of its SHA256SUMS.

        Raises
        ------
        ArchiveError
            If it cannot be written or signed.
        """
        with disk_errors(self.root):
            digest = seal(staged, self.keys)
        check(staged)
        return digest

    def keep(self, staged: Path) -> Path:
        """Let a sealed folder outlive its block; returns its new path.

        It stays until it is committed or discarded, or its owner's leftovers are swept.
        """
        with disk_errors(self.root):
            return self._staging.keep(staged)

    def discard(self, sealed: Path) -> None:
        """Remove what `keep` has kept."""
        rmtree(sealed, ignore_errors=True)

    def sweep(self, owner: str) -> None:
        """Remove what an owner's unfinished work has left; work in progress stays."""
        self._staging.sweep(owner)

    @abstractmethod
    def commit(self, staged: Path, place: Path, confirm: Callable[[], None] | None = None) -> None:
        """Publish a sealed bundle: readers see all of it or nothing.

        If the same content is in place already, only the staged copy is removed.

        Parameters
        ----------
        staged
            The sealed bundle; removed from there.
        place
            Its path in the archive.
        confirm
            Called at the last moment before others can see the bundle; what it raises stops that.

        Raises
        ------
        ArchiveError
            If other content is in place, or the archive refuses. The bundle is not visible then.
        """

    def sealed_leftover(self, owner: str, digest: str) -> Path | None:
        """The staged folder of a bundle that was sealed and not committed, if there is one.

        Parameters
        ----------
        owner
            Whose folder it was.
        digest
            What `seal` returned.
        """
        return self._staging.leftover(owner, digest)

    @abstractmethod
    def write_anchor(self, anchor: Anchor) -> None:
        """Write an anchor of the ledger durably; older ones are removed where possible.

        Raises
        ------
        ArchiveError
            If the archive cannot be written to.
        """

    @abstractmethod
    def write_page(self, name: str, text: str) -> None:
        """Write or replace a page of the catalogue; it belongs to no bundle and is not signed.

        Parameters
        ----------
        name
            ``index.html``, ``glossary.html``, or the ``index.html`` of a data set or a release.
        text
            HTML. If the page has this content already, nothing is written.

        Raises
        ------
        ArchiveError
            If it cannot be written, or a link leads elsewhere.
        """

    @property
    @abstractmethod
    def _staging(self) -> StagingArea: ...

    @abstractmethod
    def _path(self, *names: str) -> Path:
        """The path of a bundle, which is there to be read if it was committed."""

    @abstractmethod
    def _ids(self, dataset: str, release: str, kind: str) -> list[str]: ...

    def _check_writable(self) -> None:
        steward_key(self.keys or Home.default().keys)

    def _taken(self, place: Path) -> ArchiveError:
        if place.name == "release":
            fix = "Its id was given twice: use the ledger that belongs to this archive."
        else:
            fix = "Another run has published it first. Run again to use what it has published."
        return ArchiveError(f"{self.shown(place)}: already holds a bundle of other content.", fix)
