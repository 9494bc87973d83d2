"""Archives: sealed bundles in a store, staged, committed, found and read in one way for all.

`gramercy.archive.store.opening` opens the archive at an address.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from gramercy.archive.seal.anchors import recent_anchors, write_anchor
from gramercy.archive.seal.bundle import SEAL, SIGNATURE, check, content, seal, signer
from gramercy.archive.seal.signing import key_id, steward_key
from gramercy.archive.store.layout import (
    ARCHIVE_FILES,
    STAGING,
    bundle_path,
    in_release_order,
    is_archive_file,
    is_redirected,
)
from gramercy.archive.store.staging import StagingArea, staged_folder, try_lock
from gramercy.archive.store.storage import Store
from gramercy.common.disk import (
    check_space,
    disk_errors,
    is_temporary,
    link_or_copy,
    make_durable,
    remove_abandoned,
)
from gramercy.common.home import Home
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import ArchiveError, BundleError, GramercyError
from gramercy.schemas.ledger_history import Anchor
from gramercy.schemas.problem import Wording

_not_an_archive = Wording(families.NOT_AN_ARCHIVE, "{path} is not an archive.", "Check the path.")


@dataclass(frozen=True)
class Archive:
    """Sealed bundles."""

    store: Store  # where they are
    # The trusted public keys, in hexadecimal; only bundles that they signed are read. If empty, any
    # key is accepted.
    trusted: frozenset[str] = frozenset()
    keys: Path | None = None  # the folder of the signing key; default: that of the home in use
    # the folder in which bundles are staged; default: in the store's local folder
    staging_folder: Path | None = None

    @property
    def root(self) -> Path:
        """The folder that contains all bundles, or their local copies."""
        return self.store.root

    @property
    def location(self) -> str:
        """The folder or URL of the archive, without credentials, for messages."""
        return self.store.location()

    def display_path(self, place: Path) -> str:
        """The path or URL of a bundle, without credentials, for messages."""
        return self.store.location(self.store.name(place))

    def rewrite_paths_in_errors(self) -> AbstractContextManager[None]:
        """Have errors in the block name files by their `display_path`."""
        return self.store.rewrite_paths_in_errors()

    @property
    def is_folder(self) -> bool:
        """Whether the archive is in a folder of this machine, where searching is fast."""
        return self.store.is_folder

    @property
    def needs_listing(self) -> bool:
        """Whether the archive can only be read by its signed listing."""
        return False

    def check_exists(self) -> None:
        """Check that this is an archive; an empty folder is one, in which nothing was published."""
        with disk_errors(self.root, reading=True):
            missing = self.is_folder and not self.root.exists()  # also below what is a file
        if missing:
            self._refuse_address(_not_an_archive)
        names = self.store.children()
        empty = self.is_folder and self.root.is_dir() and not names
        if empty or names & ARCHIVE_FILES:
            return
        with contextlib.suppress(OSError):  # a folder that cannot be searched
            if self.store.bundles():
                return
        self._refuse_address(_not_an_archive)

    def _refuse_address(self, missing: Callable[[str], GramercyError]) -> None:
        nearby = self.store.nearby()
        if nearby:
            raise families.NOT_AN_ARCHIVE(
                "{address} is not an archive.",
                "Archives nearby, most similar first: {similar}.",
                address=self.location,
                similar=most_similar_first(self.location, nearby),
            )
        raise missing(self.location)

    def release(self, dataset: str, release: str) -> Path:
        """The path of a release, committed or not."""
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

    def metadata_path(self, dataset: str, release: str, *bundle: str) -> Path | None:
        """A folder with at least the seal and the description of a release.

        Of its attached bundle, if the last components of that bundle's path are given. None if it
        does not exist; raises as `release` does.
        """
        names = bundle or ("release",)
        place = bundle_path(self.root, dataset, release, *names)
        return self._fetch(place, description=True)

    def contains(self, place: Path) -> bool:
        """Whether a bundle has been committed at a path."""
        return self._fetch(place) is not None

    def bundles(self, dataset: str | None = None) -> list[tuple[str, ...]]:
        """The path components of every committed bundle, or of those of one data set; sorted.

        Searches the archive itself: a signed listing, which may be old, is not read.
        """
        return sorted(self.store.bundles(dataset))

    def releases(self, dataset: str | None = None) -> list[tuple[str, str]]:
        """(dataset, release id) of every committed release, or of those of one data set.

        In the natural order of their ids; found as `bundles` are.
        """
        found = self.store.bundles(dataset, kind="release")
        return in_release_order(((each[0], each[1]) for each in found), {})

    def estimates(self, dataset: str, release: str) -> list[str]:
        """Ids of the estimates that were committed for a release."""
        return self._ids(dataset, release, "estimates")

    def reports(self, dataset: str, release: str) -> list[str]:
        """Ids of the reports that were committed for a release."""
        return self._ids(dataset, release, "reports")

    def other_files(self) -> list[str]:
        """Names of the pages of the catalogue, and of files that Gramercy did not write."""
        names = [name for name in self.store.names() if not is_archive_file(name)]
        if not self.is_folder:
            return names
        left = [name for name in names if is_temporary(name.rpartition("/")[2])]
        remove_abandoned(self.root / name for name in left)
        return [name for name in names if name not in left]

    def anchors(self) -> dict[str, Anchor]:
        """The anchors of the last entries of the ledger by their names, the newest last."""
        return recent_anchors(self.store, self.trusted)

    def anchor(self) -> Anchor | None:
        """The newest anchor of the ledger in the archive, or None."""
        return next(reversed(self.anchors().values()), None)

    def verify_signer(self, place: Path) -> None:
        """Refuse a bundle that was not signed by a trusted key."""
        if not self.trusted:
            return
        public = signer(place)
        if public not in self.trusted:
            path = f"{self.display_path(place)}/{SIGNATURE}"
            trusted = tuple(sorted(map(key_id, self.trusted)))
            raise wordings.untrusted_signer(path, key_id(public), trusted)

    def commit(self, staged: Path, place: Path, confirm: Callable[[], None] | None = None) -> None:
        """Publish a sealed bundle: readers see all of it or nothing.

        If the same content is in place already, only the staged copy is removed.

        Parameters
        ----------
        confirm
            Called immediately before the bundle becomes visible; an exception prevents that.
        """
        self.store.commit(staged, place, confirm)

    @contextmanager
    def staging(self, owner: str, *, sweep_first: bool = False) -> Iterator[Path]:
        """Yield an empty folder, locked during the block; removed after the block unless committed.

        Parameters
        ----------
        sweep_first
            Whether to `sweep` this owner's abandoned folders first. To commit a bundle that was
            sealed already, see `commit_leftover`.
        """
        self.store.check_writable()
        steward_key(self._keys)
        if is_redirected(self.root, self.root / owner):
            raise wordings.write_behind_link(str(self.root / owner))
        if sweep_first:
            self.sweep(owner)
        with disk_errors(self.root), self._staging.new(owner) as staged:
            yield staged

    def check_space(self, size: int) -> None:
        """Check that a bundle of so many bytes can be staged and committed.

        How much a store at a URL can take is not known.
        """
        with disk_errors(self.root):
            for folder in (self._staging.folder, self.root):
                check_space(folder, size)

    def seal(self, staged: Path) -> str:
        """Seal and sign a staged bundle, and read it back; returns the digest of its SHA256SUMS."""
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

    def sweep(self, owner: str) -> None:
        """Remove an owner's abandoned folders; folders in use stay."""
        self._staging.sweep(owner)

    def sealed_leftover(self, owner: str, digest: str) -> Path | None:
        """The staged folder of a bundle that was sealed and not committed, or None."""
        return self._staging.leftover(owner, digest)

    def commit_leftover(
        self, owner: str, digest: str, place: Path, confirm: Callable[[], None] | None = None
    ) -> None:
        """Commit a bundle that was sealed and not committed, if the staging area has it.

        If its owner still works on it, a copy is committed; the owner then finds its own content in
        place.
        """
        leftover = self.sealed_leftover(owner, digest)
        if leftover is None:
            return
        try:
            with disk_errors(self.root), try_lock(staged_folder(leftover)) as abandoned:
                if abandoned:
                    self.commit(leftover, place, confirm)
                    return
            with self.staging(owner) as copy:
                for name in (*content(leftover), *sorted(SEAL)):
                    link_or_copy(leftover / name, copy / name)
                    make_durable(copy / name)
                make_durable(copy)
                check(copy)
                self.commit(copy, place, confirm)
        except (ArchiveError, BundleError):
            # Otherwise its owner has committed it in the meantime.
            if leftover.exists() or not self.contains(place):
                raise

    def write_anchor(self, anchor: Anchor) -> None:
        """Write an anchor of the ledger durably."""
        write_anchor(self.store, anchor, self._keys)

    def read_file(self, name: str, most: int) -> bytes | None:
        """A file that is not part of a bundle; None if there is none."""
        return self.store.read(name, most)

    def write_file(self, name: str, content: bytes) -> None:
        """Write or replace a file that is not part of a bundle: a page, or a part of the listing.

        Readers see the old or the new content. If it is there already, nothing is written.
        """
        with contextlib.suppress(BundleError, ArchiveError):
            if self.store.read(name, len(content)) == content:
                return
        self.store.write(name, content)

    def remove_file(self, name: str) -> None:
        """Remove a file that is not part of a bundle, if the store allows it."""
        with contextlib.suppress(ArchiveError):
            self.store.remove(name)

    def write_page(self, name: str, text: str) -> str:
        """Write or replace a page of the catalogue; returns its SHA-256, raises as `write_file`."""
        content = text.encode()
        self.write_file(name, content)
        return hashlib.sha256(content).hexdigest()

    def _path(self, *names: str) -> Path:
        """The path at which a bundle can be read if it was committed."""
        place = bundle_path(self.root, *names)
        self._fetch(place)
        return place

    def _fetch(self, place: Path, *, description: bool = False) -> Path | None:
        """The folder in which a bundle can be read; None if it was not committed."""
        return self.store.fetch(place, description=description)

    def _ids(self, dataset: str, release: str, kind: str) -> list[str]:
        bundle_path(self.root, dataset, release)  # refuses names that lead elsewhere
        return sorted(each[3] for each in self.store.bundles(dataset, release, kind))

    @property
    def _staging(self) -> StagingArea:
        return StagingArea(self.staging_folder or self.root / STAGING)

    @property
    def _keys(self) -> Path:
        """The folder of the signing key."""
        return self.keys or Home.default().keys
