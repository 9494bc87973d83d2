"""The steward's signing key, and the public keys by which others know what this home has signed."""

from __future__ import annotations

import contextlib
import datetime
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gramercy.archive.signature import key_id, public_half
from gramercy.common.disk import make_durable, replace, written_aside
from gramercy.schemas.errors import ArchiveError, RequestError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

STEWARD = "steward.pem"


@dataclass(frozen=True)
class PublicKey:
    """A public key of a home.

    Parameters
    ----------
    public
        Its 32 bytes, in hexadecimal.
    path
        The PEM file to hand to analysts.
    """

    public: str
    path: Path

    @property
    def id(self) -> str:
        """Its short name."""
        return key_id(self.public)

    @property
    def made(self) -> str:
        """The day on which its file was written, UTC."""
        return datetime.datetime.fromtimestamp(self.path.stat().st_mtime, datetime.UTC).strftime(
            "%Y-%m-%d"
        )


def steward_key(folder: Path) -> Ed25519PrivateKey:
    """The key that signs; made where there is none.

    Raises
    ------
    ArchiveError
        If others may read it, or it is no Ed25519 key, or the folder refuses.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    with _trouble(folder):
        key = _read_private(folder / STEWARD)
        if key is None:
            _make_folder(folder)
            made = _private_pem(Ed25519PrivateKey.generate())
            # Whoever comes second, in the same instant, takes the key of whoever came first.
            with (
                written_aside(folder / STEWARD, made, 0o600) as aside,
                contextlib.suppress(FileExistsError),
            ):
                os.link(aside, folder / STEWARD)
            make_durable(folder)
            key = _read_private(folder / STEWARD)
        if key is None:
            raise ArchiveError(f"{folder / STEWARD}: is gone.", "Something else removes it.")
        # Also where a process died between the two files.
        _publish(folder, key)
    return key


def new_key(folder: Path) -> PublicKey:
    """Make a fresh key that signs from now on; the old one is deleted, its public half is kept.

    Raises
    ------
    ArchiveError
        If the folder refuses.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    with _trouble(folder):
        _make_folder(folder)
        # One that others may read, or that is none, must be replaceable above all.
        with contextlib.suppress(ArchiveError):
            if old := _read_private(folder / STEWARD):
                _publish(folder, old)
        key = Ed25519PrivateKey.generate()
        # First, so that no key ever signs that is not known.
        made = _publish(folder, key)
        replace(folder / STEWARD, _private_pem(key), 0o600)
    return made


def known_keys(folder: Path) -> list[PublicKey]:
    """Every key this home ever had, and those of others that were put there; oldest first.

    Raises
    ------
    RequestError
        Naming a ``.pub`` file that is no public key.
    ArchiveError
        If the folder refuses.
    """
    names: list[str] = []
    with _trouble(folder):
        with contextlib.suppress(FileNotFoundError):
            names = sorted(os.listdir(folder))  # a glob of what may not be read is empty
        paths = [folder / name for name in names if name.endswith(".pub") and name[0] != "."]
        found = [PublicKey(read_public(path), path) for path in paths]
        return sorted(found, key=lambda each: each.path.stat().st_mtime)


def trusted_keys(folder: Path) -> frozenset[str]:
    """The public keys of a home, in hexadecimal; raises as `known_keys` does."""
    return frozenset(each.public for each in known_keys(folder))


def signing_key(folder: Path) -> str | None:
    """The public half of the key that signs, or None before there is one.

    Raises
    ------
    ArchiveError
        As `steward_key` does.
    """
    with _trouble(folder):
        key = _read_private(folder / STEWARD)
    return None if key is None else public_half(key)


def read_public(path: Path) -> str:
    """A public key from its PEM file, in hexadecimal.

    Raises
    ------
    RequestError
        If the file holds none.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    key = None
    with contextlib.suppress(OSError, ValueError, UnsupportedAlgorithm):
        key = load_pem_public_key(path.read_bytes())
    if not isinstance(key, Ed25519PublicKey):
        raise RequestError(
            f"{path}: is no Ed25519 public key in PEM.",
            "Ask the curator for it: 'gramercy keys' names its file.",
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
        raise ArchiveError(
            f"{path}: is a private key, and others may read it (mode {mode:o}).",
            f"Run 'chmod 600 {path}'; if anyone has read it, run 'gramercy keys new' as well.",
        )
    key = None
    with contextlib.suppress(ValueError, TypeError, UnsupportedAlgorithm):
        key = load_pem_private_key(data, password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ArchiveError(
            f"{path}: is no Ed25519 private key.",
            "Restore it from a copy, or run 'gramercy keys new'.",
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
    """Write the public half beside the private one, unless it is there."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = public_half(key)
    path = folder / f"{key_id(public)}.pub"
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    if not path.exists():
        replace(path, pem)
    return PublicKey(public, path)


def _make_folder(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


@contextlib.contextmanager
def _trouble(folder: Path) -> Iterator[None]:
    reason = ""
    try:
        yield
    except OSError as caught:
        reason = os.strerror(caught.errno) if caught.errno else type(caught).__name__
    if reason:
        raise ArchiveError(
            f"{folder}: cannot be used for keys ({reason}).", "Make room, or make it writable."
        )
