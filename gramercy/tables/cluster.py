"""The same passes on a Dask cluster: pieces of the table to workers, their sums as a tree.

Workers are sent public constants and file names. What they come to, exact sums that are private,
stays in their memory until the last of them is fetched; a cluster whose workers may write what they
hold to disk is refused. Nothing that fails there comes back but the name of its type, or an error
of ours, which holds no value. No noise is drawn there.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import add
from typing import Any

from gramercy.schemas.errors import GramercyError, RequestError, StepFailed
from gramercy.schemas.url import has_secrets
from gramercy.tables.passes import Job, OnRows, Partial, measured, summed
from gramercy.tables.read import pieces
from gramercy.tables.source import Source

Client = Any  # Dask's own, which are imported where they are used, and have no types
Future = Any

_PIECE = 1 << 22  # cells, at least
_PATIENCE = "10s"  # for the scheduler to answer
_NO_DISK = "DASK_DISTRIBUTED__WORKER__MEMORY__"


@dataclass(frozen=True)
class _Failed:
    """An error, as it may leave a worker."""

    error: GramercyError


@dataclass(frozen=True)
class Cluster:
    """An existing Dask cluster.

    Parameters
    ----------
    scheduler
        Its address; None for the one that Dask's own configuration names.
    """

    scheduler: str | None

    def __call__(self, source: Source, job: Job, on_rows: OnRows) -> Partial:
        """The sum of a table.

        Raises
        ------
        RequestError
            If the cluster cannot be used.
        TableError
            As `tables.streaming.accumulate`.
        """
        parts = pieces(source, _PIECE)
        told = 0

        def on_piece() -> None:
            """All alike, for the bar: how many rows one had is known at the end."""
            nonlocal told
            told += 1
            of = job.contract.rows
            on_rows(of * told // len(parts) - of * (told - 1) // len(parts))

        return _summed(self.scheduler, parts, replace(job, threads=1), on_piece)


def _summed(
    scheduler: str | None, parts: Sequence[Source], job: Job, on_piece: Callable[[], None]
) -> Partial:
    with _client(scheduler) as client:
        persons = None
        if job.contract.owner is not None:
            firsts = [_submit(client, measured, piece, job) for piece in parts]
            persons = _tree(client, firsts, on_piece)
        seconds = [_submit(client, summed, piece, job, persons) for piece in parts]
        total: Partial = _fetched(client, _tree(client, seconds, on_piece))
    return total


def _guarded(step: Callable[..., Any], *given: Any) -> Any:
    """Run by a worker: nothing is raised there, where it would be logged and sent as it is."""
    failed = next((each for each in given if isinstance(each, _Failed)), None)
    if failed is not None:
        return failed
    from distributed import get_worker

    try:
        if _may_write(get_worker()):  # one that came after all had been asked
            return _Failed(_on_disk())
        return step(*given)
    except GramercyError as known:
        return _Failed(type(known)(str(known)))
    except Exception as unknown:
        return _Failed(StepFailed(f"{step.__name__}: {type(unknown).__name__} on a worker."))


def _submit(client: Client, step: Callable[..., Any], *given: Any) -> Future:
    return client.submit(_guarded, step, *given, pure=False)  # under a name that says nothing


def _tree(client: Client, leaves: Sequence[Future], on_piece: Callable[[], None]) -> Future:
    """The sum of all, neighbours first, so that their order stays; where they are."""
    from distributed import as_completed

    for _ in as_completed(leaves, loop=client.loop):  # type: ignore[no-untyped-call]
        on_piece()
    level = list(leaves)
    while len(level) > 1:
        pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
        level = [_submit(client, add, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0]


def _fetched(client: Client, future: Future) -> Any:
    found, lost = None, False
    try:
        found = client.gather(future)
    except Exception:  # what Dask has to say of it may quote anything
        lost = True
    if lost:
        raise StepFailed("The cluster lost what it had summed up.", "Look at its workers' logs.")
    if isinstance(found, _Failed):
        raise found.error
    return found


@contextmanager
def _client(scheduler: str | None) -> Iterator[Client]:
    try:
        import dask
        import distributed
    except ImportError:
        raise RequestError(
            "key 'engine': Dask is not installed.", "Install 'gramercy[dask]'."
        ) from None
    address = scheduler or dask.config.get("scheduler-address", None)
    if address is None:
        raise RequestError(
            "key 'engine.scheduler': no address is given, nor does Dask's configuration name one.",
            "Write the scheduler's, such as tls://10.0.0.5:8786.",
        )
    address = str(address)
    if has_secrets(address):  # Dask itself would write it into logs
        raise RequestError(
            "Dask's 'scheduler-address': must not hold a user, a password, a query or a fragment.",
            "Write it such as tls://10.0.0.5:8786, and name certificates in Dask's configuration.",
        )
    client = None
    with contextlib.suppress(Exception):  # what Dask and its transports say may quote anything
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]
    if client is None:
        raise RequestError(
            f"key 'engine.scheduler': no Dask scheduler answers at {address}.",
            "Start it, or correct the address.",
        )
    with client:
        _check(client)
        yield client


def _check(client: Client) -> None:
    """Refuse workers of another Gramercy, and those that may write what they hold to disk."""
    try:
        found: dict[str, tuple[str | None, bool]] = client.run(_of_worker)
    except Exception:  # they have no Gramercy
        found = {"": (None, False)}
    if not found:
        raise RequestError("key 'engine': the Dask cluster has no workers.", "Start some.")
    if {version for version, _ in found.values()} != {_version()}:
        raise RequestError(
            f"key 'engine': not all workers of the Dask cluster have Gramercy {_version()}.",
            "Install the same version on all of them.",
        )
    if any(writes for _, writes in found.values()):
        raise _on_disk()


def _on_disk() -> RequestError:
    return RequestError(
        "key 'engine': workers of the Dask cluster may write to disk what they hold in memory, "
        "which is private.",
        f"Start them with {_NO_DISK}TARGET=False and {_NO_DISK}SPILL=False.",
    )


def _of_worker(dask_worker: Any) -> tuple[str | None, bool]:
    return _version(), _may_write(dask_worker)


def _may_write(worker: Any) -> bool:
    return not isinstance(worker.data, dict)


def _version() -> str | None:
    try:
        return importlib.metadata.version("gramercy")
    except importlib.metadata.PackageNotFoundError:
        return None
