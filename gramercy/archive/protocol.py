"""The interface of archives; `gramercy.archive.opening` chooses the class for an address.

`Archive` is an abstract class, not a structural protocol: all archives name, stage and seal bundles
in the same way, and differ only in how bundles are committed, found and read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

from gramercy.archive.bundle import SIGNATURE, check, seal, signer
from gramercy.archive.layout import is_redirected
from gramercy.archive.signature import key_id
from gramercy.archive.signing_keys import steward_key
from gramercy.archive.staging import StagingArea
from gramercy.common.disk import disk_errors
from gramercy.common.home import Home
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.errors import ArchiveError
from gramercy.schemas.problems.archive import bundle_exists, release_exists, write_behind_link
from gramercy.schemas.problems.bundle import untrusted_signer


@dataclass(frozen=True)
class Archive(ABC):
    """Sealed bundles.

    Parameters
    ----------
    root
        The folder that contains all bundles, or their local copies.
    trusted
        The trusted public keys, in hexadecimal; only bundles that they signed are read. If empty,
        any key is accepted.
    keys
        The folder of the signing key; default: that of the home in use.
    """

    root: Path
    trusted: frozenset[str] = frozenset()
    keys: Path | None = None

    @property
    @abstractmethod
    def location(self) -> str:
        """The folder or URL of the archive, without credentials, for messages."""

    @abstractmethod
    def display_path(self, place: Path) -> str:
        """The path or URL of a bundle, without credentials, for messages."""

    @abstractmethod
    def uri(self, place: Path) -> str:
        """The URI of a bundle, for links."""

    @abstractmethod
    def rewrite_paths_in_errors(self) -> AbstractContextManager[None]:
        """Have errors in the block name files by their `display_path`."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether the archive exists.

        Raises
        ------
        ArchiveError
            If the store cannot be reached.
        """

    def release(self, dataset: str, release: str) -> Path:
        """The path of a release, committed or not.

        Raises
        ------
        UnknownRelease
            If a name, or a link in the archive, could lead out of the archive.
        BundleError, ArchiveError
            For an archive at a URL: if the release was changed, or cannot be read.
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
    def metadata_path(self, dataset: str, release: str) -> Path | None:
        """A folder with at least the seal and the description of a release.

        None if the release does not exist; raises as `release` does.
        """

    @abstractmethod
    def contains(self, place: Path) -> bool:
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
    def unknown_files(self) -> list[str]:
        """Names of files that Gramercy did not write: neither of a bundle nor of the archive."""

    @abstractmethod
    def anchor(self, signed_from: int = 0) -> Anchor | None:
        """The newest anchor of the ledger in the archive, or None.

        Anchors of entry `signed_from` and later ones must be signed.

        Raises
        ------
        BundleError
            If a file is not an anchor, or not signed by a trusted key, or the anchors are of two
            ledgers or of a forked ledger.
        ArchiveError
            If the archive cannot be read.
        """

    def verify_signer(self, place: Path) -> None:
        """Refuse a bundle that was not signed by a trusted key.

        Raises
        ------
        BundleError
            If there are trusted keys, and the signature is by another one.
        """
        if not self.trusted:
            return
        public = signer(place)
        if public not in self.trusted:
            path = f"{self.display_path(place)}/{SIGNATURE}"
            trusted = tuple(sorted(map(key_id, self.trusted)))
            raise untrusted_signer(path, key_id(public), trusted)

    @contextmanager
    def staging(self, owner: str, *, sweep_first: bool = False) -> Iterator[Path]:
        """Yield an empty folder, locked during the block; removed after the block unless committed.

        Parameters
        ----------
        owner
            Owner of the folder, whose name begins with it.
        sweep_first
            Whether to `sweep` this owner's abandoned folders first. To commit a bundle that was
            sealed already, see `gramercy.archive.recovery`.

        Raises
        ------
        ArchiveError
            If nothing could be sealed or committed; checked here, before any work is done. Also if
            the disk refuses a file that is written to the folder.
        """
        self._check_writable()
        if is_redirected(self.root, self.root / owner):
            raise write_behind_link(str(self.root / owner))
        if sweep_first:
            self.sweep(owner)
        with disk_errors(self.root), self._staging.new(owner) as staged:
            yield staged

    def seal(self, staged: Path) -> str:
        """Seal and sign a staged bundle, and read it back; returns the digest of its SHA256SUMS.

        Raises
        ------
        ArchiveError
            If it cannot be written or signed.
        """
        with disk_errors(self.root):
            digest = seal(staged, self.keys)
        check(staged)
        return digest

    def preserve_sealed(self, staged: Path) -> Path:
        """Keep a sealed folder after its `staging` block ends; returns its new path.

        It stays until it is committed, discarded or swept.
        """
        with disk_errors(self.root):
            return self._staging.preserve_sealed(staged)

    def discard(self, sealed: Path) -> None:
        """Remove a folder that `preserve_sealed` has preserved."""
        rmtree(sealed, ignore_errors=True)

    def sweep(self, owner: str) -> None:
        """Remove an owner's abandoned folders; folders in use stay."""
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
            Called immediately before the bundle becomes visible; an exception prevents that.

        Raises
        ------
        ArchiveError
            If other content is in place, or the archive cannot be written to. The bundle is then
            not visible.
        """

    def sealed_leftover(self, owner: str, digest: str) -> Path | None:
        """The staged folder of a bundle that was sealed and not committed, or None.

        Parameters
        ----------
        owner
            The owner of the folder.
        digest
            SHA-256 of the bundle's SHA256SUMS, as `seal` returned it.
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
        """Write or replace a page of the catalogue; pages are not part of a bundle, and not signed.

        Parameters
        ----------
        name
            ``index.html``, ``glossary.html``, or the ``index.html`` of a data set or a release.
        text
            HTML. If the page has this content already, nothing is written.

        Raises
        ------
        ArchiveError
            If it cannot be written, or a link redirects its path.
        """

    @property
    @abstractmethod
    def _staging(self) -> StagingArea: ...

    @abstractmethod
    def _path(self, *names: str) -> Path:
        """The path at which a bundle can be read if it was committed."""

    @abstractmethod
    def _ids(self, dataset: str, release: str, kind: str) -> list[str]: ...

    @property
    def _keys(self) -> Path:
        """The folder of the signing key."""
        return self.keys or Home.default().keys

    def _check_writable(self) -> None:
        steward_key(self._keys)

    def _conflict(self, place: Path) -> ArchiveError:
        exists = release_exists if place.name == "release" else bundle_exists
        return exists(self.display_path(place))
