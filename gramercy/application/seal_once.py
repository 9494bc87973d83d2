"""What is sealed beside a release, once, however often and by however many it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gramercy.application.context import Context
from gramercy.common.process_lock import on_this_machine
from gramercy.schemas.model import digest


@contextmanager
def sealed_once(context: Context, place: Path) -> Iterator[Path | None]:
    """An empty folder that is sealed and committed at `place`, or None if something lies there.

    An event may be delivered twice, and the command line may run beside a worker: whoever comes
    second waits for the first, and finds its work.
    """
    archive = context.archive
    if archive.holds(place):
        yield None
        return
    name = ".".join(place.relative_to(archive.root).parts)
    with on_this_machine(context.home.locks, name):
        if archive.holds(place):
            yield None
            return
        with archive.staging(f"_{digest(name)[:16]}", alone=True) as staged:
            yield staged
            archive.seal(staged)
            archive.commit(staged, place)
