"""Signed anchors of the ledger outside of it: ``.ledger/<ledger>/<seq>-<hash>.json``.

Each anchored entry has a file of its own: the anchor as JSON, and a line with the signature of a
steward's key. Two writers never write one file with different anchors; of several anchors, the
newest counts. Next to them are copies of the entries, ``<first>-<last>-<hash>.entries``, encrypted:
with the newest anchor, they bring an older copy of the ledger up to date.
"""

from __future__ import annotations

import contextlib
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gramercy.archive.seal.signing import (
    ANCHOR,
    decrypt,
    encrypt,
    key_id,
    sign,
    signer,
    signing_key,
    steward_key,
)
from gramercy.archive.store.layout import ANCHORS
from gramercy.archive.store.storage import Store
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import ArchiveError
from gramercy.schemas.ledger_history import Anchor
from gramercy.schemas.model import canonical_json

_NAME = re.compile(ANCHORS + r"/([0-9a-f]{32})/([0-9]{12})-([0-9a-f]{64})\.json", re.ASCII)
COPY = re.compile(
    ANCHORS + r"/([0-9a-f]{32})/([0-9]{12})-([0-9]{12})-([0-9a-f]{64})\.entries", re.ASCII
)
_ATTEMPTS = 20


def write_anchor(store: Store, anchor: Anchor, keys: Path, *, keep: bool = False) -> None:
    """Sign and write an anchor; remove older ones where possible, unless they are to be kept."""
    content = _content(anchor)
    store.write(_name(anchor), content + b"\n" + sign(steward_key(keys), content, ANCHOR))
    if keep:
        return
    with contextlib.suppress(ArchiveError):
        for name in store.names(f"{ANCHORS}/{anchor.ledger}"):
            match = _NAME.fullmatch(name)
            if match and int(match[2]) < anchor.seq:
                store.remove(name)


def newest_anchor(store: Store, trusted: frozenset[str] = frozenset()) -> Anchor | None:
    """The newest anchor, or None before the first one is written."""
    for _ in range(_ATTEMPTS):
        anchors = _anchors(store)
        if not anchors:
            return None
        newest = newest_of(anchors, store.location())
        content = store.read(_name(newest))
        if content is not None:
            _verify(content, newest, store.location(_name(newest)), trusted)
            return newest
        # In the meantime, a newer anchor was written and this one removed.
    raise families.STORE(
        "{path} changes while it is read.",
        "Try again.",
        path=store.location(ANCHORS),
    )


def newest_of(anchors: Sequence[Anchor], location: str) -> Anchor:
    """The newest of the anchors at a place, at least one."""
    newest = max(anchors, key=lambda anchor: anchor.seq)
    path = f"{location}/{_name(newest)}"
    for anchor in anchors:
        if anchor.ledger != newest.ledger:
            raise families.ANCHOR(
                "{first} and {second} are anchors of two ledgers.",
                "Ask the curator which ledger is valid; other copies of the archive may show it.",
                first=f"{location}/{_name(anchor)}",
                second=path,
            )
        if anchor.seq == newest.seq and anchor.hash != newest.hash:
            raise families.ANCHOR(
                "{first} and {second} are anchors of the same ledger, which was forked.",
                "Ask the curator which ledger is valid; other copies of the archive may show it.",
                first=f"{location}/{_name(anchor)}",
                second=path,
            )
    return newest


def all_anchors(store: Store, trusted: frozenset[str] = frozenset()) -> list[Anchor]:
    """All anchors of a place that keeps them; they may contradict each other, see `newest_of`."""
    anchors = _anchors(store)
    for anchor in anchors:
        content = store.read(_name(anchor)) or b""
        _verify(content, anchor, store.location(_name(anchor)), trusted)
    return anchors


def _verify(content: bytes, anchor: Anchor, path: str, trusted: frozenset[str]) -> None:
    """Refuse an anchor that is not what its name says, or that no trusted key has signed."""
    stated, _, line = content.partition(b"\n")
    if stated != _content(anchor):
        raise families.ANCHOR(
            "{path}: the content contradicts the file name.",
            "Ask the curator which ledger is valid; other copies of the archive may show it.",
            path=path,
        )
    public = signer(line, stated, ANCHOR)
    if public is None:
        raise families.ANCHOR(
            "{path}: no key has signed the anchor.",
            "Ask the curator which ledger is valid; other copies of the archive may show it.",
            path=path,
        )
    if trusted and public not in trusted:
        raise wordings.untrusted_signer(path, key_id(public), tuple(sorted(map(key_id, trusted))))


def _anchors(store: Store) -> list[Anchor]:
    anchors = []
    for name in store.names(ANCHORS):
        if any(part.startswith(".") for part in name.split("/")[1:]):
            continue  # being written, or left by a writer that crashed
        if COPY.fullmatch(name):
            continue
        match = _NAME.fullmatch(name)
        if match is None or int(match[2]) == 0:
            raise families.ANCHOR(
                "{path} is not an anchor of a ledger.",
                "Remove it.",
                path=store.location(name),
            )
        anchors.append(Anchor(ledger=match[1], seq=int(match[2]), hash=match[3]))
    return anchors


def _name(anchor: Anchor) -> str:
    return f"{ANCHORS}/{anchor.ledger}/{anchor.seq:012d}-{anchor.hash}.json"


def _content(anchor: Anchor) -> bytes:
    return canonical_json(anchor.model_dump()).encode()


def copied_until(store: Store, ledger: str, hash_of: Callable[[int], str | None]) -> int:
    """The number of the last entry of which a place has a copy; 0 without any.

    Parameters
    ----------
    hash_of
        The hash of an entry by its number. Copies of other entries do not count: those of a ledger
        that was itself a copy.
    """
    found = map(COPY.fullmatch, store.names(f"{ANCHORS}/{ledger}"))
    ends = {(int(match[3]), match[4]) for match in found if match}
    return next((last for last, of in sorted(ends, reverse=True) if hash_of(last) == of), 0)


def write_copies(
    store: Store, ledger: str, copies: Sequence[Mapping[str, Any]], keys: Path
) -> None:
    """Write copies of consecutive entries, encrypted with a key that follows from the steward's."""
    first, last = copies[0]["seq"], copies[-1]["seq"]
    name = f"{ANCHORS}/{ledger}/{first:012d}-{last:012d}-{copies[-1]['hash']}.entries"
    lines = "\n".join(map(json.dumps, copies)).encode()
    store.write(name, encrypt(steward_key(keys), zlib.compress(lines), name))


def read_copies(store: Store, ledger: str, after: int, keys: Path) -> list[dict[str, Any]]:
    """Copies of entries after a number that the steward's key reads; some more than once."""
    key = signing_key(keys)
    copies: list[dict[str, Any]] = []
    if key is None:
        return copies
    for name in store.names(f"{ANCHORS}/{ledger}"):
        match = COPY.fullmatch(name)
        if match and int(match[3]) > after:
            lines = decrypt(key, store.read(name) or b"", name)
            if lines is not None:
                copies += map(json.loads, zlib.decompress(lines).decode().split("\n"))
    return copies
