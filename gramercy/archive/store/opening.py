"""Open an archive by its address: a folder, an HTTP address, or a URL that fsspec supports.

An archive at an HTTP address is read only, and found by its signed listing.

A witness is a place outside home and archive that keeps an anchor of every charge. Anyone who can
restore older copies of both ledger and archive could otherwise spend the same budget twice, and
nothing inside them could show it. A witness is a folder on another disk, or a URL whose store
refuses to delete or replace objects (on S3, a bucket with Object Lock): each anchor is a new
object, and none is ever replaced or removed.
"""

from __future__ import annotations

import os
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from gramercy.archive.listing.contents import Contents, bundle_digests
from gramercy.archive.listing.signed_listing import read_root
from gramercy.archive.seal.anchors import all_anchors, recent_anchors, write_anchor
from gramercy.archive.seal.bundle import SUMS, file_digest
from gramercy.archive.seal.signing import trusted_keys
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.http_store import SCHEMES, HttpStore
from gramercy.archive.store.layout import LISTING_FILE
from gramercy.archive.store.object_store import UrlStore, is_url
from gramercy.archive.store.storage import FolderStore, Store, mirror_folder
from gramercy.common.home import Home
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import RequestError
from gramercy.schemas.ledger_history import Anchor
from gramercy.schemas.problem import Wording
from gramercy.schemas.url import has_secrets, without_secrets

_LOCAL = {"file", "local"}


def archive_of(home: Home) -> Archive:
    """The archive of a home: its ``archive`` folder or ``GRAMERCY_ARCHIVE_URL``."""
    return open_archive(
        home.archive_url or home.archive,
        trusted=trusted_keys(home.keys),
        keys=home.keys,
        staging=home.staging,
    )


def open_archive(
    address: str | Path,
    *,
    trusted: frozenset[str] = frozenset(),
    keys: Path | None = None,
    staging: Path | None = None,
) -> Archive:
    """The archive at a path or a URL.

    Parameters
    ----------
    staging
        The folder in which bundles for a URL are staged; it should outlive this process.
    """
    store = store_at(address)
    if isinstance(store, HttpStore):
        return ListedArchive(store, trusted, keys)
    return Archive(store, trusted, keys, None if store.is_folder else staging)


def store_at(address: str | Path) -> Store:
    """The store at a path or a URL; raises `RequestError` as `open_archive` does."""
    text = str(address)
    if not is_url(text):
        if has_secrets(text):
            raise wordings.not_an_address(without_secrets(text))
        return FolderStore(Path(address).expanduser())
    scheme = text.partition("://")[0].lower()
    if scheme in _LOCAL:
        parts = urllib.parse.urlsplit(text)
        if parts.netloc not in {"", "localhost"}:
            raise families.NOT_AN_ARCHIVE(
                "{url} names another machine; a file:// URL must name this one.",
                "Write file:///path.",
                url=without_secrets(text),
            )
        return FolderStore(Path(urllib.request.url2pathname(parts.path)))
    kind = HttpStore if scheme in SCHEMES else UrlStore
    store = kind(text, mirror_folder(text, os.getpid()))
    store.check_address()
    return store


_no_listing = Wording(
    families.NOT_AN_ARCHIVE,
    "{url} has no listing.json, without which an archive cannot be read over HTTP.",
    "Check the address; the curator writes the listing with 'gramercy site'.",
)


@dataclass(frozen=True)
class ListedArchive(Archive):
    """Sealed bundles in a store that lists nothing; each must be the one that the listing names."""

    # The digests of bundles in the last root that was read.
    _listed: dict[tuple[str, ...], str] = field(default_factory=dict, init=False, compare=False)
    _last_root: list[bytes] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def needs_listing(self) -> bool:
        return True

    def check_exists(self) -> None:
        try:
            read_root(self)
            return
        except RequestError:  # there is no listing
            pass
        self._refuse_address(_no_listing)

    def bundles(self, dataset: str | None = None) -> list[tuple[str, ...]]:
        return sorted(self._read_listing(dataset))

    def releases(self, dataset: str | None = None) -> list[tuple[str, str]]:
        return Contents(self).names(dataset)

    def anchors(self) -> dict[str, Anchor]:
        signed = read_root(self)
        stated = None if signed is None else signed.root.ledger
        return {} if stated is None else {LISTING_FILE: stated}

    def read_file(self, name: str, most: int) -> bytes | None:
        content = self.store.read(name, most)
        if name == LISTING_FILE:
            if content is None:
                raise _no_listing(self.location)
            if self._last_root != [content]:
                self._last_root[:] = [content]
                self._listed.clear()
        return content

    def _fetch(self, place: Path, *, description: bool = False) -> Path | None:
        names = place.relative_to(self.root).parts
        digest = self._digest(names)
        if digest is None:
            return None
        folder = self.store.fetch(place, description=description)
        if folder is None:
            raise wordings.listed_bundle_missing(self.display_path(place))
        if file_digest(folder / SUMS) != digest:
            raise wordings.not_as_listed(self.display_path(place))
        return folder

    def _ids(self, dataset: str, release: str, kind: str) -> list[str]:
        self._digest((dataset, release, "release"))
        return sorted(each[3] for each in self._listed if each[:3] == (dataset, release, kind))

    def _digest(self, names: tuple[str, ...]) -> str | None:
        """The digest of a bundle, as the listing names it; None if it does not."""
        if (*names[:2], "release") not in self._listed:
            self._read_listing(names[0])
        return self._listed.get(names)

    def _read_listing(self, dataset: str | None) -> dict[tuple[str, ...], str]:
        """The digests of all bundles in the listing, or of those of one data set."""
        listed: dict[tuple[str, ...], str] = {}
        for name, entry in Contents(self).entries(dataset).items():
            listed |= bundle_digests(name, entry)
        self._listed.update(listed)
        return listed


@dataclass(frozen=True)
class Witness:
    """The anchors in one store; they are signed, and never removed."""

    store: Store  # the store
    keys: Path  # the folder of the signing key and of the trusted public keys

    @classmethod
    def of(cls, home: Home) -> Witness | None:
        """The witness that ``GRAMERCY_WITNESS_URL`` names, or None."""
        if home.witness_url is None:
            return None
        store = store_at(home.witness_url)
        if isinstance(store, HttpStore):  # it can only be read
            raise wordings.not_an_address(store.location())
        return cls(store, home.keys)

    @property
    def location(self) -> str:
        """Its folder or URL without credentials, for messages."""
        return self.store.location()

    def newest(self) -> Anchor | None:
        """The newest anchor, or None before the first one is written."""
        return next(reversed(self.anchors().values()), None)

    def anchors(self) -> dict[str, Anchor]:
        """The anchors of the last entries by their names, the newest last."""
        return recent_anchors(self.store, trusted_keys(self.keys))

    def all(self) -> list[Anchor]:
        """All anchors, each with a valid signature; they may contradict each other."""
        return all_anchors(self.store, trusted_keys(self.keys))

    def write_anchor(self, anchor: Anchor) -> None:
        """Write an anchor."""
        write_anchor(self.store, anchor, self.keys)
