"""Reading the private table on a Dask cluster: codes 260 to 279."""

from __future__ import annotations

from gramercy.schemas.errors import RequestError, StepFailed
from gramercy.schemas.problem import problem


@problem(
    "GRM-260",
    RequestError,
    "key 'engine': Dask is not installed.",
    "Run pip install 'gramercy[dask]'.",
)
def dask_missing() -> None:
    """The request reads the table on a Dask cluster, which needs one more extra."""


@problem(
    "GRM-261",
    RequestError,
    "key 'engine.scheduler': no address in the request or in Dask's configuration.",
    "Write the scheduler's address, such as tls://10.0.0.5:8786.",
)
def scheduler_missing() -> None:
    """Neither the request nor Dask's configuration states where the scheduler is."""


@problem(
    "GRM-262",
    RequestError,
    "Dask's 'scheduler-address' must not contain a user, a password, a query or a fragment.",
    "Write an address such as tls://10.0.0.5:8786, and name certificates in Dask's configuration.",
)
def scheduler_with_secrets() -> None:
    """Dask writes the address of its scheduler to logs, so it must not contain a secret."""


@problem(
    "GRM-263",
    RequestError,
    "key 'engine.scheduler': no Dask scheduler answers at {address}.",
    "Start the scheduler, or correct the address.",
)
def scheduler_unreachable(address: str) -> None:
    """The Dask scheduler does not run, or cannot be reached from this machine."""


@problem(
    "GRM-264", RequestError, "key 'engine': the Dask cluster has no workers.", "Start some workers."
)
def workers_missing() -> None:
    """The Dask scheduler answers, but no worker is connected to it."""


@problem(
    "GRM-265",
    RequestError,
    "key 'engine': not all workers of the Dask cluster have Gramercy {version}.",
    "Install the same version on all of them.",
)
def worker_versions_differ(version: str | None) -> None:
    """A worker lacks Gramercy, or has another version of it than this process."""


@problem(
    "GRM-266",
    RequestError,
    "key 'engine': workers of the Dask cluster may spill private data to disk.",
    "Start them with DASK_DISTRIBUTED__WORKER__MEMORY__TARGET=False and "
    "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL=False.",
)
def workers_may_spill() -> None:
    """Dask is configured to write to disk what does not fit into a worker's memory."""


@problem(
    "GRM-267", StepFailed, "{step}: {error} on a Dask worker.", "Look at the logs of the workers."
)
def worker_failed(step: str, error: str) -> None:
    """A worker raised an unexpected error. Only its type is shown: it may quote private values."""


@problem(
    "GRM-268",
    StepFailed,
    "The Dask cluster lost an intermediate result.",
    "Look at the logs of the workers.",
)
def result_lost() -> None:
    """A worker stopped, or the connection broke, before its sums were fetched."""
