"""Open an archive by its address: a folder, an HTTP address, or a URL that fsspec supports."""

from __future__ import annotations

import os
import urllib.parse
import urllib.request
from pathlib import Path

from gramercy.archive.seal.signing_keys import trusted_keys
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.http_store import SCHEMES, HttpStore
from gramercy.archive.store.listed_archive import ListedArchive
from gramercy.archive.store.mirrored_store import mirror_folder
from gramercy.archive.store.store import FolderStore, Store
from gramercy.archive.store.url_store import UrlStore, is_url
from gramercy.common.home import Home
from gramercy.schemas import families, wordings
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
    store = store_at(address)
    if isinstance(store, HttpStore):
        return ListedArchive(store, trusted, keys)
    return Archive(store, trusted, keys, None if store.is_folder else staging)


def store_at(address: str | Path) -> Store:
    """The store at a path or a URL; raises `RequestError` as `open_archive` does."""
    text = str(address)
    if not is_url(text):
        if has_secrets(text):
            raise wordings.not_an_address(without_secrets(text))
        return FolderStore(Path(address).expanduser())
    scheme = text.partition("://")[0].lower()
    if scheme in _LOCAL:
        parts = urllib.parse.urlsplit(text)
        if parts.netloc not in {"", "localhost"}:
            raise families.NOT_AN_ARCHIVE(
                "{url} names another machine; a file:// URL must name this one.",
                "Write file:///path.",
                url=without_secrets(text),
            )
        return FolderStore(Path(urllib.request.url2pathname(parts.path)))
    kind = HttpStore if scheme in SCHEMES else UrlStore
    store = kind(text, mirror_folder(text, os.getpid()))
    store.check_address()
    return store
