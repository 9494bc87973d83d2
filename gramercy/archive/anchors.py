"""Anchors of the ledger in the archive: ``.ledger/<ledger>/<seq>-<hash>.json``.

Each anchored entry has a file of its own. Two writers never write one file with different content;
of several anchors, the newest counts.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Protocol

from gramercy.schemas.anchor import Anchor
from gramercy.schemas.errors import ArchiveError
from gramercy.schemas.model import canonical_json
from gramercy.schemas.problems import archive as problems

FOLDER = ".ledger"
_NAME = re.compile(FOLDER + r"/([0-9a-f]{32})/([0-9]{12})-([0-9a-f]{64})\.json", re.ASCII)
_ATTEMPTS = 20


class FileStore(Protocol):
    """Small files by their names."""

    def names(self, under: str) -> Sequence[str]: ...
    def read(self, name: str) -> bytes | None: ...
    def write(self, name: str, data: bytes) -> None: ...
    def remove(self, name: str) -> None: ...


def write_anchor(files: FileStore, anchor: Anchor) -> None:
    """Write an anchor, and remove older ones where possible."""
    files.write(_name(anchor), _content(anchor))
    with contextlib.suppress(OSError, ArchiveError):
        for name in files.names(f"{FOLDER}/{anchor.ledger}"):
            match = _NAME.fullmatch(name)
            if match and int(match[2]) < anchor.seq:
                files.remove(name)


def newest_anchor(files: FileStore, location: str) -> Anchor | None:
    """The newest anchor, or None before the first one is written.

    Parameters
    ----------
    files
        The archive's files.
    location
        The archive's folder or URL, for messages.

    Raises
    ------
    BundleError
        If a file is not an anchor, or the anchors are of two ledgers or of a forked ledger.
    """
    for _ in range(_ATTEMPTS):
        anchors = _anchors(files, location)
        if not anchors:
            return None
        newest = max(anchors, key=lambda anchor: anchor.seq)
        path = f"{location}/{_name(newest)}"
        for anchor in anchors:
            if anchor.ledger != newest.ledger:
                raise problems.anchors_of_two_ledgers(f"{location}/{_name(anchor)}", path)
            if anchor.seq == newest.seq and anchor.hash != newest.hash:
                raise problems.anchors_of_forked_ledger(f"{location}/{_name(anchor)}", path)
        content = files.read(_name(newest))
        if content == _content(newest):
            return newest
        if content is not None:
            raise problems.anchor_contradicts_name(path)
        # In the meantime, a newer anchor was written and this one removed.
    raise problems.anchors_changing(f"{location}/{FOLDER}")


def _anchors(files: FileStore, location: str) -> list[Anchor]:
    anchors = []
    for name in files.names(FOLDER):
        if any(part.startswith(".") for part in name.split("/")[1:]):
            continue  # being written, or left by a writer that crashed
        match = _NAME.fullmatch(name)
        if match is None or int(match[2]) == 0:
            raise problems.not_an_anchor(f"{location}/{name}")
        anchors.append(Anchor(ledger=match[1], seq=int(match[2]), hash=match[3]))
    return anchors


def _name(anchor: Anchor) -> str:
    return f"{FOLDER}/{anchor.ledger}/{anchor.seq:012d}-{anchor.hash}.json"


def _content(anchor: Anchor) -> bytes:
    return canonical_json(anchor.model_dump()).encode()
