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
from gramercy.application.demo import lay_out
from gramercy.application.request_model import read_request
from gramercy.archive.store import Archive
from gramercy.cli.prefect_services import written
from gramercy.common.home import Home
from gramercy.flows.deployments import check_pool, deployments, retire
from gramercy.ledger import Ledger
from gramercy.schemas.errors import RequestError
from tests.support.factories import at_scale, scene
from tests.support.prefect_services import ROOT, environment, free_port, prefect, process, wait_for


def ask(api: str, path: str, body: Any, patience: int = 10) -> Any:
    """POST to the server's API; again, as Prefect's clients do, while its database is locked."""
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
    return ask(api, path, body, patience - 1)


def answers(api: str) -> bool:
    try:
        with urllib.request.urlopen(f"{api}/health", timeout=2) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def left_over(word: str) -> list[str]:
    """Command lines of processes that name it."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
    return [line for line in lines if word in line and "pytest" not in line]


def test_prefect_yaml_on_a_real_server(tmp_path: Path, home: Path) -> None:
    lay_out(Home(home))
    port = free_port()
    environ = environment(tmp_path, home, port)
    api, logs = environ["PREFECT_API_URL"], tmp_path / "server.log"
    starting = ("prefect", "server", "start", "--port", str(port))
    with process(environ, logs, *starting):
        wait_for(lambda: answers(api), 120, logs)
        prefect(environ, "work-pool", "create", "gramercy", "--type", "process")
        prefect(environ, "deploy", "--all")
        deployed = {each["entrypoint"]: each for each in ask(api, "/deployments/filter", {})}
        weekly = deployed["gramercy.flows.release.release"]
        (schedule,) = weekly["schedules"]
        assert schedule["schedule"]["cron"] == "0 6 * * 1"
        assert weekly["global_concurrency_limit"]["limit"] == 1
        assert weekly["concurrency_options"]["collision_strategy"] == "CANCEL_NEW"
        # The scheduler does insert the runs that are planned.
        planned = {"flow_runs": {"state": {"type": {"any_": ["SCHEDULED"]}}}}
        wait_for(lambda: len(ask(api, "/flow_runs/filter", planned)) > 0, 60, logs)
        # What `gramercy serve` deployed before and serves no more is taken back, and nothing else.
        mine = [read_request(scene(tmp_path, request={"version": "%Y"}))]
        served = str(written(deployments(mine, "0 6 * * 1", "UTC")))
        prefect(environ, "deploy", "--all", "--prefect-file", served)
        assert retire(api, deployments(mine, "0 6 * * 1", "UTC")) == []
        usual = deployments(mine, "0 6 * * 1", "UTC")
        own = deployments(mine, "0 6 * * 1", "UTC", "cardiology")
        check_pool(api, own, "cardiology")
        check_pool(api, usual, "no-pool")
        with pytest.raises(RequestError, match="'weekly' in the work pool 'gramercy'"):
            check_pool(api, usual, "gramercy")  # there is one that was deployed by hand
        with pytest.MonkeyPatch.context() as elsewhere:
            elsewhere.setenv("GRAMERCY_HOME", str(tmp_path / "another"))
            check_pool(api, own, "cardiology")
            for asked, pool in ((own, "gramercy"), (usual, "no-pool")):  # the pool, the names
                with pytest.raises(RequestError, match="deployed from elsewhere, or by hand"):
                    check_pool(api, asked, pool)
            assert retire(api, deployments([], "0 6 * * 1", "UTC")) == []
        assert retire(api, deployments([], "0 6 * * 1", "UTC")) == ["release/toy"]
        names = {each["name"] for each in ask(api, "/deployments/filter", {})}
        assert names == {"weekly", "published"}
        # What cannot be run is refused before it is, whoever fills in the form.
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
                ask(api, create, {"parameters": {"request": wrong}})
            assert refused.value.code in {409, 422}, wrong
            refused.value.close()
        assert all(run["auto_scheduled"] for run in ask(api, "/flow_runs/filter", {}))

        log = tmp_path / "worker.log"
        with process(environ, log, "prefect", "worker", "start", "--pool", "gramercy"):
            ask(api, create, {})
            archive = Archive(home / "archive")
            wait_for(lambda: any(archive.reports(*each) for each in archive.releases()), 150, log)
            (done,) = archive.releases()
            # The release, and what its event has triggered.
            finished = {"flow_runs": {"state": {"type": {"any_": ["COMPLETED"]}}}}
            wait_for(lambda: len(ask(api, "/flow_runs/filter", finished)) == 3, 120, log)
            audit = deployed["gramercy.flows.audit.audit"]
            ask(api, f"/deployments/{audit['id']}/create_flow_run", {})
            wait_for(lambda: any((home / "audits").glob("*/audit.json")), 120, log)
            wait_for(lambda: len(ask(api, "/flow_runs/filter", finished)) == 4, 120, log)
        tag = f"release:{'/'.join(done)}"
        tagged = {"flow_runs": {"tags": {"all_": [tag]}}}
        runs = ask(api, "/flow_runs/filter", tagged)
        assert len(runs) == 3
        assert all("dataset:breast-cancer" in run["tags"] for run in runs)
        (audited,) = (home / "audits").glob("*/audit.json")
        told = json.loads(audited.read_text())
        assert (told["discrepancies"], told["notes"], told["runs"]) == ([], [], True)
        assert len(told["releases"][0]["runs"]) == 1
        found = ask(api, "/artifacts/latest/filter", {})
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


def test_serve_starts_and_stops_all_of_it(tmp_path: Path, home: Path) -> None:
    request = scene(tmp_path, request={"version": "%Y-%m-%d-%H%M"})
    port = free_port()
    environ = environment(tmp_path, home, port)
    api = environ.pop("PREFECT_API_URL")
    log = tmp_path / "serve.log"
    command = ("gramercy", "serve", str(request), "--port", str(port))
    with process(environ, log, *command) as serving:
        wait_for(lambda: b"Serving at" in log.read_bytes(), 180, log)
        # Its pages ask this server, whatever its port.
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ui-settings", timeout=30) as reply:
            assert json.loads(reply.read())["api_url"] == api
        archive = Archive(home / "archive")
        prefect(environ | {"PREFECT_API_URL": api}, "deployment", "run", "release/toy")
        wait_for(lambda: any(archive.reports(*each) for each in archive.releases()), 150, log)
        # Ended as a service manager does it, it leaves nothing behind that goes on charging.
        serving.send_signal(signal.SIGTERM)
        serving.wait(60)
    assert serving.returncode == 128 + signal.SIGTERM
    assert not left_over(str(port))
    assert not answers(api)
    assert "Traceback" not in log.read_text()
    ((dataset, name), *_) = archive.releases()
    assert (dataset, name[:2]) == ("toy", "20")


def test_serve_refuses_before_anything_starts(tmp_path: Path, home: Path) -> None:
    request = str(scene(tmp_path))
    doubtful = tmp_path / "{{ $HOME }}"
    doubtful.mkdir()
    braces = str(scene(doubtful, request={"version": "%Y"}))
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
            env=environment(tmp_path, home, 1),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == (2 if words else 1), done.stderr
        assert told in done.stderr
        assert "Traceback" not in done.stderr
