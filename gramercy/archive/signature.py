"""Ed25519 signatures of bundles: what is signed, how it is written down, and who signed it."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# No signature that was made for another purpose can pass for one of a bundle.
_PURPOSE = b"gramercy bundle\n"
_LINE = re.compile(rb"ed25519 ([0-9a-f]{64}) ([0-9a-f]{128})\n")


def public_half(key: Ed25519PrivateKey) -> str:
    """The public key of a private one: 32 bytes, in hexadecimal."""
    return key.public_key().public_bytes_raw().hex()


def key_id(public: str) -> str:
    """The short name of a public key: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(bytes.fromhex(public)).hexdigest()[:16]


def sign(key: Ed25519PrivateKey, sums: bytes) -> bytes:
    """Sign a bundle's SHA256SUMS; the line that SHA256SUMS.sig holds."""
    return f"ed25519 {public_half(key)} {key.sign(_PURPOSE + sums).hex()}\n".encode()


def is_line(line: bytes) -> bool:
    """Whether this is what `sign` writes, whatever it signs."""
    return _LINE.fullmatch(line) is not None


def signer(line: bytes, sums: bytes) -> str | None:
    """The public key in a line, in hexadecimal; None unless the line is its signature of `sums`."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    found = _LINE.fullmatch(line)
    if found is None:
        return None
    public, signature = (bytes.fromhex(part.decode()) for part in found.groups())
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, _PURPOSE + sums)
    except (InvalidSignature, ValueError):
        return None
    return public.hex()
