"""Committing a bundle whose publication was interrupted between seal and commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gramercy.archive.bundle import SEAL, check, content
from gramercy.archive.folder_lock import try_lock
from gramercy.archive.protocol import Archive
from gramercy.archive.staging import staged_folder
from gramercy.common.disk import disk_errors, link_or_copy, make_durable
from gramercy.schemas.errors import ArchiveError, BundleError


def commit_leftover(
    archive: Archive,
    owner: str,
    digest: str,
    place: Path,
    confirm: Callable[[], None] | None = None,
) -> None:
    """Commit a bundle that was sealed and not committed, if the staging area has it.

    If its owner still works on it, a copy is committed; the owner then finds its own content in
    place.

    Parameters
    ----------
    archive
        The archive whose staging area is searched.
    owner, digest
        See `Archive.sealed_leftover`.
    place, confirm
        See `Archive.commit`.

    Raises
    ------
    ArchiveError
        As `Archive.commit` does.
    """
    leftover = archive.sealed_leftover(owner, digest)
    if leftover is None:
        return
    try:
        with disk_errors(archive.root), try_lock(staged_folder(leftover)) as abandoned:
            if abandoned:
                archive.commit(leftover, place, confirm)
                return
        with archive.staging(owner) as copy:
            for name in (*content(leftover), *sorted(SEAL)):
                link_or_copy(leftover / name, copy / name)
                make_durable(copy / name)
            make_durable(copy)
            check(copy)
            archive.commit(copy, place, confirm)
    except (ArchiveError, BundleError):
        if leftover.exists() or not archive.contains(
            place
        ):  # otherwise its owner has committed it in the meantime
            raise
