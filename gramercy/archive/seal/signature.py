"""Ed25519 signatures of bundles and other files: signing, their format, and verification."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# Domain separation: a signature made for one purpose is never valid for another.
BUNDLE, ANCHOR = b"gramercy bundle\n", b"gramercy anchor\n"
LISTING = b"gramercy listing\n"
_LINE = re.compile(rb"ed25519 ([0-9a-f]{64}) ([0-9a-f]{128})\n")


def public_key_hex(key: Ed25519PrivateKey) -> str:
    """The public key that belongs to a private key: 32 bytes, in hexadecimal."""
    return key.public_key().public_bytes_raw().hex()


def key_id(public: str) -> str:
    """The short name of a public key: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(bytes.fromhex(public)).hexdigest()[:16]


def sign(key: Ed25519PrivateKey, data: bytes, purpose: bytes = BUNDLE) -> bytes:
    """The line that signs a bundle's SHA256SUMS, or other data for another purpose."""
    return f"ed25519 {public_key_hex(key)} {key.sign(purpose + data).hex()}\n".encode()


def is_signature_line(line: bytes) -> bool:
    """Whether a line has the format of a signature, which may be invalid."""
    return _LINE.fullmatch(line) is not None


def signer(line: bytes, data: bytes, purpose: bytes = BUNDLE) -> str | None:
    """The public key that signed data, in hexadecimal; None if the signature is not valid."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    match = _LINE.fullmatch(line)
    if match is None:
        return None
    public, signature = (bytes.fromhex(part.decode()) for part in match.groups())
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, purpose + data)
    except (InvalidSignature, ValueError):
        return None
    return public.hex()
