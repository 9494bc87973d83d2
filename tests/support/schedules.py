"""A schedule on a Prefect server of its own, in processes whose clock a test moves."""

from __future__ import annotations

import contextlib
import datetime
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from gramercy.flows.deployments import POOL, WorkPool, deployments
from gramercy.pipeline.context import Context
from tests.support.clocks import FakeClock
from tests.support.factories import read_registered
from tests.support.servers import (
    flow_runs,
    free_port,
    is_healthy,
    post,
    prefect_environment,
    running,
    wait_for,
)

_PROCESSES = (b"serve", b"gramercy.flows.worker", b"gramercy.flows.run")


class Schedule:
    """`gramercy serve` with a Prefect server of its own, in processes whose clock can be moved.

    Parameters
    ----------
    folder, home
        Where server and worker write.
    request, cron, timezone
        What runs when.
    start
        Date and time of all processes at the beginning, UTC.
    triggers
        Whether a release triggers estimates and reports.
    environment
        Further variables of all processes.
    """

    def __init__(
        self,
        folder: Path,
        home: Path,
        request: Path,
        cron: str,
        timezone: str,
        *start: int,
        triggers: bool = False,
        **environment: str,
    ) -> None:
        self._folder, self._home = folder, home
        self.request = request
        self._cron, self._timezone = cron, timezone
        self._clock = FakeClock(folder / "clock", _utc(*start))
        self._port = free_port()
        self.environment = prefect_environment(folder, home, self._port) | {
            "PREFECT_DEPLOYMENT_CONCURRENCY_SLOT_WAIT_SECONDS": "3",
            "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": str(triggers).lower(),
            **environment,
            **self._clock.environment(),
        }
        self.api = self.environment["PREFECT_API_URL"]

    @contextlib.contextmanager
    def server(self) -> Iterator[None]:
        log, port = self._folder / "server.log", str(self._port)
        with running(self.environment, log, "prefect", "server", "start", "--port", port):
            wait_for(lambda: is_healthy(self.api), 180, log)
            yield

    @contextlib.contextmanager
    def serve(self) -> Iterator[None]:
        """Deploy the request and run what is due, by one command."""
        read_registered(self.request)
        schedule = ("--cron", self._cron, "--timezone", self._timezone)
        with self._running("gramercy", "serve", str(self.request), *schedule):
            yield

    @contextlib.contextmanager
    def worker(self) -> Iterator[None]:
        """Deploy the request, without audits, and run what is due."""
        context, request = Context.default(), read_registered(self.request)
        (release, *_) = deployments(context, [request], self._cron, self._timezone)
        WorkPool(self.api, POOL, context.home).deploy([release])
        with self._running("gramercy.flows.worker", POOL):
            yield

    @contextlib.contextmanager
    def _running(self, *arguments: str) -> Iterator[None]:
        log = self._folder / "worker.log"
        with running(self.environment, log, *arguments) as process:
            self.wait_for(lambda: process.poll() is not None or self._is_deployed())
            assert process.poll() is None, log.read_text()
            yield

    def _is_deployed(self) -> bool:
        """Whether the scheduler has planned the next runs."""
        return len(flow_runs(self.api, "release", "SCHEDULED")) >= 3

    def move_to(self, *moment: int) -> None:
        """Go on at this date and time, UTC, which all processes have read when this returns."""
        self._clock.move_to(_utc(*moment))
        time.sleep(1.5)  # they read it once a second

    def wait_for(self, condition: Callable[[], bool]) -> None:
        wait_for(condition, 300, self._folder / "worker.log")

    def wait_for_releases(self, *due: str) -> None:
        """Wait until the runs that were due on these days, and no others, are complete."""

        def complete() -> bool:
            runs = flow_runs(self.api, "release", "COMPLETED")
            return [run["expected_start_time"][:10] for run in runs] == list(due)

        self.wait_for(complete)

    def retry(self, run: str) -> None:
        """Run it again, as the button in Prefect's pages does."""
        state = {"type": "SCHEDULED", "name": "AwaitingRetry"}
        post(self.api, f"/flow_runs/{run}/set_state", {"state": state, "force": True})

    def kill_worker(self) -> None:
        """Kill the worker and its runs, as if the machine lost power."""
        kill_processes(self._home)


def kill_processes(home: Path) -> None:
    """Kill `gramercy serve`, the worker and the runs of a home."""
    variable = f"GRAMERCY_HOME={home}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (folder / "cmdline").read_bytes().split(b"\0")
            of_home = variable in (folder / "environ").read_bytes().split(b"\0")
            if of_home and {*_PROCESSES} & {*command}:
                os.kill(int(folder.name), signal.SIGKILL)


def _utc(*moment: int) -> datetime.datetime:
    return datetime.datetime(*moment, tzinfo=datetime.UTC)  # type: ignore[misc, arg-type]
