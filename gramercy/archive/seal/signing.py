"""Ed25519 signatures of bundles and other files; the steward's key, and the trusted public keys."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gramercy.common.disk import make_durable, make_folder, sweep, temporary_file, write_atomically
from gramercy.schemas import families
from gramercy.schemas.errors import ArchiveError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
import hashlib
import re

STEWARD = "steward.pem"


@dataclass(frozen=True)
class PublicKey:
    """A public key of a home."""

    public: str  # the 32 bytes of the key, in hexadecimal
    path: Path  # the PEM file to hand to analysts

    @property
    def id(self) -> str:
        """Short name of the key."""
        return key_id(self.public)


def steward_key(folder: Path) -> Ed25519PrivateKey:
    """The private key that signs bundles; created if missing."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    with _folder_errors(folder):
        sweep(folder)  # a crash may have left a second copy of the key
        key = _read_private(folder / STEWARD)
        if key is None:
            make_folder(folder, 0o700)
            pem = _private_pem(Ed25519PrivateKey.generate())
            # If several processes create a key at the same time, all use the first one.
            with (
                temporary_file(folder / STEWARD, pem, 0o600) as temporary,
                contextlib.suppress(FileExistsError),
            ):
                os.link(temporary, folder / STEWARD)
            make_durable(folder)
            key = _read_private(folder / STEWARD)
        if key is None:
            raise families.PRIVATE_KEY(
                "{path} disappeared after it was created.",
                "Find out which program removes it.",
                path=str(folder / STEWARD),
            )
        # Even if the key exists: a process may have crashed between writing the two files.
        _publish(folder, key)
    return key


def create_signing_key(folder: Path) -> PublicKey:
    """Create the key that signs from now on; the old one is deleted, its public key is kept."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    with _folder_errors(folder):
        make_folder(folder, 0o700)
        sweep(folder)  # no copy of the old key may remain
        # An exposed or damaged key must be replaceable as well.
        with contextlib.suppress(ArchiveError):
            if old := _read_private(folder / STEWARD):
                _publish(folder, old)
        key = Ed25519PrivateKey.generate()
        # Published first: a key whose public key is not recorded must never sign.
        public_key = _publish(folder, key)
        write_atomically(folder / STEWARD, _private_pem(key), 0o600)
    return public_key


def public_keys(folder: Path) -> list[PublicKey]:
    """All public keys in a home: its own, past and present, and those added to it; oldest first."""
    names: list[str] = []
    with _folder_errors(folder):
        with contextlib.suppress(FileNotFoundError):
            names = sorted(os.listdir(folder))  # unlike glob, fails if the folder is unreadable
        paths = [folder / name for name in names if name.endswith(".pub") and name[0] != "."]
        keys = [PublicKey(read_public_key(path), path) for path in paths]
        return sorted(keys, key=lambda key: key.path.stat().st_mtime)


def trusted_keys(folder: Path) -> frozenset[str]:
    """The public keys of a home, in hexadecimal; raises as `public_keys` does."""
    return frozenset(key.public for key in public_keys(folder))


def signing_key(folder: Path) -> Ed25519PrivateKey | None:
    """The private key that signs bundles, or None before it is created."""
    with _folder_errors(folder):
        return _read_private(folder / STEWARD)


def signing_public_key(folder: Path) -> str | None:
    """The public key of the signing key in hexadecimal, or None before it is created."""
    key = signing_key(folder)
    return None if key is None else public_key_hex(key)


def read_public_key(path: Path) -> str:
    """A public key from its PEM file, in hexadecimal."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    if not path.exists():
        raise families.KEY_FILE(
            "{path} does not exist.",
            "Give the path of a curator's public key.",
            path=str(path),
        )
    key = None
    with contextlib.suppress(OSError, ValueError, UnsupportedAlgorithm):
        key = load_pem_public_key(path.read_bytes())
    if not isinstance(key, Ed25519PublicKey):
        raise families.KEY_FILE(
            "{path} is not an Ed25519 public key in PEM format.",
            "Ask the curator for it: 'gramercy keys' names its file.",
            path=str(path),
        )
    return key.public_bytes_raw().hex()


def _read_private(path: Path) -> Ed25519PrivateKey | None:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        with path.open("rb") as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            data = stream.read()
    except FileNotFoundError:
        return None
    if mode & 0o077:
        raise families.PRIVATE_KEY(
            "{path} is a private key that other users may read (mode {mode}).",
            "Run 'chmod 600 {path}'; if anyone has read it, also run 'gramercy keys new'.",
            path=str(path),
            mode=f"{mode:o}",
        )
    key = None
    with contextlib.suppress(ValueError, TypeError, UnsupportedAlgorithm):
        key = load_pem_private_key(data, password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise families.PRIVATE_KEY(
            "{path} is not an Ed25519 private key.",
            "Restore it from a backup, or run 'gramercy keys new'.",
            path=str(path),
        )
    return key


def _private_pem(key: Ed25519PrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _publish(folder: Path, key: Ed25519PrivateKey) -> PublicKey:
    """Write the public key next to the private one, unless it exists."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = public_key_hex(key)
    path = folder / f"{key_id(public)}.pub"
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    if not path.exists():
        write_atomically(path, pem)
    return PublicKey(public, path)


@contextlib.contextmanager
def _folder_errors(folder: Path) -> Iterator[None]:
    """Turn an OSError into an ArchiveError that names the folder."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        raise families.PRIVATE_KEY(
            "{folder}: cannot use the folder for keys ({reason}).",
            "Free disk space, or make the folder writable.",
            folder=str(folder),
            reason=reason,
        ) from None


# Domain separation: a signature made for one purpose is never valid for another.
BUNDLE, ANCHOR = b"gramercy bundle\n", b"gramercy anchor\n"
LISTING, APPROVAL = b"gramercy listing\n", b"gramercy approval\n"
SETTLED = b"gramercy settled anchor\n"
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
