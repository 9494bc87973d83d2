"""Bundles: folders whose SHA256SUMS lists every file and is signed."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from gramercy.archive.seal import signing
from gramercy.archive.seal.signing import steward_key
from gramercy.common.disk import error_reason, make_durable
from gramercy.common.home import Home
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import BundleError
from gramercy.schemas.problem import Wording

_file_missing = Wording(
    families.SEAL, "{path} is missing.", "Fetch the bundle again from its curator."
)


_signature_missing = Wording(
    families.SEAL,
    "{path}: the signature is missing.",
    "Fetch the bundle again from its curator; every bundle has a signature.",
)


_file_changed = Wording(
    families.SEAL,
    "{path} was changed after the bundle was sealed.",
    "Fetch the bundle again from its curator.",
)


SUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"
_SUMS_BYTES, _SIGNATURE_BYTES = 1 << 20, 1 << 12  # a bundle has a few files for every fold
MOST_BYTES = 5 << 29  # the largest matrices and groups; hashing a larger file takes too long
ROWS = ("rows.parquet", "reports.parquet")  # as long as the table
SEAL = frozenset({SUMS, SIGNATURE})  # the two files of the seal; all other files are content


def seal(folder: Path, keys: Path | None = None) -> str:
    """Write SHA256SUMS, sign it, make everything durable and read-only.

    Parameters
    ----------
    keys
        Folder of the steward's key, which is created if missing; default: that of the home in use.
    """
    key = steward_key(keys or Home.default().keys)
    sums = "".join(f"{file_digest(folder / name)}  {name}\n" for name in content(folder)).encode()
    for name, data in {SUMS: sums, SIGNATURE: signing.sign(key, sums)}.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_bytes(data)
    for name in [*content(folder), *sorted(SEAL)]:
        make_durable(folder / name)
        (folder / name).chmod(0o444)
    make_durable(folder)
    return file_digest(folder / SUMS)


def check(folder: Path) -> str:
    """Verify every file of a bundle; returns the SHA-256 of SHA256SUMS."""
    if not folder.exists():
        raise _file_missing(str(folder))
    listed = sealed_digests(folder)
    present = set(content(folder))
    for name, expected in listed.items():
        if name not in present:
            raise _file_missing(str(folder / name))
        if file_digest(folder / name) != expected:
            raise _file_changed(str(folder / name))
    for name in sorted(present - listed.keys()):
        raise families.SEAL(
            "{path} was added after the bundle was sealed.",
            "Fetch the bundle again from its curator.",
            path=str(folder / name),
        )
    return file_digest(folder / SUMS)


def same_content(folder: Path, other: Path) -> bool:
    """Whether two bundles are intact and have the same content."""
    with contextlib.suppress(BundleError):
        return check(folder) == check(other)
    return False


def check_file(folder: Path, name: str) -> None:
    """Verify one file of a bundle, and the signed list of all files."""
    if sealed_digests(folder).get(name) != file_digest(folder / name):
        raise _file_changed(str(folder / name))


def signer(folder: Path) -> str:
    """The key that signed a bundle's SHA256SUMS, in hexadecimal; other files are not read."""
    sums = read_limited(folder / SUMS, _SUMS_BYTES)
    line = read_limited(folder / SIGNATURE, _SIGNATURE_BYTES, _signature_missing)
    if not signing.is_signature_line(line):
        raise _file_changed(str(folder / SIGNATURE))
    public_key = signing.signer(line, sums)
    if public_key is None:  # either file may have been changed
        raise families.SEAL(
            "{signature} is not a valid signature of {path}.",
            "Fetch the bundle again from its curator.",
            path=str(folder / SUMS),
            signature=SIGNATURE,
        )
    return public_key


def sealed_digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a bundle by name, from its signed SHA256SUMS."""
    signer(folder)
    digests: dict[str, str] = {}
    lines = read_limited(folder / SUMS, _SUMS_BYTES).decode("utf-8", "replace").split("\n")
    for line in lines[:-1]:
        digest, gap, name = line[:64], line[64:66], line[66:]
        if gap != "  " or not name or name in digests or name != Path(name).name:
            raise _file_changed(str(folder / SUMS))
        digests[name] = digest
    if not digests or lines[-1] or list(digests) != sorted(digests) or digests.keys() & SEAL:
        raise _file_changed(str(folder / SUMS))
    return digests


def content(folder: Path) -> list[str]:
    """Names of a bundle's files except its seal, sorted."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        raise families.SEAL(
            "{path} cannot be read.",
            "Check the path.",
            path=str(folder),
        ) from None
    for entry in entries:  # a link may lead out of the archive, and reading a pipe may never end
        if not entry.is_file(follow_symlinks=False):
            raise wordings.not_a_file(entry.path)
    return sorted(entry.name for entry in entries if entry.name not in SEAL)


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    try:
        _refuse_special_file(path)
        if path.stat().st_size > MOST_BYTES and path.name not in ROWS:
            raise wordings.bundle_file_too_large(str(path), MOST_BYTES)
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as caught:
        raise wordings.file_unreadable(str(path), error_reason(caught)) from None


def _refuse_special_file(path: Path) -> None:
    """Refuse a device or a pipe: reading it may never end."""
    if path.exists() and not path.is_file():
        raise wordings.not_a_file(str(path))


def read_limited(
    path: Path, most_bytes: int, missing: Callable[[str], BundleError] = _file_missing
) -> bytes:
    """The content of a small file, which a hostile archive may have replaced by a huge one."""
    try:
        _refuse_special_file(path)
        with path.open("rb") as stream:
            data = stream.read(most_bytes + 1)
    except OSError:
        raise missing(str(path)) from None
    if len(data) > most_bytes:
        raise wordings.bundle_file_too_large(str(path), most_bytes)
    return data
