"""Anchors of the ledger in the archive: ``.ledger/<ledger>/<seq>-<hash>.json``.

A file for every entry that was anchored: two writers never write the same file with different
content, and of those that are behind, the newest counts.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Protocol

from gramercy.schemas.anchor import Anchor
from gramercy.schemas.errors import ArchiveError, BundleError
from gramercy.schemas.model import canonical

FOLDER = ".ledger"
_NAME = re.compile(FOLDER + r"/([0-9a-f]{32})/([0-9]{12})-([0-9a-f]{64})\.json", re.ASCII)
_TURNS = 20
_MEND = "Ask the curator which ledger is the true one; the archive's copies may tell."


class Store(Protocol):
    """Where small files lie; names are relative to it."""

    def names(self, under: str) -> Sequence[str]: ...
    def read(self, name: str) -> bytes | None: ...
    def write(self, name: str, data: bytes) -> None: ...
    def remove(self, name: str) -> None: ...


def write_anchor(files: Store, anchor: Anchor) -> None:
    """Write an anchor, and remove those before it where that is possible."""
    files.write(_name(anchor), _text(anchor))
    with contextlib.suppress(OSError, ArchiveError):
        for name in files.names(f"{FOLDER}/{anchor.ledger}"):
            found = _NAME.fullmatch(name)
            if found and int(found[2]) < anchor.seq:
                files.remove(name)


def newest_anchor(files: Store, where: str) -> Anchor | None:
    """The newest anchor, or None where there is none.

    Parameters
    ----------
    files
        The archive's.
    where
        The archive, for people.

    Raises
    ------
    BundleError
        If a file is no anchor, or there are those of two ledgers, or of one that was forked.
    """
    for _ in range(_TURNS):
        known = _known(files, where)
        if not known:
            return None
        found = max(known, key=lambda each: each.seq)
        for other in known:
            both = f"{where}/{_name(other)} and {where}/{_name(found)}"
            if other.ledger != found.ledger:
                raise BundleError(f"{both}: are anchors of two ledgers.", _MEND)
            if other.seq == found.seq and other.hash != found.hash:
                raise BundleError(f"{both}: are of one ledger that was forked.", _MEND)
        held = files.read(_name(found))
        if held == _text(found):
            return found
        if held is not None:
            raise BundleError(f"{where}/{_name(found)}: does not say what its name says.", _MEND)
        # Somebody wrote a newer one in between, and removed this one.
    raise ArchiveError(f"{where}/{FOLDER}: changes while it is read.", "Try again.")


def _known(files: Store, where: str) -> list[Anchor]:
    known = []
    for name in files.names(FOLDER):
        if any(part.startswith(".") for part in name.split("/")[1:]):
            continue  # on its way, or left by whoever died
        found = _NAME.fullmatch(name)
        if found is None or int(found[2]) == 0:
            raise BundleError(f"{where}/{name}: is no anchor of a ledger.", "Remove it.")
        known.append(Anchor(ledger=found[1], seq=int(found[2]), hash=found[3]))
    return known


def _name(anchor: Anchor) -> str:
    return f"{FOLDER}/{anchor.ledger}/{anchor.seq:012d}-{anchor.hash}.json"


def _text(anchor: Anchor) -> bytes:
    return canonical(anchor.model_dump()).encode()
