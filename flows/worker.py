"""The worker of a home: ``python -m gramercy.flows.worker POOL``.

Prefect's own worker takes command, environment and folder of a run from the server, and loads the
code that a deployment names when a run is cancelled or crashes. This one starts one program,
`flows.run`, with its own environment. Someone who can write to the server, even to the job template
of a work pool, cannot decide what is executed here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import anyio
import httpx
from prefect.exceptions import ObjectNotFound
from prefect.logging import get_logger
from prefect.states import Cancelled
from prefect.workers.base import BaseJobConfiguration, BaseVariables, BaseWorker, BaseWorkerResult

from gramercy.flows.untrusted import estimate_minutes
from gramercy.pipeline.progress import PROGRESS_VARIABLE

if TYPE_CHECKING:
    from anyio.abc import TaskStatus
    from prefect.client.schemas.objects import FlowRun

PROGRAM = (sys.executable, "-P", "-m", "gramercy.flows.run")
_POLL_SECONDS = 3.0  # until a cancelled run is ended
_STOP_SECONDS = 20.0
_MOST_RUNS = max(4, os.cpu_count() or 1)  # at a time


class FixedJob(BaseJobConfiguration):
    """The same job for every run: nothing of it comes from the server."""

    @classmethod
    async def from_template_and_values(
        cls, base_job_template: dict[str, Any], values: dict[str, Any], client: Any = None
    ) -> FixedJob:
        """The job, for every template and all values."""
        return cls()


class HomeWorker(BaseWorker[FixedJob, BaseVariables, BaseWorkerResult]):
    """A worker that runs Gramercy's flows and nothing else.

    It has the machine's name, by which `deploy/health.py` finds it, also after a restart.
    """

    type = "process"
    job_configuration = FixedJob

    def __init__(self, pool: str) -> None:
        super().__init__(pool, name=socket.gethostname(), create_pool_if_not_found=False)
        self._places = anyio.Semaphore(_MOST_RUNS)

    @classmethod
    def __dispatch_key__(cls) -> str:
        """Its name among the classes of workers: Prefect has one of this type."""
        return "gramercy"

    async def run(
        self, flow_run: FlowRun, configuration: FixedJob, task_status: TaskStatus[int] | None = None
    ) -> BaseWorkerResult:
        """Run one flow run in a process of its own, until it ends or is cancelled."""
        async with self._places:  # Prefect's own limit loses a place with every deleted deployment
            return await self._run(flow_run, task_status)

    async def _run(
        self, flow_run: FlowRun, task_status: TaskStatus[int] | None
    ) -> BaseWorkerResult:
        # Progress is for a steward's terminal; the log of a service may be JSON.
        stated = {"PREFECT__FLOW_RUN_ID": str(flow_run.id), PROGRESS_VARIABLE: "0"}
        environ = {**os.environ, **stated}
        with tempfile.TemporaryDirectory(prefix="gramercy-run-") as folder:
            # Runs are stopped by the worker: Ctrl-C must not end them before it.
            process = await anyio.open_process(
                PROGRAM, env=environ, cwd=folder, stdin=subprocess.DEVNULL, stdout=None,
                stderr=None, start_new_session=True,
            )  # fmt: skip
            try:
                if task_status is not None:
                    task_status.started(process.pid)
                cancelled = await self._ended_by_cancellation(flow_run, process)
                cancelled = cancelled and process.returncode is None
            finally:
                with anyio.CancelScope(shield=True):
                    await _end(process)
        if cancelled:
            await self.client.set_flow_run_state(flow_run.id, Cancelled(), force=True)
        status = 0 if cancelled else process.returncode
        return BaseWorkerResult(status_code=status or 0, identifier=str(process.pid))

    async def _ended_by_cancellation(self, flow_run: FlowRun, process: Any) -> bool:
        """Wait for a process; True if somebody has cancelled its run."""
        while True:
            with anyio.move_on_after(_POLL_SECONDS):
                await process.wait()
                return False
            # A run goes on while the server does not answer, or has forgotten it.
            with contextlib.suppress(httpx.HTTPError, ObjectNotFound):
                state = (await self.client.read_flow_run(flow_run.id)).state
                if state is not None and (state.is_cancelling() or state.is_cancelled()):
                    return True


async def _end(process: Any) -> None:
    """End a process that still runs, and those that it has started."""
    if process.returncode is None:
        process.terminate()
        with anyio.move_on_after(_STOP_SECONDS):
            await process.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # it leads a group of its own
    await process.wait()


async def work(pool: str) -> None:
    """Run the scheduled runs of a work pool until SIGTERM or SIGINT."""
    estimate_minutes()  # refused here, and not in every run
    worker, say = HomeWorker(pool), get_logger("workers").info
    working = asyncio.ensure_future(worker.start(printer=say))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, working.cancel)
    try:
        await working
    except asyncio.CancelledError:
        say(f"Worker {worker.name!r} stopped.")


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
