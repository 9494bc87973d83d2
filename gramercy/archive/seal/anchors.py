"""Signed anchors of the ledger outside of it, and encrypted copies of its entries.

Each anchored entry has two files, ``.ledger/<ledger>/<part>/<seq>-<hash>``. ``.json`` has the
anchor and the signature of a steward's key: two writers never write one file with different
anchors, and of several, the newest counts. ``.entries`` has copies of the entries until it, since
another such file: with the newest anchor, they bring an older copy of the ledger up to date.
``.settled`` is like the anchor: another copy of the ledger has charged again what it states.

Only the newest parts are listed, so that it takes the same time after any number of charges.
"""

from __future__ import annotations

import contextlib
import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gramercy.archive.seal.signing import ANCHOR, SETTLED, key_id, sign, signer, steward_key
from gramercy.archive.store.layout import ANCHORS
from gramercy.archive.store.storage import Store
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import ArchiveError
from gramercy.schemas.ledger_history import Anchor
from gramercy.schemas.model import canonical_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

_LEDGER, _PART = re.compile(r"[0-9a-f]{32}", re.ASCII), re.compile(r"[0-9]{10}", re.ASCII)
_NAME = re.compile(  # without a part until version 0.2
    rf"{ANCHORS}/({_LEDGER.pattern})/(?:{_PART.pattern}/)?([0-9]{{12}})-([0-9a-f]{{64}})"
    r"\.(json|entries|settled)",
    re.ASCII,
)
_ENTRIES = 100  # whose files are in one part
_NEWEST_PARTS = 2  # copies of a ledger that charge at the same time differ in fewer entries
_ATTEMPTS = 20
_NONCE = 12  # bytes


def write_anchor(store: Store, anchor: Anchor, keys: Path) -> None:
    """Sign and write an anchor."""
    content = _content(anchor)
    store.write(_name(anchor), content + b"\n" + sign(steward_key(keys), content, ANCHOR))


def settle_anchor(store: Store, anchor: Anchor, keys: Path) -> None:
    """State that an anchor of another copy of the ledger does not count any more."""
    content = _content(anchor)
    signature = sign(steward_key(keys), content, SETTLED)
    store.write(_name(anchor, "settled"), content + b"\n" + signature)


def remove_anchors(store: Store, anchors: Mapping[str, Anchor], until: int) -> None:
    """Remove anchors of entries before a number, where the store allows it."""
    with contextlib.suppress(ArchiveError):
        for name, anchor in anchors.items():
            if anchor.seq < until:
                store.remove(name)


def recent_anchors(store: Store, trusted: frozenset[str] = frozenset()) -> dict[str, Anchor]:
    """The anchors of the last entries by their names, the newest last, whose signature is valid.

    Empty before the first one is written.
    """
    for _ in range(_ATTEMPTS):
        anchors = _anchors(store, _recent_names(store), trusted)
        if not anchors:
            return {}
        newest = newest_of([*anchors.values()], store.location())
        name = next(name for name, each in anchors.items() if each == newest)
        content = store.read(name)
        if content is not None:
            _verify(content, newest, store.location(name), trusted)
            return anchors
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


def all_anchors(
    store: Store, trusted: frozenset[str] = frozenset(), *, recent: bool = False
) -> list[Anchor]:
    """All anchors of a place that keeps them, or of the last entries, the newest last.

    They may contradict each other, see `newest_of`.
    """
    names = _recent_names(store) if recent else store.names(ANCHORS)
    anchors = _anchors(store, names, trusted)
    for name, anchor in anchors.items():
        _verify(store.read(name) or b"", anchor, store.location(name), trusted)
    return [*anchors.values()]


def _verify(
    content: bytes, anchor: Anchor, path: str, trusted: frozenset[str], purpose: bytes = ANCHOR
) -> None:
    """Refuse an anchor that is not what its name says, or that no trusted key has signed."""
    stated, _, line = content.partition(b"\n")
    if stated != _content(anchor):
        raise families.ANCHOR(
            "{path}: the content contradicts the file name.",
            "Ask the curator which ledger is valid; other copies of the archive may show it.",
            path=path,
        )
    public = signer(line, stated, purpose)
    if public is None:
        raise families.ANCHOR(
            "{path}: no key has signed the anchor.",
            "Ask the curator which ledger is valid; other copies of the archive may show it.",
            path=path,
        )
    if trusted and public not in trusted:
        raise wordings.untrusted_signer(path, key_id(public), tuple(sorted(map(key_id, trusted))))


