"""Seal an artifact of a release once, even if several processes ask for it.

The ledger records the digests of estimates and reports, so that an audit finds the missing ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gramercy.archive.seal.bundle import SUMS, file_digest
from gramercy.common.process_lock import file_lock
from gramercy.pipeline.context import Context
from gramercy.schemas.model import digest

_KINDS = {"estimates": "estimate", "reports": "report"}  # folders of bundles that are recorded


@contextmanager
def seal_once(context: Context, place: Path) -> Iterator[Path | None]:
    """Yield an empty folder, to seal and commit at `place`; or None if that bundle exists.

    An event may be delivered twice, and the command line may run at the same time as a worker: the
    second process waits for the first, and uses its result.
    """
    archive = context.archive
    name = ".".join(place.relative_to(archive.root).parts)
    if not archive.contains(place):  # what is committed never changes: no lock is needed then
        with file_lock(context.home.locks, name):
            if not archive.contains(place):  # another process may have held the lock
                with archive.staging(f"_{digest(name)[:16]}", sweep_first=True) as staged:
                    yield staged
                    archive.seal(staged)
                    archive.commit(staged, place)
                _record(context, place, replace=True)
                return
    archive.verify_signer(place)
    yield None
    _record(context, place, replace=False)


def _record(context: Context, place: Path, *, replace: bool) -> None:
    """Record the digest of an estimate or a report in the ledger that charged its release.

    A bundle that was sealed before is recorded if its process crashed before it could do so.
    """
    dataset, release, kind, *name = place.relative_to(context.archive.root).parts
    if context.existing_ledger is None or kind not in _KINDS:
        return
    ledger, sha256 = context.ledger, file_digest(place / SUMS)
    if ledger.record_derived(dataset, release, _KINDS[kind], name[0], sha256, replace=replace):
        context.record_head()
