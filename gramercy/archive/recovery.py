"""Finishing what was interrupted between the seal and the commit, with the very same bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gramercy.archive.bundle import SEAL, check, content
from gramercy.archive.held import held
from gramercy.archive.protocol import Archive
from gramercy.archive.staging import unkept
from gramercy.common.disk import disk_errors, linked, make_durable
from gramercy.schemas.errors import ArchiveError, BundleError


def commit_leftover(
    archive: Archive,
    owner: str,
    digest: str,
    place: Path,
    confirm: Callable[[], None] | None = None,
) -> None:
    """Commit a bundle that was sealed and not committed, if the staging area has it.

    If its owner is still at work on it, a copy is committed; the owner then finds its own content
    in place.

    Parameters
    ----------
    archive
        The archive in whose staging area it may be.
    owner, digest
        See `Archive.sealed_leftover`.
    place, confirm
        See `Archive.commit`, which this raises as.
    """
    left = archive.sealed_leftover(owner, digest)
    if left is None:
        return
    try:
        with disk_errors(archive.root), held(unkept(left)) as abandoned:
            if abandoned:
                archive.commit(left, place, confirm)
                return
        with archive.staging(owner) as copy:
            for name in (*content(left), *sorted(SEAL)):
                linked(left / name, copy / name)
                make_durable(copy / name)
            make_durable(copy)
            check(copy)
            archive.commit(copy, place, confirm)
    except (ArchiveError, BundleError):
        if left.exists() or not archive.holds(place):  # else its owner was faster
            raise
