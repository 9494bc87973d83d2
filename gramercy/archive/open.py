"""Archives by their addresses: a folder, or a URL of any protocol that fsspec has a driver for."""

from __future__ import annotations

import os
import urllib.parse
import urllib.request
from pathlib import Path

from gramercy.archive.local import LocalArchive
from gramercy.archive.mirror import mirror_folder
from gramercy.archive.objects import Objects, is_url
from gramercy.archive.protocol import Archive
from gramercy.archive.remote import RemoteArchive
from gramercy.archive.signing_keys import trusted_keys
from gramercy.common.home import Home
from gramercy.schemas.errors import RequestError
from gramercy.schemas.url import has_secrets, without_secrets

_LOCAL = {"file", "local"}


def archive_of(home: Home, trusted: frozenset[str] | None = None) -> Archive:
    """The archive of a home.

    Parameters
    ----------
    home
        Its keys sign, and its ``archive`` folder or ``GRAMERCY_ARCHIVE_URL`` is opened.
    trusted
        See `Archive`; default: every public key in the home.

    Raises
    ------
    RequestError
        If ``GRAMERCY_ARCHIVE_URL`` is not the URL of an archive, or a public key is invalid.
    """
    return open_archive(
        home.archive_url or home.archive,
        trusted=trusted_keys(home.keys) if trusted is None else trusted,
        keys=home.keys,
        staged_in=home.staging,
    )


def open_archive(
    where: str | Path,
    *,
    trusted: frozenset[str] = frozenset(),
    keys: Path | None = None,
    staged_in: Path | None = None,
) -> Archive:
    """The archive at a path or a URL.

    Parameters
    ----------
    where
        The path or the URL.
    trusted, keys
        See `Archive`.
    staged_in
        Where bundles for a URL are made: a folder that outlives this process.

    Raises
    ------
    RequestError
        If the protocol of the URL is unknown, or its driver is not installed.
    """
    text = str(where)
    if not is_url(text):
        if has_secrets(text):
            raise RequestError(
                f"{without_secrets(text)}: is neither a folder nor a URL.",
                "Write a URL as s3://bucket/path.",
            )
        return LocalArchive(Path(where).expanduser(), trusted, keys)
    if text.partition("://")[0].lower() in _LOCAL:
        parts = urllib.parse.urlsplit(text)
        if parts.netloc not in {"", "localhost"}:
            raise RequestError(
                f"{without_secrets(text)}: names another machine.", "Write file:///path."
            )
        return LocalArchive(Path(urllib.request.url2pathname(parts.path)), trusted, keys)
    objects = Objects(text)
    objects.open()
    mirror = mirror_folder(text, os.getpid())
    return RemoteArchive(mirror, trusted, keys, objects=objects, staged_in=staged_in)
