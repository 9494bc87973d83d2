"""An office whose machines come and go: a Prefect server, an archive, a witness, and backups.

All processes have one clock, which a test moves. Commands and runs are forks of a warm process.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.support.clocks import FakeClock
from tests.support.schedules import kill_processes
from tests.support.servers import (
    ROOT,
    copy_migrated_database,
    free_port,
    is_healthy,
    post,
    prefect_environment,
    run_prefect,
    running,
    wait_for,
)
from tests.support.sinks import Sinks
from tests.support.warm_processes import warm_processes

_OPEN = ["SCHEDULED", "PENDING", "RUNNING", "CANCELLING"]
_SERVER = ("tests.support.hasty_server", "server", "start")
_SECONDS = 600
_ATTEMPTS, _ATTEMPT_SECONDS = 3, 80
_EVENT_SECONDS = 4  # until an alert has begun to wait for what ends it


class Office:
    """What outlives a machine, and the machine in use.

    Parameters
    ----------
    folder
        Of everything.
    received
        Where alerts are sent.
    start
        Date and time at the beginning, UTC.
    """

    def __init__(self, folder: Path, received: Sinks, start: datetime.datetime) -> None:
        self.folder, self.received = folder, received
        self.archive, self.backups = folder / "archive", folder / "backups"
        self.faults = folder / "faults"
        self.requests: Sequence[Path] = ()
        self._clock, self.now = FakeClock(folder / "clock", start), start
        self._machines, self._serving = 0, contextlib.ExitStack()
        self._is_serving, self._moved = False, time.monotonic()
        self._port = free_port()
        self._environ = prefect_environment(folder, folder / "none", self._port) | {
            "PYTHONPATH": str(ROOT),
            "GRAMERCY_ARCHIVE_URL": str(self.archive),
            "GRAMERCY_WITNESS_URL": str(folder / "witness"),
            "GRAMERCY_ALERTS_URL": received.address,
            "DRAWS": str(folder / "draws"),
            "FAULTS": str(self.faults),
            "PREFECT_WORKER_HEARTBEAT_SECONDS": "4",
            "PREFECT_WORKER_QUERY_SECONDS": "2",
            "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "10",
            # An hour of writes to Prefect's file, which it locks, is a minute here: fewer of them.
            "PREFECT_LOGGING_TO_API_ENABLED": "false",
            "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_ENABLED": "false",
            "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_ENABLED": "false",
            "PREFECT_SERVER_SERVICES_LATE_RUNS_AFTER_SECONDS": "1",
            **self._clock.environment(),
        }
        self._of_server = self._environ
        self.api = self._environ["PREFECT_API_URL"]

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Start the server, and what commands and runs are forks of."""
        warm = warm_processes(self.folder, self._environ, "tests.support.watched_draws")
        self._stopping = contextlib.ExitStack()
        with warm as environ, self._stopping:
            self._environ = environ
            self.start_server()
            yield
            self.stop_serving()

    def start_server(self) -> None:
        log, port = self.folder / "server.log", str(self._port)
        self._stopping.enter_context(running(self._of_server, log, *_SERVER, "--port", port))
        wait_for(lambda: is_healthy(self.api), _SECONDS, log)

    def stop_server(self) -> None:
        self._stopping.close()

    def lose_server(self) -> None:
        """The server is started again with an empty database."""
        self.stop_server()
        for path in (self.folder / "prefect").glob("prefect.db*"):
            path.unlink()
        copy_migrated_database(self.folder / "prefect")
        self.start_server()

    def upgrade_server(self, earlier: str) -> None:
        """The server is started again with the tables of an earlier revision of Prefect's."""
        self.stop_server()
        run_prefect(self._of_server, ("server", "database", "downgrade", "-y", "-r", earlier))
        self.start_server()

    def new_machine(self) -> None:
        """A machine without a home."""
        self._machines += 1
        self.machine.mkdir()

    @property
    def machine(self) -> Path:
        """The folder of the machine in use: it has the home."""
        return self.folder / f"machine-{self._machines}"

    @property
    def home(self) -> Path:
        return self.machine / "home"

    def lose_machine(self) -> None:
        """It loses power, and is never seen again."""
        self._is_serving = False
        kill_processes(self.home)
        self._serving.pop_all().close()
        shutil.rmtree(self.machine)

    def command(self, *words: object, code: int = 0) -> str:
        """Run a command of Gramercy on the machine; returns its output."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "gramercy", *map(str, words)],
            env=self._of_machine(),
            cwd=self.machine,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout or done.stderr

    def facts(self, *words: object, code: int = 0) -> Any:
        """What a command prints with ``--json``."""
        return json.loads(self.command(*words, "--json", code=code))

    def serve(self) -> None:
        """Schedule the requests, and run what is due."""
        log = self.folder / f"serve-{self._machines}.log"
        schedule = ("--cron", "0 6 * * 1", "--timezone", "UTC")
        words = ("gramercy", "serve", *map(str, self.requests), *schedule)
        process = self._serving.enter_context(running(self._of_machine(), log, *words))
        wait_for(
            lambda: process.poll() is not None or "Serving at" in log.read_text(), _SECONDS, log
        )
        assert process.poll() is None, log.read_text()
        # No one reads them here, and each takes longer than the release.
        for each in post(self.api, "/automations/filter", {}):
            if each["name"].startswith("published"):
                post(self.api, f"/automations/{each['id']}", {"enabled": False}, method="PATCH")

        self._is_serving = True
        started = self.now + datetime.timedelta(seconds=time.monotonic() - self._moved)
        self.wait_for(lambda: self._has_worker(started))
        # Until the scheduler has planned them, runs that become due are never run.
        planned = {"flow_runs": {"expected_start_time": {"after_": started.isoformat()}}}
        self.wait_for(
            lambda: (
                {request.stem for request in self.requests}
                <= {
                    tag.removeprefix("dataset:")
                    for each in post(self.api, "/flow_runs/filter", planned)
                    for tag in each["tags"]
                }
            )
        )

    def _has_worker(self, since: datetime.datetime) -> bool:
        """Whether a worker has been heard of since then."""
        workers = post(self.api, "/work_pools/gramercy/workers/filter", {})
        times = [datetime.datetime.fromisoformat(each["last_heartbeat_time"]) for each in workers]
        return max(times, default=since) > since

    def wait_for_late_runs(self, number: int) -> None:
        """Wait until the server has noticed that so many releases have not started."""

        def late() -> int:
            runs = self.runs(type=["SCHEDULED"])
            releases = [x for x in runs if any("dataset:" in tag for tag in x["tags"])]
            return sum(x["state_name"] == "Late" for x in releases)

        self.wait_for(lambda: late() == number)
        time.sleep(_EVENT_SECONDS)

    def stop_serving(self) -> None:
        self._is_serving = False
        self._serving.close()

    def _of_machine(self) -> dict[str, str]:
        return self._environ | {"GRAMERCY_HOME": str(self.home)}

    def move_to(self, moment: datetime.datetime) -> None:
        """Go on at a date and time, UTC, which all processes have read when this returns."""
        self._clock.move_to(moment)
        self.now, self._moved = moment, time.monotonic()
        time.sleep(1.5)  # they read it once a second
        if self._is_serving:
            self.wait_for(lambda: self._has_worker(moment))

    def runs(self, *, type: Sequence[str], dataset: str = "") -> list[dict[str, Any]]:
        """The runs that are due, oldest first, in these types of state, of a data set or of all."""
        soon = self.now + datetime.timedelta(minutes=5)
        due: dict[str, Any] = {
            "expected_start_time": {"before_": soon.isoformat()},
            "state": {"type": {"any_": type}},
            "tags": {"all_": [f"dataset:{dataset}"] if dataset else []},
        }
        body = {"flow_runs": due, "sort": "EXPECTED_START_TIME_ASC"}
        runs: list[dict[str, Any]] = post(self.api, "/flow_runs/filter", body)
        return runs

    def scheduled(self) -> set[str]:
        """Names of the deployments with an active schedule, and of all automations."""
        deployed = post(self.api, "/deployments/filter", {})
        active = [each for each in deployed if any(x["active"] for x in each["schedules"])]
        automations = post(self.api, "/automations/filter", {})
        return {each["name"] for each in (*active, *automations)}

    def draws(self) -> Counter[str]:
        """How often the noise of each release was drawn."""
        return Counter((self.folder / "draws").read_text().split())

    def settle(self) -> None:
        """Wait until every run that is due has ended.

        One that Prefect has left pending, because its database was locked, is run again, as an
        operator would.
        """
        for _ in range(_ATTEMPTS):
            end = time.monotonic() + _ATTEMPT_SECONDS
            while time.monotonic() < end:
                if not self.runs(type=_OPEN):
                    return
                time.sleep(0.5)
            for run in self.runs(type=["PENDING"]):
                self.retry(run["id"])
        self.wait_for(lambda: not self.runs(type=_OPEN))

    def wait_for(self, condition: Callable[[], bool]) -> None:
        wait_for(condition, _SECONDS, self.folder / f"serve-{self._machines}.log")

    def retry(self, run: str) -> None:
        """Run it again, as the button in Prefect's pages does."""
        state = {"type": "SCHEDULED", "name": "AwaitingRetry"}
        post(self.api, f"/flow_runs/{run}/set_state", {"state": state, "force": True})

    def plan_fault(self, dataset: str, at: str, errno: int = 0) -> None:
        """Let the next release of a data set be killed at a point, or fail there and later."""
        (self.faults / dataset).write_text(json.dumps({"at": at, "errno": errno}))

    def alerted(self, *words: str) -> bool:
        """Whether a mail and a webhook have all of these words."""
        posted = [each["title"] + each["message"] for each in self.received.posted]
        return all(
            any(all(word in text for word in words) for text in texts)
            for texts in (posted, self.received.mailed)
        )
