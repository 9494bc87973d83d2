"""The same passes on a Dask cluster: workers sum partitions of the table, then a tree adds them.

Workers receive public constants and file names. Their exact sums are private and stay in memory
until the total is fetched; a cluster whose workers may spill to disk is refused. A worker
that fails returns only the type of the exception, or an error of Gramercy, which contains no
values. No noise is drawn on a worker.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import add
from typing import Any

from gramercy.common.machine import keep_freed_memory
from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError, RequestError
from gramercy.schemas.url import has_secrets
from gramercy.tables.formats.reader import partitions
from gramercy.tables.formats.source import Source
from gramercy.tables.persons.person_index import Persons
from gramercy.tables.sums.passes import Job, OnRows, ResultT


def _workers_may_spill() -> RequestError:
    return families.DASK(
        "key 'engine': workers of the Dask cluster may spill private data to disk.",
        "Start them with DASK_DISTRIBUTED__WORKER__MEMORY__TARGET=False and "
        "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL=False.",
    )


Client = Any  # Dask is imported late and has no type hints
Future = Any

_PARTITION_CELLS = 1 << 22  # smallest number of cells of a partition
_TIMEOUT = "10s"  # for the scheduler to answer


@dataclass(frozen=True)
class _Failure:
    """An error, returned by a worker."""

    error: GramercyError


@dataclass(frozen=True)
class Cluster:
    """An existing Dask cluster, as the engine of `tables.sums.streaming.accumulate` and others."""

    # address of its scheduler; None for the address in Dask's own configuration
    scheduler: str | None

    def __call__(self, source: Source, job: Job[ResultT], on_rows: OnRows) -> ResultT:
        """Do a job."""
        parts = partitions(source, _PARTITION_CELLS)
        finished = 0

        def on_partition() -> None:
            """Report an equal share of the rows: actual numbers are only available at the end."""
            nonlocal finished
            finished += 1
            rows, count = job.contract.rows, len(parts)
            on_rows(rows * finished // count - rows * (finished - 1) // count)

        job, persons, lost = replace(job, threads=1), None, False
        result: Any = None
        with _connect(self.scheduler) as client:
            for _ in range(job.passes - 1):
                measured = [_submit(client, measure, job, part, persons) for part in parts]
                persons = _tree_sum(client, measured, on_partition)
            results = [_submit(client, run, job, part, persons) for part in parts]
            total = _tree_sum(client, results, on_partition)
            try:
                result = client.gather(total)
            except Exception:  # messages of Dask may quote anything
                lost = True
            if lost:
                raise families.DASK_FAILED(
                    "The Dask cluster lost an intermediate result.",
                    "Look at the logs of the workers.",
                )
            if isinstance(result, _Failure):
                raise result.error
        total_of_all: ResultT = result
        return total_of_all


def measure(job: Job[Any], part: Source, persons: Persons | None) -> Persons:
    """A pass before the last, over one partition."""
    return job.measure(part, persons=persons)


def run(job: Job[ResultT], part: Source, persons: Persons | None) -> ResultT:
    """The only or the last pass, over one partition."""
    return job.run(part, persons)


def _run_on_worker(step: Callable[..., Any], *args: Any) -> Any:
    """Run a step on a worker. Errors are returned; Dask would log and send raised ones in full."""
    failure = next((arg for arg in args if isinstance(arg, _Failure)), None)
    if failure is not None:
        return failure
    keep_freed_memory()
    from distributed import get_worker

    try:
        if _may_spill(get_worker()):  # a worker that joined after the check
            return _Failure(_workers_may_spill())
        return step(*args)
    except GramercyError as error:
        return _Failure(error.without_history())
    except Exception as error:
        return _Failure(
            families.DASK_FAILED(
                "{step}: {error} on a Dask worker.",
                "Look at the logs of the workers.",
                step=step.__name__,
                error=type(error).__name__,
            )
        )


def _submit(client: Client, step: Callable[..., Any], *args: Any) -> Future:
    return client.submit(
        _run_on_worker, step, *args, pure=False
    )  # `pure` would derive keys from arguments


def _tree_sum(client: Client, leaves: Sequence[Future], on_partition: Callable[[], None]) -> Future:
    """The sum of all leaves, on the workers; neighbours are added first, to keep their order."""
    from distributed import as_completed

    for _ in as_completed(leaves, loop=client.loop):
        on_partition()
    level = list(leaves)
    while len(level) > 1:
        pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
        level = [_submit(client, add, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0]


@contextmanager
def _connect(scheduler: str | None) -> Iterator[Client]:
    try:
        import dask
        import distributed
    except ImportError:
        raise families.DASK(
            "key 'engine': Dask is not installed.", "Run pip install 'gramercy[dask]'."
        ) from None
    address = scheduler or dask.config.get("scheduler-address", None)
    if address is None:
        raise families.DASK(
            "key 'engine.scheduler': no address in the request or in Dask's configuration.",
            "Write the scheduler's address, such as tls://10.0.0.5:8786.",
        )
    address = str(address)
    if has_secrets(address):  # Dask writes it to logs
        raise families.DASK(
            "Dask's 'scheduler-address' must not contain a user, a password, a query or a "
            "fragment.",
            "Write an address such as tls://10.0.0.5:8786, and name certificates in Dask's "
            "configuration.",
        )
    client = None
    with contextlib.suppress(Exception):  # messages of Dask may quote anything
        client = distributed.Client(address, timeout=_TIMEOUT, set_as_default=False)
    if client is None:
        raise families.DASK(
            "key 'engine.scheduler': no Dask scheduler answers at {address}.",
            "Start the scheduler, or correct the address.",
            address=address,
        )
    with client:
        _check_workers(client)
        yield client


def _check_workers(client: Client) -> None:
    """Refuse workers with another version of Gramercy, or that may spill to disk."""
    try:
        statuses: dict[str, tuple[str | None, bool]] = client.run(_worker_status)
    except Exception:  # a worker has no Gramercy
        statuses = {"": (None, False)}
    if not statuses:
        raise families.DASK("key 'engine': the Dask cluster has no workers.", "Start some workers.")
    if {version for version, _ in statuses.values()} != {_version()}:
        raise families.DASK(
            "key 'engine': not all workers of the Dask cluster have Gramercy {version}.",
            "Install the same version on all of them.",
            version=_version(),
        )
    if any(may_spill for _, may_spill in statuses.values()):
        raise _workers_may_spill()


def _worker_status(dask_worker: Any) -> tuple[str | None, bool]:
    """A worker's version of Gramercy, and whether it may spill to disk."""
    return _version(), _may_spill(dask_worker)


def _may_spill(worker: Any) -> bool:
    return not isinstance(worker.data, dict)


def _version() -> str | None:
    try:
        return importlib.metadata.version("gramercy")
    except importlib.metadata.PackageNotFoundError:
        return None
