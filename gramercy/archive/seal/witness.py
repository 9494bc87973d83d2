"""A witness: a place outside home and archive that keeps an anchor of every charge.

Anyone who can restore older copies of both ledger and archive could otherwise spend the same budget
twice, and nothing inside them could show it. A witness is a folder on another disk, or a URL whose
store refuses to delete or replace objects (on S3, a bucket with Object Lock): each anchor is a new
object, and none is ever replaced or removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gramercy.archive.seal.anchors import all_anchors, newest_anchor, write_anchor
from gramercy.archive.seal.signing_keys import trusted_keys
from gramercy.archive.store.http_store import HttpStore
from gramercy.archive.store.opening import store_at
from gramercy.archive.store.store import Store
from gramercy.common.home import Home
from gramercy.schemas import wordings
from gramercy.schemas.ledger_history import Anchor


@dataclass(frozen=True)
class Witness:
    """The anchors in one store; they are signed, and never removed.

    Parameters
    ----------
    store
        The store.
    keys
        The folder of the signing key and of the trusted public keys.
    """

    store: Store
    keys: Path

    @classmethod
    def of(cls, home: Home) -> Witness | None:
        """The witness that ``GRAMERCY_WITNESS_URL`` names, or None.

        Raises
        ------
        RequestError
            If the URL is not supported, or its driver is not installed.
        """
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
        """The newest anchor, or None before the first one is written.

        Raises
        ------
        BundleError
            If the anchors contradict each other, or no trusted key has signed the newest one.
        ArchiveError
            If the place cannot be read.
        """
        return newest_anchor(self.store, trusted_keys(self.keys))

    def all(self) -> list[Anchor]:
        """All anchors, each with a valid signature; they may contradict each other.

        Raises
        ------
        BundleError
            If no trusted key has signed one of them.
        ArchiveError
            If the place cannot be read.
        """
        return all_anchors(self.store, trusted_keys(self.keys))

    def write(self, anchor: Anchor) -> None:
        """Write an anchor.

        Raises
        ------
        ArchiveError
            If the place cannot be written to.
        """
        write_anchor(self.store, anchor, self.keys, keep=True)
