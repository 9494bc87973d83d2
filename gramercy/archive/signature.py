"""Ed25519 signatures of bundles: signing, the format of SHA256SUMS.sig, and verification."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# Domain separation: a signature made for another purpose is never valid for a bundle.
_PURPOSE = b"gramercy bundle\n"
_LINE = re.compile(rb"ed25519 ([0-9a-f]{64}) ([0-9a-f]{128})\n")


def public_key_hex(key: Ed25519PrivateKey) -> str:
    """The public key that belongs to a private key: 32 bytes, in hexadecimal."""
    return key.public_key().public_bytes_raw().hex()


def key_id(public: str) -> str:
    """The short name of a public key: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(bytes.fromhex(public)).hexdigest()[:16]


def sign(key: Ed25519PrivateKey, sums: bytes) -> bytes:
    """Sign a bundle's SHA256SUMS; returns the content of SHA256SUMS.sig."""
    return f"ed25519 {public_key_hex(key)} {key.sign(_PURPOSE + sums).hex()}\n".encode()


def is_signature_line(line: bytes) -> bool:
    """Whether a line has the format of SHA256SUMS.sig; the signature may be invalid."""
    return _LINE.fullmatch(line) is not None


def signer(line: bytes, sums: bytes) -> str | None:
    """The public key that signed `sums`, in hexadecimal; None if the signature is not valid."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    match = _LINE.fullmatch(line)
    if match is None:
        return None
    public, signature = (bytes.fromhex(part.decode()) for part in match.groups())
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, _PURPOSE + sums)
    except (InvalidSignature, ValueError):
        return None
    return public.hex()
