"""Staging and sealing of bundles, which all archives do in the same way before they commit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from gramercy.archive.bundle import check, seal
from gramercy.archive.layout import is_redirected
from gramercy.archive.signing_keys import steward_key
from gramercy.archive.staging import StagingArea
from gramercy.common.disk import check_space, disk_errors
from gramercy.common.home import Home
from gramercy.schemas.problems.archive import write_behind_link


class StagedBundles(ABC):
    """The part of an archive that prepares bundles; see `gramercy.archive.protocol.Archive`."""

    root: Path
    keys: Path | None

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

    def check_space(self, size: int) -> None:
        """Check that a bundle of so many bytes can be staged and committed.

        How much a store at a URL can take is not known.

        Raises
        ------
        ArchiveError
            If there is not enough free space.
        """
        with disk_errors(self.root):
            for folder in (self._staging.folder, self.root):
                check_space(folder, size)

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

    @property
    @abstractmethod
    def _staging(self) -> StagingArea: ...

    def _check_writable(self) -> None:
        steward_key(self._keys)

    @property
    def _keys(self) -> Path:
        """The folder of the signing key."""
        return self.keys or Home.default().keys
