"""The interface of archives; `gramercy.archive.opening` chooses the class for an address.

`Archive` is an abstract class, not a structural protocol: all archives name, stage and seal bundles
in the same way, and differ only in how bundles are committed, found and read.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from gramercy.archive.bundle import SIGNATURE, signer
from gramercy.archive.layout import is_page
from gramercy.archive.signature import key_id
from gramercy.archive.staged_bundles import StagedBundles
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.errors import ArchiveError
from gramercy.schemas.problems.archive import bundle_exists, release_exists
from gramercy.schemas.problems.bundle import untrusted_signer


@dataclass(frozen=True)
class Archive(StagedBundles):
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

    @property
    @abstractmethod
    def is_folder(self) -> bool:
        """Whether the archive is in a folder of this machine, where searching is fast."""

    @property
    def needs_listing(self) -> bool:
        """Whether the archive can only be read by its signed listing."""
        return False

    @abstractmethod
    def check_exists(self) -> None:
        """Check that this is an archive, which may be empty.

        Raises
        ------
        RequestError
            If it is not; with the addresses of archives nearby, where they can be found.
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
    def metadata_path(self, dataset: str, release: str, *bundle: str) -> Path | None:
        """A folder with at least the seal and the description of a release.

        Of its attached bundle, if the last components of that bundle's path are given. None if it
        does not exist; raises as `release` does.
        """

    @abstractmethod
    def contains(self, place: Path) -> bool:
        """Whether a bundle has been committed at a path."""

    @abstractmethod
    def bundles(self, dataset: str | None = None) -> list[tuple[str, ...]]:
        """The path components of every committed bundle, or of those of one data set; sorted.

        Searches the archive itself: a signed listing, which may be old, is not read.
        """

    @abstractmethod
    def releases(self, dataset: str | None = None) -> list[tuple[str, str]]:
        """(dataset, release id) of every committed release, or of those of one data set.

        Oldest first in each data set; found as `bundles` are.
        """

    def withdrawals(self) -> list[tuple[str, str]]:
        """(dataset, release id) of every release that has a notice of withdrawal."""
        return [(each[0], each[1]) for each in self.bundles() if each[2] == "withdrawn"]

    def estimates(self, dataset: str, release: str) -> list[str]:
        """Ids of the estimates that were committed for a release."""
        return self._ids(dataset, release, "estimates")

    def reports(self, dataset: str, release: str) -> list[str]:
        """Ids of the reports that were committed for a release."""
        return self._ids(dataset, release, "reports")

    @abstractmethod
    def other_files(self) -> list[str]:
        """Names of the pages of the catalogue, and of files that Gramercy did not write."""

    def unknown_files(self) -> list[str]:
        """Names of files that Gramercy did not write: neither of a bundle nor of the archive."""
        return [name for name in self.other_files() if not is_page(name)]

    @abstractmethod
    def anchor(self) -> Anchor | None:
        """The newest anchor of the ledger in the archive, or None.

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

    @abstractmethod
    def write_anchor(self, anchor: Anchor) -> None:
        """Write an anchor of the ledger durably; older ones are removed where possible.

        Raises
        ------
        ArchiveError
            If the archive cannot be written to.
        """

    @abstractmethod
    def read_file(self, name: str, most: int) -> bytes | None:
        """A file that is not part of a bundle; None if there is none.

        Parameters
        ----------
        name
            Its name in the archive.
        most
            The largest size in bytes that is read.

        Raises
        ------
        BundleError
            If it is not a regular file.
        ArchiveError
            If it is larger, or cannot be read.
        """

    @abstractmethod
    def write_file(self, name: str, content: bytes) -> None:
        """Write or replace a file that is not part of a bundle: a page, or a part of the listing.

        Readers see the old or the new content. If it is there already, nothing is written.

        Raises
        ------
        ArchiveError
            If it cannot be written, or a link redirects its path.
        """

    @abstractmethod
    def remove_file(self, name: str) -> None:
        """Remove a file that is not part of a bundle, if the store allows it."""

    def write_page(self, name: str, text: str) -> str:
        """Write or replace a page of the catalogue; returns its SHA-256, raises as `write_file`."""
        content = text.encode()
        self.write_file(name, content)
        return hashlib.sha256(content).hexdigest()

    @abstractmethod
    def _path(self, *names: str) -> Path:
        """The path at which a bundle can be read if it was committed."""

    @abstractmethod
    def _ids(self, dataset: str, release: str, kind: str) -> list[str]: ...

    def _conflict(self, place: Path) -> ArchiveError:
        exists = release_exists if place.name == "release" else bundle_exists
        return exists(self.display_path(place))
