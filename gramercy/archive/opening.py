"""Open an archive by its address: a folder, an HTTP address, or a URL that fsspec supports."""

from __future__ import annotations

import os
import urllib.parse
import urllib.request
from pathlib import Path

from gramercy.archive.http_archive import HttpArchive
from gramercy.archive.http_files import SCHEMES, HttpFiles
from gramercy.archive.local import LocalArchive
from gramercy.archive.mirror import mirror_folder
from gramercy.archive.object_store import ObjectStore, is_url
from gramercy.archive.protocol import Archive
from gramercy.archive.remote import RemoteArchive
from gramercy.archive.signing_keys import trusted_keys
from gramercy.common.home import Home
from gramercy.schemas.problems.archive import file_url_of_another_machine, not_an_address
from gramercy.schemas.url import has_secrets, without_secrets

_LOCAL = {"file", "local"}


def archive_of(home: Home, trusted: frozenset[str] | None = None) -> Archive:
    """The archive of a home.

    Parameters
    ----------
    home
        The home whose keys sign, and whose ``archive`` folder or ``GRAMERCY_ARCHIVE_URL`` is
        opened.
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
        staging=home.staging,
    )


def open_archive(
    address: str | Path,
    *,
    trusted: frozenset[str] = frozenset(),
    keys: Path | None = None,
    staging: Path | None = None,
) -> Archive:
    """The archive at a path or a URL.

    Parameters
    ----------
    address
        The path or the URL.
    trusted, keys
        See `Archive`.
    staging
        The folder in which bundles for a URL are staged; it should outlive this process.

    Raises
    ------
    RequestError
        If the URL is not supported, or its driver is not installed.
    """
    text = str(address)
    if not is_url(text):
        if has_secrets(text):
            raise not_an_address(without_secrets(text))
        return LocalArchive(Path(address).expanduser(), trusted, keys)
    if text.partition("://")[0].lower() in _LOCAL:
        parts = urllib.parse.urlsplit(text)
        if parts.netloc not in {"", "localhost"}:
            raise file_url_of_another_machine(without_secrets(text))
        return LocalArchive(Path(urllib.request.url2pathname(parts.path)), trusted, keys)
    if text.partition("://")[0].lower() in SCHEMES:
        files = HttpFiles(text)
        files.check_address()
        return HttpArchive(mirror_folder(text, os.getpid()), trusted, keys, files=files)
    objects = ObjectStore(text)
    objects.check_driver()
    mirror = mirror_folder(text, os.getpid())
    return RemoteArchive(mirror, trusted, keys, objects=objects, staging_folder=staging)