def _recent_names(store: Store) -> list[str]:
    """The names in the newest parts, and those without a part."""
    names = []
    for ledger in store.children(ANCHORS):
        folder = f"{ANCHORS}/{ledger}"
        if not _LEDGER.fullmatch(ledger):
            names.append(folder)
            continue
        inside = store.children(folder)
        parts = sorted(filter(_PART.fullmatch, inside))
        names += [f"{folder}/{each}" for each in inside.difference(parts)]
        for part in parts[-_NEWEST_PARTS:]:
            names += [f"{folder}/{part}/{each}" for each in store.children(f"{folder}/{part}")]
    return names


def _anchors(store: Store, names: Iterable[str], trusted: frozenset[str]) -> dict[str, Anchor]:
    """The anchors of these names that are not settled, the newest last."""
    anchors, settled = {}, list[Anchor]()
    for name in names:
        if any(part.startswith(".") for part in name.split("/")[1:]):
            continue  # being written, or left by a writer that crashed
        match = _NAME.fullmatch(name)
        if match is None or int(match[2]) == 0:
            raise families.ANCHOR(
                "{path} is not an anchor of a ledger.",
                "Remove it.",
                path=store.location(name),
            )
        anchor = Anchor(ledger=match[1], seq=int(match[2]), hash=match[3])
        if match[4] == "json":
            anchors[name] = anchor
        elif match[4] == "settled":
            _verify(store.read(name) or b"", anchor, store.location(name), trusted, SETTLED)
            settled.append(anchor)
    left = ((name, each) for name, each in anchors.items() if each not in settled)
    return dict(sorted(left, key=lambda item: item[1].seq))


def _name(anchor: Anchor, kind: str = "json") -> str:
    part = anchor.seq // _ENTRIES
    return f"{ANCHORS}/{anchor.ledger}/{part:010d}/{anchor.seq:012d}-{anchor.hash}.{kind}"


def _content(anchor: Anchor) -> bytes:
    return canonical_json(anchor.model_dump()).encode()


def recent_copies(store: Store, ledger: str) -> list[tuple[int, str]]:
    """Number and hash of the last entries until which a place has copies, the newest first."""
    found = filter(None, map(_NAME.fullmatch, _recent_names(store)))
    copies = (each for each in found if each[1] == ledger and each[4] == "entries")
    return sorted(((int(each[2]), each[3]) for each in copies), reverse=True)


def write_copies(
    store: Store, until: Anchor, copies: Sequence[Mapping[str, Any]], secret: bytes
) -> None:
    """Write copies of consecutive entries, the last of which an anchor will state.

    `secret`: of the ledger; anyone who has a copy of it can read those of its later entries.
    """
    name = _name(until, "entries")
    lines, cipher = "\n".join(map(json.dumps, copies)).encode(), _cipher(secret, name)
    nonce = cipher.generate_key()[:_NONCE]  # random
    store.write(name, nonce + cipher.encrypt(nonce, zlib.compress(lines), None))


def read_copies(store: Store, until: Anchor, secret: bytes) -> list[dict[str, Any]]:
    """The copies until an entry; none if there are none that the secret reads."""
    from cryptography.exceptions import InvalidTag

    name = _name(until, "entries")
    content = store.read(name) or b""
    with contextlib.suppress(InvalidTag, ValueError):
        lines = _cipher(secret, name).decrypt(content[:_NONCE], content[_NONCE:], None)
        return [*map(json.loads, zlib.decompress(lines).decode().split("\n"))]
    return []


def _cipher(secret: bytes, name: str) -> ChaCha20Poly1305:
    """A cipher for the file of this name alone: its key is derived by HKDF (RFC 5869)."""
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return ChaCha20Poly1305(HKDF(SHA256(), 32, salt=None, info=name.encode()).derive(secret))
