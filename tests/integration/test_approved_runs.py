"""Scheduled releases that wait for a second person, on a Prefect server, with a worker."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gramercy.archive.seal.signing import create_signing_key
from gramercy.common.home import Home
from gramercy.flows.deployments import POOL, WorkPool, deployments
from gramercy.ledger.entry import account
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.approval import register_approver
from gramercy.pipeline.status.scheduled_runs import Service
from gramercy.schemas import families
from tests.support.factories import read_registered, run_command, write_request
from tests.support.servers import (
    flow_runs,
    free_port,
    is_healthy,
    post,
    prefect_environment,
    running,
    wait_for,
)

pytestmark = pytest.mark.slow

SECONDS = 600


class Office:
    """A home with a schedule, and the server that the steward and the approver share."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.log, port = folder / "server.log", free_port()
        self.environment = prefect_environment(folder, home, port)
        self.api, self.port = self.environment["PREFECT_API_URL"], str(port)
        self.approver = folder / "anna"

    @contextlib.contextmanager
    def server(self, request: Path) -> Iterator[None]:
        with running(self.environment, self.log, "prefect", "server", "start", "--port", self.port):
            wait_for(lambda: is_healthy(self.api), SECONDS, self.log)
            context = Context.default()
            (release, *_) = deployments(context, [read_registered(request)], "0 6 1 1 *", "UTC")
            WorkPool(self.api, POOL, context.home).deploy([release])
            Service(POOL, {"toy": "'0 6 1 1 *' (UTC)"}).record(context.home)
            yield

    @contextlib.contextmanager
    def worker(self, **environment: str) -> Iterator[None]:
        log = self.log.with_name("worker.log")
        with running(self.environment | environment, log, "gramercy.flows.worker", POOL):
            yield

    def start(self, version: str) -> str:
        (deployment,) = post(self.api, "/deployments/filter", {})
        request = deployment["parameters"]["request"] | {"version": version}
        create = f"/deployments/{deployment['id']}/create_flow_run"
        return str(post(self.api, create, {"parameters": {"request": request}})["id"])

    def state(self, run: str) -> dict[str, Any]:
        (found,) = (each for each in flow_runs(self.api, "release") if each["id"] == run)
        state: dict[str, Any] = found["state"]
        return state

    def wait_until(self, run: str, state: str) -> None:
        wait_for(
            lambda: self.state(run)["type"] == state, SECONDS, self.log.with_name("worker.log")
        )

    def approve(self, *words: str) -> tuple[int, Any, str]:
        environment = self.environment | {"GRAMERCY_HOME": str(self.approver)}
        done = subprocess.run(
            [sys.executable, "-m", "gramercy", "approve", *words, "--json"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, json.loads(done.stdout or "null"), done.stderr


def test_run_waits_for_an_approval(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    office = Office(tmp_path, home)
    key = create_signing_key(Home(office.approver).keys)
    register_approver(Home(home), "anna", key.path)
    request = write_request(tmp_path, request={"version": "v%j"}, approval="required")
    ledger = Context.default().ledger
    with office.server(request):
        with office.worker():
            run = office.start("v1")
            office.wait_until(run, "PAUSED")
            other = office.start("v2")  # what waits does not keep others from running
            office.wait_until(other, "PAUSED")
            monkeypatch.setenv("PREFECT_API_URL", office.api)
            code, out, _ = run_command("status", capsys=capsys)
            assert (code, "waits for 'gramercy approve" in out) == (1, True)
            # Resumed by somebody with the login alone, it is refused.
            forged = {"run_input": {"signatures": ["ed25519 0 0\n"]}}
            post(office.api, f"/flow_runs/{other}/resume", forged)
            office.wait_until(other, "FAILED")
            assert families.NOT_REGISTERED.code in office.state(other)["message"]
        assert ledger.datasets() == []

        # The worker was restarted while the first run waited.
        assert office.approve()[:2] == (0, {run: "toy v1"})
        code, approved, err = office.approve(run, "--yes")
        assert (code, approved["approved"][0]["version"]) == (0, "v1"), err
        with office.worker(GRAMERCY_APPROVAL_MINUTES="0.02"):
            office.wait_until(run, "COMPLETED")
            (charge,) = ledger.charges("toy")
            assert (charge.version, charge.by, charge.approved_by) == ("v1", account(), "anna")
            assert charge.is_published
            code, _, err = office.approve(run, "--yes")
            assert (code, families.USAGE.code in err) == (2, True)

            late = office.start("v3")
            office.wait_until(late, "FAILED")
            # A retry does not ask a second time, and charges nothing either.
            state = {"type": "SCHEDULED", "name": "AwaitingRetry"}
            post(office.api, f"/flow_runs/{late}/set_state", {"state": state, "force": True})
            wait_for(
                lambda: families.NOT_REGISTERED.code in str(office.state(late)["message"]),
                SECONDS,
                office.log.with_name("worker.log"),
            )
        assert len(ledger.charges("toy")) == 1
