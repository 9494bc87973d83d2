"""Alerts of a real Prefect server, which a web server and a mail server receive."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gramercy.flows import alerts
from gramercy.flows.deployments import WorkPool, deployments
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.context import Context
from gramercy.pipeline.progress import PROGRESS_VARIABLE
from gramercy.pipeline.status.scheduled_runs import Service
from gramercy.schemas import families
from gramercy.schemas.ledger_history import ChargeState
from tests.support.factories import read_plan, read_registered, run_command, write_request
from tests.support.ledgers import TENTH, charge
from tests.support.problems import raises
from tests.support.servers import (
    Login,
    free_port,
    is_healthy,
    post,
    prefect_environment,
    running,
    wait_for,
)
from tests.support.sinks import Sinks, sinks

# Apprise tries whether Python still has this module.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")
POOL = "cardiology_1"
SECONDS = 600


@pytest.fixture
def pool(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[WorkPool, Sinks, Path]]:
    """A pool with alerts that wait for the shortest time that Prefect allows."""
    shortest = datetime.timedelta(seconds=10)
    patient = [dataclasses.replace(each, within=shortest) for each in alerts.ALERTS]
    monkeypatch.setattr(alerts, "ALERTS", tuple(patient))
    port = free_port()
    environ = prefect_environment(tmp_path, home, port) | {
        "PREFECT_SERVER_SERVICES_LATE_RUNS_AFTER_SECONDS": "1",
        "PREFECT_SERVER_SERVICES_LATE_RUNS_LOOP_SECONDS": "1",
        "PREFECT_SERVER_SERVICES_FOREMAN_LOOP_SECONDS": "1",
    }
    api, log = environ["PREFECT_API_URL"], tmp_path / "server.log"
    starting = ("prefect", "server", "start", "--port", str(port))
    with running(environ, log, *starting), sinks() as received:
        wait_for(lambda: is_healthy(api), 180, log)
        monkeypatch.setenv("GRAMERCY_ALERTS_URL", received.address)
        context = Context.default()
        request = read_registered(write_request(tmp_path, request={"version": "%Y"}))
        pool = WorkPool(api, POOL, context.home)
        pool.deploy(deployments(context, [request], "0 6 1 1 *", "UTC", POOL))
        yield pool, received, log


def automations(api: str) -> list[dict[str, Any]]:
    """The automations that this module makes; those of deployments belong to them."""
    found = post(api, "/automations/filter", {})
    return [each for each in found if each["name"].startswith("Gramercy")]


def create_run(api: str, flow: str) -> str:
    (deployment,) = (
        each for each in post(api, "/deployments/filter", {}) if each["entrypoint"].endswith(flow)
    )
    run = post(api, f"/deployments/{deployment['id']}/create_flow_run", {})
    return str(run["id"])


def set_state(api: str, run: str, state: str) -> None:
    body = {"state": {"type": state, "message": "PRIVATE"}, "force": True}
    post(api, f"/flow_runs/{run}/set_state", body)


def test_alerts_of_a_real_server(
    pool: tuple[WorkPool, Sinks, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    work_pool, received, log = pool
    api = work_pool.api
    assert work_pool.make_alerts()
    made = automations(api)
    assert len(made) == len(alerts.ALERTS)
    assert work_pool.make_alerts()
    assert automations(api) == made  # a renewed one would forget which runs are late

    def sent(*words: str) -> bool:
        posted = [each["title"] + each["message"] for each in received.posted]
        return all(
            any(all(word in text for word in words) for text in texts)
            for texts in (posted, received.mailed)
        )

    # A failed run and a crashed one: at once. One that was cancelled, or of another pool: never.
    # The subject of a mail is folded where it is long, so each word is looked for.
    for flow, state in (("audit.audit", "FAILED"), ("release.release", "CRASHED")):
        set_state(api, create_run(api, flow), state)
        wait_for(lambda flow=flow: sent(flow.rpartition(".")[2], "failed"), SECONDS, log)  # type: ignore[misc]
    assert len(received.posted) == len(received.mailed) == 2
    received.clear()

    # A release waits for an approval.
    state = {"type": "PAUSED", "name": "Suspended"}
    run = create_run(api, "release.release")
    post(api, f"/flow_runs/{run}/set_state", {"state": state, "force": True})
    wait_for(lambda: sent("release", "approve"), SECONDS, log)
    received.clear()

    # No one takes this run.
    set_state(api, create_run(api, "release.release"), "CANCELLED")
    create_run(api, "status.status")
    wait_for(lambda: sent("status", "not started"), SECONDS, log)
    # A worker takes it, and ends.
    post(
        api, f"/work_pools/{POOL}/workers/heartbeat", {"name": "a", "heartbeat_interval_seconds": 1}
    )
    wait_for(lambda: sent("no worker", POOL), 2 * SECONDS, log)
    assert all("PRIVATE" not in str(each) for each in (*received.posted, *received.mailed))

    # The same server, asked for a status.
    monkeypatch.setenv("PREFECT_API_URL", api)
    Service(POOL, {"toy": "'0 6 1 1 *' (UTC)"}).record(work_pool.home)
    code, out, _ = run_command("status", capsys=capsys)
    assert code == 1
    assert "none online" in out

    monkeypatch.delenv("GRAMERCY_ALERTS_URL")
    assert not work_pool.make_alerts()
    assert automations(api) == []
    monkeypatch.setenv("GRAMERCY_ALERTS_URL", "nonsense")
    with raises(families.SETTING):
        work_pool.make_alerts()


def test_serve_tells_of_all_that_is_wrong(tmp_path: Path, home: Path) -> None:
    """A release that fails, an audit with a discrepancy, a budget that is nearly spent.

    The log has one JSON object a line, without the address.
    """
    request = write_request(tmp_path, request={"version": "%Y-%m-%d-%H%M"})
    read_registered(request)
    context, third = Context.default(), Guarantee(TENTH.mu * 33**0.5)  # three of them fit
    release = charge(context.ledger, "v1", third, read_plan(request).contract)
    for state in (ChargeState.DRAWN, ChargeState.SEALED, ChargeState.PUBLISHED):
        context.ledger.mark(
            "toy", release, state, **{"sha256": "0" * 64} if state == "sealed" else {}
        )
    context.record_head()  # there is no bundle
    port = free_port()
    environ = prefect_environment(tmp_path, home, port)
    api, log = environ.pop("PREFECT_API_URL"), tmp_path / "serve.log"
    serving = ("gramercy", "serve", str(request), "--port", str(port), "--log-format", "json")
    with sinks() as received:
        environ |= {"GRAMERCY_ALERTS_URL": received.address, PROGRESS_VARIABLE: "1"}
        with running(environ, log, *serving):
            wait_for(lambda: "started" in log.read_text(), 600, log)
            (tmp_path / "table.csv").unlink()
            login = Login(api, (home / "serve" / f"{port}.login").read_text())
            deployed = {x["name"]: x["id"] for x in post(login, "/deployments/filter", {})}

            def sent(*words: str) -> bool:
                texts = [str(each) for each in received.posted], received.mailed
                return all(any(all(w in text for w in words) for text in each) for each in texts)

            # Words, because lines of mail are broken where they are long.
            for name, *words in (
                ("toy", "release/toy", "failed", "toy 20"),
                ("weekly", "audit/weekly", "failed"),
                ("daily", "status/daily", "release", "budget", "audit"),
            ):
                post(login, f"/deployments/{deployed[name]}/create_flow_run", {})
                wait_for(lambda words=words: sent(*words), 600, log)  # type: ignore[misc]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"gramercy", "prefect.flow_runs", "prefect.workers"} < {x["logger"] for x in lines}
    assert any(each.get("dataset") == "toy" for each in lines)
    for secret in ("office.example", "/hook", login.login):
        assert str(secret) not in log.read_text()
