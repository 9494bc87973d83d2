"""Seal an artifact of a release once, even if several processes ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gramercy.application.context import Context
from gramercy.common.process_lock import file_lock
from gramercy.schemas.model import digest


@contextmanager
def seal_once(context: Context, place: Path) -> Iterator[Path | None]:
    """Yield an empty folder, to seal and commit at `place`; or None if that bundle exists.

    An event may be delivered twice, and the command line may run at the same time as a worker: the
    second process waits for the first, and uses its result.
    """
    archive = context.archive
    if archive.contains(place):
        yield None
        return
    name = ".".join(place.relative_to(archive.root).parts)
    with file_lock(context.home.locks, name):
        if archive.contains(place):
            yield None
            return
        with archive.staging(f"_{digest(name)[:16]}", sweep_first=True) as staged:
            yield staged
            archive.seal(staged)
            archive.commit(staged, place)
