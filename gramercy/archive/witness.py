"""A witness: a place outside home and archive that keeps an anchor of every charge.

Anyone who can restore older copies of both ledger and archive could otherwise spend the same budget
twice, and nothing inside them could show it. A witness is a folder on another disk, or a URL whose
store refuses to delete or replace objects (on S3, a bucket with Object Lock): each anchor is a new
object, and none is ever replaced or removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gramercy.archive.anchors import FileStore, all_anchors, newest_anchor, write_anchor
from gramercy.archive.object_store import ObjectStore, display_url, is_url
from gramercy.archive.signing_keys import trusted_keys
from gramercy.common.disk import Files, disk_errors
from gramercy.common.home import Home
from gramercy.schemas.anchor import Anchor


@dataclass(frozen=True)
class Witness:
    """The anchors at one place; they are signed, and never removed.

    Parameters
    ----------
    files
        The place.
    location
        Its folder or URL without credentials, for messages.
    keys
        The folder of the signing key and of the trusted public keys.
    """

    files: FileStore
    location: str
    keys: Path

    @classmethod
    def of(cls, home: Home) -> Witness | None:
        """The witness that ``GRAMERCY_WITNESS_URL`` names, or None.

        Raises
        ------
        RequestError
            If the URL is not supported, or its driver is not installed.
        """
        address = home.witness_url
        if address is None:
            return None
        if not is_url(address):
            folder = Path(address).expanduser()
            return cls(Files(folder), str(folder), home.keys)
        objects = ObjectStore(address)
        objects.check_driver()
        return cls(objects, display_url(address), home.keys)

    def newest(self) -> Anchor | None:
        """The newest anchor, or None before the first one is written.

        Raises
        ------
        BundleError
            If the anchors contradict each other, or no trusted key has signed the newest one.
        ArchiveError
            If the place cannot be read.
        """
        with self._errors(reading=True):
            return newest_anchor(self.files, self.location, trusted_keys(self.keys))

    def all(self) -> list[Anchor]:
        """All anchors, each with a valid signature; they may contradict each other.

        Raises
        ------
        BundleError
            If no trusted key has signed one of them.
        ArchiveError
            If the place cannot be read.
        """
        with self._errors(reading=True):
            return all_anchors(self.files, self.location, trusted_keys(self.keys))

    def write(self, anchor: Anchor) -> None:
        """Write an anchor.

        Raises
        ------
        ArchiveError
            If the place cannot be written to.
        """
        with self._errors(reading=False):
            write_anchor(self.files, anchor, self.keys, keep=True)

    @contextmanager
    def _errors(self, *, reading: bool) -> Iterator[None]:
        with disk_errors(Path(self.location), reading=reading):
            yield
