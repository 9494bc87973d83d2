"""The archive that the options ``--archive`` and ``--key`` of a command name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gramercy.archive.seal.signing import read_public_key
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.opening import open_archive
from gramercy.pipeline.context import Context


def archive_of_options(
    context: Context, address: str | None, keys: Sequence[Path] | None
) -> Archive:
    """The archive at an address, or that of the home; with the given keys as the trusted ones.

    Raises
    ------
    RequestError
        If the address is not that of an archive, or a file does not contain a public key.
    ArchiveError
        If the archive cannot be reached.
    """
    archive = context.archive if address is None else open_archive(address)
    if keys:
        archive = replace(archive, trusted=frozenset(map(read_public_key, keys)))
    if address is not None:
        archive.check_exists()
    return archive
