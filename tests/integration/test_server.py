"""The pipeline on a real Prefect server with a process worker, deployed from prefect.yaml."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from gramercy.api.release import Release
from gramercy.application.context import Context
from gramercy.application.demo import lay_out
from gramercy.application.yaml_files import read_request
from gramercy.archive.local import LocalArchive
from gramercy.common.home import Home
from gramercy.flows.deployments import POOL, deployments
from gramercy.flows.work_pool import WorkPool
from gramercy.ledger import Ledger
from gramercy.schemas.errors import RequestError
from tests.support.factories import at_scale, write_request
from tests.support.prefect_services import (
    ROOT,
    free_port,
    prefect_environment,
    run_prefect,
    running,
    wait_for,
)

pytestmark = pytest.mark.slow

# What a deployment has of its own, however it was made.
SAME = (
    "description",
    "parameters",
    "parameter_openapi_schema",
    "enforce_parameter_schema",
    "concurrency_options",
    "job_variables",
    "path",
)


def post(api: str, path: str, body: Any, patience: int = 10) -> Any:
    """POST to the server's API, retrying while its database is locked, like Prefect's clients."""
    request = urllib.request.Request(
        f"{api}{path}",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.loads(reply.read() or b"null")
    except urllib.error.HTTPError as refused:
        if refused.code != 503 or not patience:
            raise
        time.sleep(0.5)
    return post(api, path, body, patience - 1)


def deployed_on(api: str) -> list[dict[str, Any]]:
    deployments: list[dict[str, Any]] = post(api, "/deployments/filter", {})
    return deployments


def answers(api: str) -> bool:
    try:
        with urllib.request.urlopen(f"{api}/health", timeout=2) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def remaining_processes(word: str) -> list[str]:
    """Command lines of running processes that mention the folder."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
    return [line for line in lines if word in line and "pytest" not in line]


def test_prefect_yaml_on_a_real_server(tmp_path: Path, home: Path) -> None:
    lay_out(Home(home))
    port = free_port()
    environ = prefect_environment(tmp_path, home, port)
    api, logs = environ["PREFECT_API_URL"], tmp_path / "server.log"
    starting = ("prefect", "server", "start", "--port", str(port))
    with running(environ, logs, *starting):
        wait_for(lambda: answers(api), 120, logs)
        run_prefect(environ, "work-pool", "create", "gramercy", "--type", "process")
        run_prefect(environ, "deploy", "--all")
        deployed = {each["entrypoint"]: each for each in deployed_on(api)}
        weekly = deployed["gramercy.flows.release.release"]
        (schedule,) = weekly["schedules"]
        assert schedule["schedule"]["cron"] == "0 6 * * 1"
        assert weekly["global_concurrency_limit"]["limit"] == 1
        assert weekly["concurrency_options"]["collision_strategy"] == "CANCEL_NEW"
        # The scheduler does insert the runs that are planned.
        planned = {"flow_runs": {"state": {"type": {"any_": ["SCHEDULED"]}}}}
        wait_for(lambda: len(post(api, "/flow_runs/filter", planned)) > 0, 60, logs)
        # What `gramercy serve` deployed before and serves no more is taken back, and nothing else.
        context = Context.default()
        mine = [read_request(write_request(tmp_path, request={"version": "%Y"}))]
        usual, own, nothing = (
            deployments(context, requests, "0 6 * * 1", "UTC", pool)
            for requests, pool in ((mine, POOL), (mine, "cardiology"), ([], "cardiology"))
        )
        cardiology = WorkPool(api, "cardiology", context.home)
        assert cardiology.deploy(own) == []
        assert cardiology.deploy(own) == []
        elsewhere = Home(tmp_path / "another")
        for here, pool, asked in (
            (context.home, POOL, usual),  # a pool with a manual deployment
            (context.home, "oncology", usual),  # manually chosen names
            (elsewhere, "cardiology", usual),
            (elsewhere, "oncology", own),
        ):
            with pytest.raises(RequestError, match="deployed from elsewhere, or by hand"):
                WorkPool(api, pool, here).deploy(asked)
        assert WorkPool(api, "cardiology", elsewhere).retire(nothing) == []
        assert cardiology.deploy(nothing) == ["release/toy@cardiology"]
        left = {(each["entrypoint"], each["name"]): each for each in deployed_on(api)}
        assert {name for _, name in left} == {
            *("weekly", "published"),
            *("weekly@cardiology", "published@cardiology"),
        }
        assert not any(each["pull_steps"] for each in left.values())
        # From Python and from prefect.yaml the same is deployed.
        for entrypoint, by_hand in deployed.items():
            if entrypoint != weekly["entrypoint"]:
                by_serve = left[entrypoint, f"{by_hand['name']}@cardiology"]
                assert [by_serve[fact] for fact in SAME] == [by_hand[fact] for fact in SAME]
        # Invalid parameters are refused before a run, also from the form.
        create = f"/deployments/{weekly['id']}/create_flow_run"
        sound = weekly["parameters"]["request"]
        for wrong in (
            sound | {"mechanism": {"name": "magic", "epsilon": 1.0, "delta": 1e-6}},
            sound | {"mechanism": {"name": "gaussian", "epsilon": 0.0, "delta": 1e-6}},
            sound | {"mechanism": {"name": "gaussian", "epsilon": -1, "delta": 1e-6}},
            sound | {"mechanizm": {"name": "gaussian"}},
            sound | {"version": "../../etc"},
            {key: value for key, value in sound.items() if key != "dataset"},
        ):
            with pytest.raises(urllib.error.HTTPError) as refused:
                post(api, create, {"parameters": {"request": wrong}})
            assert refused.value.code in {409, 422}, wrong
            refused.value.close()
        assert all(run["auto_scheduled"] for run in post(api, "/flow_runs/filter", {}))

        log = tmp_path / "worker.log"
        with running(environ, log, "prefect", "worker", "start", "--pool", "gramercy"):
            post(api, create, {})
            archive = LocalArchive(home / "archive")
            wait_for(lambda: any(archive.reports(*each) for each in archive.releases()), 150, log)
            (done,) = archive.releases()
            # The release, and what its event has triggered.
            finished = {"flow_runs": {"state": {"type": {"any_": ["COMPLETED"]}}}}
            wait_for(lambda: len(post(api, "/flow_runs/filter", finished)) == 3, 120, log)
            audit = deployed["gramercy.flows.audit.audit"]
            post(api, f"/deployments/{audit['id']}/create_flow_run", {})
            wait_for(lambda: any((home / "audits").glob("*/audit.json")), 120, log)
            wait_for(lambda: len(post(api, "/flow_runs/filter", finished)) == 4, 120, log)
        tag = f"release:{'/'.join(done)}"
        tagged = {"flow_runs": {"tags": {"all_": [tag]}}}
        runs = post(api, "/flow_runs/filter", tagged)
        assert len(runs) == 3
        assert all("dataset:breast-cancer" in run["tags"] for run in runs)
        (audited,) = (home / "audits").glob("*/audit.json")
        told = json.loads(audited.read_text())
        assert (told["discrepancies"], told["notes"], told["runs"]) == ([], [], True)
        assert len(told["releases"][0]["runs"]) == 1
        found = post(api, "/artifacts/latest/filter", {})
        kinds = {"privacy", "budget", "noise", "bundle", "estimates", "report"}
        assert {f"{kind}-breast-cancer" for kind in kinds} <= {each["key"] for each in found}

    assert archive.releases() == [done]
    assert done[1].startswith("20")
    assert "-W" in done[1]  # the version comes from the day of the schedule
    names = [name.rpartition("-")[0] for name in archive.estimates(*done)]
    assert names == ["graphical-lasso", "ridge"]
    assert len(archive.reports(*done)) == 1
    assert Release(archive, *done).report is not None
    assert len(Ledger(home / "ledger.sqlite").charges("breast-cancer")) == 1


