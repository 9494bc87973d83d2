"""The pipeline on a real Prefect server with a process worker, deployed from prefect.yaml."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from gramercy.api.release import Release
from gramercy.archive.store.opening import open_archive
from gramercy.common.home import Home
from gramercy.flows.deployments import POOL, WorkPool, deployments
from gramercy.ledger import Ledger
from gramercy.pipeline.context import Context
from gramercy.pipeline.demo import write_demo_files
from gramercy.schemas import families
from tests.support.factories import read_registered, run_command, write_request
from tests.support.problems import raises
from tests.support.servers import (
    ROOT,
    Login,
    free_port,
    is_healthy,
    post,
    prefect_environment,
    run_prefect,
    run_until,
    running,
    wait_for,
)

pytestmark = pytest.mark.slow

# Facts of a deployment that do not depend on how it was made.
SAME = (
    "description",
    "parameters",
    "parameter_openapi_schema",
    "enforce_parameter_schema",
    "concurrency_options",
    "job_variables",
    "path",
)


def deployed_on(api: str | Login) -> list[dict[str, Any]]:
    deployments: list[dict[str, Any]] = post(api, "/deployments/filter", {})
    return deployments


def completed(api: str) -> set[str]:
    """Ids of the deployments that have a completed run."""
    finished = {"flow_runs": {"state": {"type": {"any_": ["COMPLETED"]}}}}
    return {run["deployment_id"] for run in post(api, "/flow_runs/filter", finished)}


def test_prefect_yaml_on_a_real_server(tmp_path: Path, home: Path) -> None:
    write_demo_files(Home(home))
    port = free_port()
    environ = prefect_environment(tmp_path, home, port)
    api, logs = environ["PREFECT_API_URL"], tmp_path / "server.log"
    starting = ("prefect", "server", "start", "--port", str(port))
    with running(environ, logs, *starting):
        wait_for(lambda: is_healthy(api), 120, logs)
        template = str(ROOT / "deploy" / "work-pools" / "process.json")
        pool = ("gramercy", "--type", "process", "--base-job-template", template)
        run_prefect(environ, ("work-pool", "create", *pool), ("deploy", "--all"))
        by_name = {each["name"]: each for each in deployed_on(api)}
        for name in ("monthly", "series"):
            assert by_name.pop(name)["parameters"]["request"]["version"] == "{period}"
        deployed = {x["entrypoint"]: x for x in deployed_on(api) if x["name"] in by_name}
        weekly = deployed["gramercy.flows.release.release"]
        (schedule,) = weekly["schedules"]
        assert schedule["schedule"]["cron"] == "0 6 * * 1"
        assert weekly["global_concurrency_limit"]["limit"] == 1
        assert weekly["concurrency_options"]["collision_strategy"] == "CANCEL_NEW"
        # The scheduler creates the planned runs.
        planned = {"flow_runs": {"state": {"type": {"any_": ["SCHEDULED"]}}}}
        wait_for(lambda: len(post(api, "/flow_runs/filter", planned)) > 0, 60, logs)
        of_weekly = {"flow_runs": {"deployment_id": {"any_": [weekly["id"]]}}}
        assert all(
            "dataset:outpatients" in each["tags"]
            for each in post(api, "/flow_runs/filter", of_weekly)
        )
        # `gramercy serve` removes only deployments that it made before and no longer serves.
        context, restored = Context.default(), Home(tmp_path / "restored")
        context.ledger.datasets()  # opens it
        requests_of_home = [read_registered(write_request(tmp_path, request={"version": "%Y"}))]
        of_default_pool, of_pool, no_deployments = (
            deployments(context, requests, "0 6 * * 1", "UTC", pool)
            for requests, pool in (
                (requests_of_home, POOL),
                (requests_of_home, "cardiology"),
                ([], "cardiology"),
            )
        )
        cardiology = WorkPool(api, "cardiology", context.home)
        assert cardiology.deploy(of_pool) == []
        assert cardiology.deploy(of_pool) == []
        elsewhere = Home(tmp_path / "another")
        for home_in_use, pool, requested in (
            (context.home, POOL, of_default_pool),  # a pool with a manual deployment
            (context.home, "oncology", of_default_pool),  # manually chosen names
            (elsewhere, "cardiology", of_default_pool),
            (elsewhere, "oncology", of_pool),
        ):
            with raises(families.DEPLOYMENT):
                WorkPool(api, pool, home_in_use).deploy(requested)
        assert WorkPool(api, "cardiology", elsewhere).remove_unserved(no_deployments) == []
        # A home that was restored on another machine goes on with its deployments.
        shutil.copytree(home, restored.root)
        moved = WorkPool(api, "cardiology", restored)
        assert moved.deploy(no_deployments) == ["release/toy@cardiology"]
        remaining = {(each["entrypoint"], each["name"]): each for each in deployed_on(api)}
        assert {name for _, name in remaining} == {
            *("weekly", "monthly", "series", "published", "daily"),
            *("weekly@cardiology", "published@cardiology", "daily@cardiology"),
        }
        assert not any(each["pull_steps"] for each in remaining.values())
        # Deployments made from Python equal those made from prefect.yaml.
        for entrypoint, from_yaml in deployed.items():
            if entrypoint != weekly["entrypoint"]:
                from_python = remaining[entrypoint, f"{from_yaml['name']}@cardiology"]
                assert [from_python[fact] for fact in SAME] == [from_yaml[fact] for fact in SAME]
        # Invalid parameters, such as those of the web form, are refused before a run.
        create = f"/deployments/{weekly['id']}/create_flow_run"
        valid = weekly["parameters"]["request"]
        for invalid in (
            valid | {"mechanism": {"name": "magic", "epsilon": 1.0, "delta": 1e-6}},
            valid | {"mechanism": {"name": "gaussian", "epsilon": 0.0, "delta": 1e-6}},
            valid | {"mechanism": {"name": "gaussian", "epsilon": -1, "delta": 1e-6}},
            valid | {"mechanizm": {"name": "gaussian"}},
            valid | {"version": "../../etc"},
            {key: value for key, value in valid.items() if key != "dataset"},
        ):
            with pytest.raises(urllib.error.HTTPError) as refused:
                post(api, create, {"parameters": {"request": invalid}})
            assert refused.value.code in {409, 422}, invalid
            refused.value.close()
        assert all(run["auto_scheduled"] for run in post(api, "/flow_runs/filter", {}))

        # Prefect's own worker, in an activated environment.
        log = tmp_path / "worker.log"
        environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
        with running(environ, log, "prefect", "worker", "start", "--pool", "gramercy"):
            archive = open_archive(home / "archive")
            # The release, and the two flows that its event has triggered.
            flows = ("release.release", "estimate.estimate", "report.report")
            ran = {deployed[f"gramercy.flows.{flow}"]["id"] for flow in flows}
            run_until(lambda: ran <= completed(api), api, weekly["id"], log)
            (done,) = archive.releases()
            audit = deployed["gramercy.flows.audit.audit"]
            post(api, f"/deployments/{audit['id']}/create_flow_run", {})
            wait_for(lambda: any((home / "audits").glob("*/audit.json")), 400, log)
            wait_for(lambda: audit["id"] in completed(api), 400, log)
        tag = f"release:{'/'.join(done)}"
        tagged = {"flow_runs": {"tags": {"all_": [tag]}}}
        runs = post(api, "/flow_runs/filter", tagged)
        assert {run["deployment_id"] for run in runs} == ran
        assert all("dataset:outpatients" in run["tags"] for run in runs)
        version = done[1].rpartition("-")[0]
        assert {run["name"] for run in runs} == {
            f"outpatients {each}" for each in (version, done[1])
        }
        (audited,) = (home / "audits").glob("*/audit.json")
        audit_facts = json.loads(audited.read_text())
        assert (audit_facts["discrepancies"], audit_facts["notes"]) == ([], [])
        assert audit_facts["runs"] is True
        of_release = [run["name"] for run in runs if run["deployment_id"] == weekly["id"]]
        # On a slow machine a second run may have replayed the release after the audit began.
        audited_runs = set(audit_facts["releases"][0]["runs"])
        assert audited_runs
        assert audited_runs <= set(of_release)
        artifacts = post(api, "/artifacts/latest/filter", {})
        kinds = {"privacy", "budget", "noise", "bundle", "estimates", "report"}
        assert {f"{kind}-outpatients" for kind in kinds} <= {each["key"] for each in artifacts}

    assert archive.releases() == [done]
    assert done[1].startswith("20")
    assert "-W" in done[1]  # the version is formatted with the scheduled day
    names = [name.rpartition("-")[0] for name in archive.estimates(*done)]
    assert names == ["graphical-lasso", "ridge"]
    assert len(archive.reports(*done)) == 1
    assert Release(archive, *done).report is not None
    assert len(Ledger(home / "ledger.sqlite").charges("outpatients")) == 1


def test_serve_refuses_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start_nothing(*_: Any) -> None:
        pytest.fail("something was started")

    monkeypatch.setattr("gramercy.cli.serve.running_server", start_nothing)
    folders = [tmp_path / name for name in ("braces", "unregistered", "cluster")]
    for folder in folders:
        folder.mkdir()
    regression = {"name": "regression", "outcome": "{{ $HOME }}"}
    facts = {"version": "%Y", "normalisation": {"kind": "clip", "radius": 3.0}}
    columns = {name: {"lower": 0.0, "upper": 1.0} for name in ("{{ $HOME }}", "c")}
    braces = write_request(
        folders[0],
        request={**facts, "estimates": [regression]},
        **{"id": "braces", "columns": columns, "intercept": True},
    )
    address = {"version": "%Y", "engine": {"kind": "dask", "scheduler": "tcp://10.0.0.1:8786"}}
    cluster = write_request(folders[2], request=address, id="cluster")
    unregistered = str(write_request(folders[1], request={"version": "%Y"}, id="unregistered"))
    request = str(write_request(tmp_path))
    for each in (Path(request), braces, cluster):
        read_registered(each)
    for arguments, problem in (
        ([request], families.PERIOD),
        ([str(braces)], families.DEPLOYMENT),
        ([unregistered], families.NOT_REGISTERED),
        ([str(cluster)], families.DASK),
        ([request, "--cron", "* * * * * *"], families.USAGE),
        ([request, "--cron", "soon"], families.USAGE),
        ([request, "--timezone", "Mars/Olympus"], families.USAGE),
        ([str(tmp_path / "none.yaml")], families.REQUEST_FILE),
    ):
        code, _, err = run_command("serve", *arguments, capsys=capsys)
        assert code == 2, err
        assert problem.code in err


def test_serve_names_a_server_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    code, _, err = run_command("serve", capsys=capsys)
    assert (code, families.SERVER.code in err) == (1, True)
    assert [signal.getsignal(number) for number in numbers] == before