def test_serve_starts_and_stops_every_process(tmp_path: Path, home: Path) -> None:
    request = write_request(tmp_path, request={"version": "%Y-%m-%d-%H%M"})
    port = free_port()
    environ = prefect_environment(tmp_path, home, port)
    api = environ.pop("PREFECT_API_URL")
    log = tmp_path / "serve.log"
    command = ("gramercy", "serve", str(request), "--port", str(port))
    with running(environ, log, *command) as serving:
        wait_for(lambda: b"Serving at" in log.read_bytes(), 180, log)
        # Its pages ask this server, whatever its port.
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ui-settings", timeout=30) as reply:
            assert json.loads(reply.read())["api_url"] == api
        archive = LocalArchive(home / "archive")
        run_prefect(environ | {"PREFECT_API_URL": api}, "deployment", "run", "release/toy")
        wait_for(lambda: any(archive.reports(*each) for each in archive.releases()), 150, log)
        # Ended as a service manager does it, it leaves nothing behind that goes on charging.
        serving.send_signal(signal.SIGTERM)
        serving.wait(60)
    assert serving.returncode == 128 + signal.SIGTERM
    assert not remaining_processes(str(port))
    assert not answers(api)
    assert "Traceback" not in log.read_text()
    ((dataset, name), *_) = archive.releases()
    assert (dataset, name[:2]) == ("toy", "20")


def test_serve_refuses_before_anything_starts(tmp_path: Path, home: Path) -> None:
    request = str(write_request(tmp_path))
    doubtful = tmp_path / "{{ $HOME }}"
    doubtful.mkdir()
    braces = str(write_request(doubtful, request={"version": "%Y"}))
    for words, told in (
        ([request], "would be published once"),
        ([braces], "the path holds '{{'"),
        ([request, "--cron", "* * * * * *"], "--cron"),
        ([request, "--cron", "soon"], "--cron"),
        ([request, "--timezone", "Mars/Olympus"], "--timezone"),
        ([str(tmp_path / "none.yaml")], "no such file"),
        ([], "does not answer"),  # the server that is named is not there
    )[:: at_scale(3, 1)]:
        done = subprocess.run(
            [sys.executable, "-m", "gramercy", "serve", *words],
            env=prefect_environment(tmp_path, home, 1),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == (2 if words else 1), done.stderr
        assert told in done.stderr
        assert "Traceback" not in done.stderr
