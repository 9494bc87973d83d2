"""Who may make `gramercy serve` do what: strangers nothing, a login only what a contract allows."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import websockets
from prefect.exceptions import ParameterBindError
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings
from prefect.workers.base import BaseJobConfiguration
from prefect.workers.process import ProcessJobConfiguration
from pydantic import ConfigDict

from gramercy.flows import run
from gramercy.flows.audit import audit
from gramercy.flows.deployments import job_template
from gramercy.flows.estimate import estimate
from gramercy.flows.release import release
from gramercy.flows.report import report
from gramercy.flows.untrusted import MOST_ESTIMATES, estimate_minutes
from gramercy.flows.worker import FixedJob
from gramercy.pipeline.context import Context
from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError, UnknownRelease
from tests.support.browser import Browser, needs_chromium
from tests.support.factories import (
    MECHANISM,
    read_plan,
    read_registered,
    run_command,
    run_json,
    run_release,
    write_request,
)
from tests.support.problems import raises
from tests.support.servers import (
    ROOT,
    Login,
    free_port,
    is_healthy,
    post,
    prefect_environment,
    running,
    serve,
    wait_for,
)

DEPLOY = ROOT / "deploy" / "work-pools"
CELL = "271.8281828"
FINAL = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


@dataclasses.dataclass(frozen=True)
class Served:
    """`gramercy serve` in a process of its own.

    Parameters
    ----------
    home, folder
        Its home, and the folder of table, contract and request.
    login
        Its API, for somebody with a login.
    log, process
        What it has printed, and its process.
    """

    home: Path
    folder: Path
    login: Login
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def origin(self) -> str:
        return self.login.api.removesuffix("/api")

    @property
    def release(self) -> dict[str, Any]:
        """The deployment of releases."""
        return self.deployment("release.release")

    def deployment(self, flow: str) -> dict[str, Any]:
        deployments = post(self.login, "/deployments/filter", {})
        (found,) = (x for x in deployments if x["entrypoint"] == f"gramercy.flows.{flow}")
        return dict(found)

    def run(self, deployment: str, body: Any) -> dict[str, Any]:
        """Create a run of a deployment, and wait for its end."""
        made = post(self.login, f"{deployment}/create_flow_run", body)
        return self.ended(made["id"])

    def state(self, run: str) -> dict[str, Any]:
        filters = {"flow_runs": {"id": {"any_": [run]}}}
        (found,) = post(self.login, "/flow_runs/filter", filters)
        return dict(found["state"] or {"type": ""})

    def ended(self, run: str) -> dict[str, Any]:
        wait_for(lambda: self.state(run)["type"] in FINAL, 120, self.log)
        return self.state(run)

    def charges(self) -> int:
        return len(Context.default().ledger.charges("toy"))


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("door")
    with pytest.MonkeyPatch.context() as patch:
        home = folder / "home"
        patch.setenv("GRAMERCY_HOME", str(home))
        budget = {"epsilon": 3.0, "delta": 1e-5, "per_release": 1.0}
        request = write_request(
            folder,
            budget=budget,
            request={"version": "%Y-%m-%d-%H%M", "mechanism": MECHANISM | {"epsilon": 0.1}},
        )
        table = (folder / "table.csv").read_text().splitlines()
        (folder / "table.csv").write_text("\n".join([table[0], f"{CELL},0,0", *table[2:]]))
        (folder / "table.csv").chmod(0o600)
        read_registered(request)
        port = free_port()
        environ = prefect_environment(folder, home, port)
        api, log = environ.pop("PREFECT_API_URL"), folder / "serve.log"
        command = ("gramercy", "serve", str(request), "--port", str(port))
        with running(environ, log, *command) as process:
            wait_for(lambda: is_healthy(api), 180, log)
            login = Login(api, (home / "serve" / f"{port}.login").read_text())
            wait_for(lambda: len(post(login, "/deployments/filter", {})) == 5, 240, log)
            wait_for(lambda: "started" in log.read_text(), 240, log)
            yield Served(home, folder, login, log, process)


@pytest.fixture(autouse=True)
def home_of_door(door: Served, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("GRAMERCY_HOME", str(door.home))


# The operator.


def test_health_check_with_the_login_knows_this_worker(door: Served) -> None:
    def health(*name: str, login: str | None = door.login.login) -> int:
        command = [sys.executable, "-I", ROOT / "deploy" / "health.py", "worker", "gramercy", *name]
        environ = {"PREFECT_API_URL": door.login.api, "PREFECT_API_AUTH_STRING": login or ""}
        return subprocess.run(command, env=environ, check=False, capture_output=True).returncode

    wait_for(lambda: health() == 0, 60, door.log)
    assert health("another machine") == 1
    assert health(login=None) == 1


# Somebody on the machine without a login.


def test_login_is_random_private_and_not_in_the_log(door: Served) -> None:
    folder = door.home / "serve"
    assert folder.stat().st_mode & 0o777 == 0o700
    for file in folder.glob("*.login"):
        assert file.stat().st_mode & 0o777 == 0o600
    assert str(door.login.login) not in door.log.read_text()
    assert str(door.login.login) not in (folder / "server.log").read_text()
    assert len(str(door.login.login)) > 40
    command = Path(f"/proc/{door.process.pid}/cmdline")
    assert str(door.login.login).encode() not in command.read_bytes()
    for file in (door.home / "contracts").iterdir():
        assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("login", [None, "gramercy:", "gramercy:wrong", ":", "admin:pass"])
def test_nothing_is_answered_without_the_login(door: Served, login: str | None) -> None:
    headers = {"Content-Type": "application/json", "Origin": "https://evil.example"}
    if login is not None:
        headers["Authorization"] = f"Basic {login}"
    run = f"/deployments/{door.release['id']}/create_flow_run"
    for method, path in (
        ("POST", "/deployments/filter"),
        ("POST", "/flow_runs/filter"),
        ("POST", run),
        ("GET", "/admin/settings"),
        ("GET", "/csrf-token?client=x"),
        ("POST", "/events"),
        ("PATCH", "/work_pools/gramercy"),
        ("POST", "/work_pools/gramercy/get_scheduled_flow_runs"),
        ("DELETE", f"/deployments/{door.release['id']}"),
    ):
        body = b"{}" if method != "GET" else None
        request = urllib.request.Request(door.login.api + path, body, headers, method=method)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=300)
        with refused.value as answer:
            assert answer.code in {401, 403}, path
            assert answer.headers["Access-Control-Allow-Origin"] in {None, "*"}
            assert b"toy" not in answer.read()


def test_no_event_is_taken_from_a_stranger(door: Served) -> None:
    """An event of a release would start estimates and reports."""

    async def send(path: str, *messages: Any, protocols: list[str] | None = None) -> None:
        url = door.login.api.replace("http", "ws") + path
        async with websockets.connect(url, subprotocols=protocols) as socket:  # type: ignore[arg-type]
            for message in messages:
                await socket.send(json.dumps(message))
            await asyncio.wait_for(socket.recv(), 30)

    event = {"event": "release.published", "resource": {"prefect.resource.id": "x"}}
    for path in ("/events/in", "/events/out", "/logs/out", "/task_runs/subscriptions/scheduled"):
        for messages, protocols in (
            ((event,), None),
            (({"type": "auth", "token": None}, event), ["prefect"]),
            (({"type": "auth", "token": "gramercy:wrong"}, event), ["prefect"]),
        ):
            with pytest.raises(websockets.exceptions.WebSocketException):
                asyncio.run(send(path, *messages, protocols=protocols))


def test_no_page_of_another_origin_is_allowed(door: Served) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for path in ("/deployments/filter", f"/deployments/{door.release['id']}/create_flow_run"):
        request = urllib.request.Request(door.login.api + path, headers=headers, method="OPTIONS")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=300)
        refused.value.close()
        assert refused.value.headers["Access-Control-Allow-Origin"] is None
    # Even with the login, which a page cannot read, a request without a token changes nothing.
    forged = dict(door.login.headers)
    del forged["Prefect-Csrf-Token"]
    request = urllib.request.Request(
        f"{door.login.api}/deployments/filter",
        b"{}",
        {**forged, "Content-Type": "application/json"},
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=300)
    refused.value.close()
    assert refused.value.code == 403


HOSTILE_PAGE = """<!doctype html><title>cats</title><body><pre id=o></pre><script>
const api = %s, run = %s, out = document.getElementById("o");
async function attack(name, body) {
  try { out.textContent += name + ":" + (await body()) + "\\n"; }
  catch (error) { out.textContent += name + ":error\\n"; }
}
const json = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
(async () => {
  await attack("read", async () => (await (await fetch(api + "/deployments/filter", json)).text()));
  await attack("run", async () => (await (await fetch(api + run, json)).text()));
  await attack("blind", async () => (await fetch(api + run, { method: "POST", mode: "no-cors",
    headers: { "content-type": "text/plain" }, body: "{}" })).type);
  await attack("socket", () => new Promise((done) => {
    const socket = new WebSocket(api.replace("http", "ws") + "/events/in");
    socket.onopen = () => done("open"); socket.onclose = () => done("closed"); }));
  document.title = "done";
})();
</script>"""


@needs_chromium
def test_hostile_page_in_the_browser_of_a_steward_who_is_logged_in(
    door: Served, tmp_path: Path
) -> None:
    """The steward logs in, sees the runs, and opens a page of another origin."""
    run = f"/deployments/{door.release['id']}/create_flow_run"
    page = tmp_path / "pages" / "evil.html"
    page.parent.mkdir()
    page.write_text(HOSTILE_PAGE % (json.dumps(door.login.api), json.dumps(run)))
    before = len(post(door.login, "/flow_runs/filter", {}))
    with serve(page.parent) as address, Browser(tmp_path) as browser:
        browser.open(door.origin)
        browser.wait_for(lambda: browser.shows("Login"))
        browser.evaluate("document.querySelector('input').focus()")
        browser.type("gramercy:wrong")
        browser.wait_for(lambda: browser.shows("Invalid credentials"))
        browser.evaluate("document.querySelector('input').select()")
        browser.type(str(door.login.login))
        browser.wait_for(lambda: browser.shows("Logout"))
        for path, shown in (
            ("/deployments", "audit"),
            ("/runs", "Flow runs"),
            ("/work-pools", "Rea"),
        ):
            browser.open(f"{door.origin}/v2{path}")
            browser.wait_for(lambda text=shown: browser.shows(text))  # type: ignore[misc]
        browser.open(f"{address}/evil.html")
        browser.wait_for(lambda: browser.evaluate("document.title") == "done")
        text = browser.evaluate("document.body.innerText")
    assert text.split() == ["read:error", "run:error", "blind:opaque", "socket:closed"]
    scheduled = post(door.login, "/flow_runs/filter", {})
    assert len([run for run in scheduled if not run["auto_scheduled"]]) <= before


# Somebody with a login.


def attempts(folder: Path) -> dict[str, dict[str, Any]]:
    """Variables of a job that would run a command."""
    command = f'sh -c "id > {folder}/PWNED"'
    code = folder / "code"
    code.mkdir(exist_ok=True)
    for name in ("sitecustomize", "usercustomize", "numpy"):
        (code / f"{name}.py").write_text(f"open({str(folder / 'PWNED')!r}, 'w')")
    return {
        "command": {"command": command},
        "environment": {"env": {"PYTHONPATH": str(code), "BASH_ENV": str(code / "numpy.py")}},
        "dotted environment": {"env.PYTHONPATH": str(code)},
        "folder": {"working_dir": str(code)},
        "image": {"image": "evil", "volumes": ["/:/host"], "container_create_kwargs": {}},
        "manifest": {"job_manifest": {}, "job_configuration": {"command": command}},
    }


def test_no_deployment_names_the_code_that_is_executed(
    door: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its entrypoint, nor its pull steps, nor the job template of the pool."""
    marker = tmp_path / "PWNED"
    code = tmp_path / "evil.py"
    code.write_text(
        f"open({str(marker)!r}, 'w')\nfrom prefect import flow\n@flow\ndef release(): pass\n"
        "@flow\ndef other(): pass\n"
    )
    shell = {"prefect.deployments.steps.run_shell_script": {"script": f"touch {marker}"}}
    template = {
        "job_configuration": {"command": f"touch {marker}", "env": {"PYTHONPATH": str(tmp_path)}},
        "variables": {"type": "object", "properties": {}},
    }
    pool = door.release["work_pool_name"]
    earlier = {"base_job_template": job_template()}

    def deployment(flow: str, pool: str | None) -> str:
        facts = {
            "name": "evil",
            "flow_id": post(door.login, "/flows/", {"name": flow})["id"],
            "work_pool_name": pool,
            "entrypoint": f"{code}:{flow}",
            "pull_steps": [shell],
            "path": str(tmp_path),
            "enforce_parameter_schema": False,
        }
        return f"/deployments/{post(door.login, '/deployments/', facts)['id']}"

    post(door.login, f"/work_pools/{pool}", {"base_job_template": template}, method="PATCH")
    try:
        state = door.run(deployment("release", pool), {})
    finally:
        post(door.login, f"/work_pools/{pool}", earlier, method="PATCH")
    assert state["type"] == "CRASHED"  # Gramercy's release has run, without a request
    # A flow of another name, as the worker's program runs it.
    other = post(door.login, f"{deployment('other', None)}/create_flow_run", {})["id"]
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", other)
    monkeypatch.setattr(gc, "disable", gc.enable)
    with temporary_settings(
        {PREFECT_API_URL: door.login.api, PREFECT_API_AUTH_STRING: door.login.login}
    ):
        run.main()
    state = door.state(other)
    assert (state["type"], families.DEPLOYMENT.code in state["message"]) == ("FAILED", True)
    assert not marker.exists()


def hostile_requests(folder: Path) -> dict[str, tuple[dict[str, Any], str]]:
    """What a run must not ask for, and the code with which it is refused."""
    evil = folder / "evil"
    evil.mkdir(exist_ok=True)
    write_request(evil, source=str(folder / "table.csv"), budget={"epsilon": 999.0, "delta": 1e-5})
    unregistered = families.NOT_REGISTERED.code
    many = [{"name": "ridge"}] * (MOST_ESTIMATES + 1)
    floating = {"name": "wishart", "epsilon": 0.1, "delta": 1e-6, "arithmetic": "floating-point"}
    scheduler = {"kind": "dask", "scheduler": "tcp://127.0.0.1:9"}
    return {
        "path": ({"dataset": str(evil / "contract.yaml")}, unregistered),
        "parent": ({"dataset": f"../evil/{'../' * 20}{evil}/contract"}, unregistered),
        "absolute": ({"dataset": str(evil / "contract")}, unregistered),
        "url": ({"dataset": "https://evil.example/contract.yaml"}, unregistered),
        "unknown": ({"dataset": "elsewhere"}, unregistered),
        "engine": ({"engine": scheduler}, families.DASK.code),
        "estimates": ({"estimates": many}, families.ESTIMATES.code),
        "floating-point": ({"mechanism": floating}, families.ARITHMETIC.code),
        "epsilon": (
            {"mechanism": MECHANISM | {"epsilon": 2.99}},
            families.EXCEEDED.code,
        ),
    }


def test_run_refuses_what_only_a_steward_may_ask_for(door: Served) -> None:
    """One of the requests above; the flows refuse them all: see below."""
    before = door.charges()
    valid = door.release["parameters"]["request"]
    assert valid["dataset"] == "toy"
    assert str(door.folder / "contract.yaml") not in json.dumps(door.release)
    changes, code = hostile_requests(door.folder)["epsilon"]
    parameters = {"request": valid | {"version": "attack"} | changes}
    state = door.run(f"/deployments/{door.release['id']}", {"parameters": parameters})
    assert (state["type"], code in state["message"]) == ("FAILED", True), state
    assert door.charges() == before


def processes_that_mention(word: str) -> list[str]:
    """Ids of running processes with a word in their command line or their environment."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            texts = [(each / name).read_bytes() for name in ("cmdline", "environ")]
            if each.name != str(os.getpid()) and any(word.encode() in text for text in texts):
                found.append(each.name)
    return found


def waiting_run(door: Served) -> str:
    """The id of a run that waits for the lock of its data set, which the test holds."""
    made = post(door.login, f"/deployments/{door.release['id']}/create_flow_run", {})
    wait_for(lambda: door.state(made["id"])["type"] == "RUNNING", 240, door.log)
    return str(made["id"])


def test_run_is_cancelled_and_leaves_no_process(door: Served) -> None:
    """As from Prefect's pages."""
    with Context.default().ledger.lock("toy"):
        run = waiting_run(door)
        cancelling = {"state": {"type": "CANCELLING"}, "force": True}
        post(door.login, f"/flow_runs/{run}/set_state", cancelling)
        wait_for(lambda: door.state(run)["type"] == "CANCELLED", 120, door.log)
    assert not processes_that_mention(run)


def test_release_within_the_limits_is_published(door: Served, tmp_path: Path) -> None:
    """Whatever the variables of its job: none decides what is executed."""
    before = door.charges()
    variables = {key: value for each in attempts(tmp_path).values() for key, value in each.items()}
    deployment = f"/deployments/{door.release['id']}"
    post(door.login, deployment, {"job_variables": variables}, method="PATCH")
    state = door.run(deployment, {"job_variables": variables})
    post(door.login, deployment, {"job_variables": {}}, method="PATCH")
    assert state["type"] == "COMPLETED"
    assert not (tmp_path / "PWNED").exists()
    assert door.charges() == before + 1
    archive = Context.default().archive

    def has_report() -> bool:
        return any(archive.reports(*each) for each in archive.releases("toy"))

    wait_for(has_report, 120, door.log)  # started by an event
    for place in (door.log, door.home / "serve" / "server.log"):
        assert CELL not in place.read_text()


def test_estimates_that_run_for_hours_are_ended(door: Served, tmp_path: Path) -> None:
    """By the kernel, also within compiled code: here before the first estimate."""
    flow = post(door.login, "/flows/", {"name": "estimate"})
    parameters = {"release": "toy/v1-r1", "estimates": []}
    run = post(door.login, "/flow_runs/", {"flow_id": flow["id"], "parameters": parameters})
    done = subprocess.run(
        [sys.executable, "-m", "gramercy.flows.run"],
        env={
            **os.environ,
            "PREFECT_API_URL": door.login.api,
            "PREFECT_API_AUTH_STRING": str(door.login.login),
            "PREFECT_HOME": str(tmp_path),
            "PREFECT__FLOW_RUN_ID": run["id"],
            "GRAMERCY_ESTIMATE_MINUTES": "0.0001",
        },
        check=False,
        capture_output=True,
    )
    assert done.returncode == -signal.SIGALRM, done.stderr


def test_sigterm_stops_every_process(door: Served) -> None:
    """As by a service manager: none goes on charging. It ends the door: no test uses it later."""
    port = door.origin.rpartition(":")[2]
    # Its web pages query this server, on any port.
    with urllib.request.urlopen(f"{door.origin}/ui-settings", timeout=30) as reply:
        assert json.loads(reply.read())["api_url"] == door.login.api
    before = door.charges()
    with Context.default().ledger.lock("toy"):
        run = waiting_run(door)
        logged = len(door.log.read_text())
        door.process.send_signal(signal.SIGTERM)
        door.process.wait(60)
        assert not processes_that_mention(run)
    assert door.process.returncode == 128 + signal.SIGTERM
    assert not processes_that_mention(f"127.0.0.1:{port}")
    assert not processes_that_mention(f"--port\0{port}")
    assert not is_healthy(door.login.api)
    assert "Traceback" not in door.log.read_text()[logged:]
    assert door.charges() == before


# The same rules without a server.


@pytest.mark.parametrize("pool", ["process", "docker", "kubernetes"])
def test_no_job_template_takes_a_variable_that_decides_what_is_executed(
    pool: str, tmp_path: Path
) -> None:
    template = json.loads((DEPLOY / f"{pool}.json").read_text("utf-8"))

    class AnyJob(BaseJobConfiguration):
        model_config = ConfigDict(extra="allow")

    kind = ProcessJobConfiguration if pool == "process" else AnyJob

    def job(values: dict[str, Any]) -> dict[str, Any]:
        made = asyncio.run(kind.from_template_and_values(template, values, client=object()))
        return dict(made.model_dump())

    fixed = job({})
    assert "gramercy.flows.run" in json.dumps(fixed)
    for name, values in attempts(tmp_path).items():
        assert job(values) == fixed, name


def test_worker_takes_nothing_from_the_server(tmp_path: Path) -> None:
    evil = {"job_configuration": {"command": "id", "env": {"A": "B"}}, "variables": {}}
    for values in attempts(tmp_path).values():
        job = asyncio.run(FixedJob.from_template_and_values(evil, values))
        assert (job.command, job.env) == (None, {})


def test_limit_of_a_single_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GRAMERCY_HOME", str(tmp_path / "other"))
    budget = {"epsilon": 3.0, "delta": 1e-5, "per_release": 1.0}
    small = write_request(tmp_path, budget=budget)
    done = run_release(small)
    mechanism = MECHANISM | {"epsilon": 2.0}
    large = write_request(
        tmp_path, budget=budget, request={"version": "v2", "mechanism": mechanism}
    )
    with raises(families.EXCEEDED, dataset="toy", limit=1.0):
        read_plan(large)
    code, _, err = run_command("release", str(large), "--yes", capsys=capsys)
    assert (code, families.EXCEEDED.code in err) == (2, True)
    assert len(Context.default().ledger.charges("toy")) == 1
    # The limit is not a term of the data set. What was published before stays answered.
    lower = write_request(tmp_path, budget=budget | {"per_release": 0.01})
    assert run_release(lower) == done


def test_registered_contract_is_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "other"
    monkeypatch.setenv("GRAMERCY_HOME", str(home))
    request = write_request(tmp_path)
    contract = tmp_path / "contract.yaml"
    facts = run_json("register", contract, capsys=capsys)
    registered = home / "contracts" / "toy.yaml"
    assert facts == {"dataset": "toy", "contract": str(registered)}
    assert registered.stat().st_mode & 0o777 == 0o600
    assert read_registered(request).dataset == "toy"
    write_request(tmp_path, title="Another")
    with raises(families.NOT_REGISTERED, dataset="toy"):
        from gramercy.pipeline.plan.request_files import read_request, registered_request

        registered_request(Context.default().home, read_request(request))
    before = registered.read_bytes()
    code, _, err = run_command("register", contract, capsys=capsys)
    assert (code, families.NOT_REGISTERED.code in err) == (2, True)
    assert registered.read_bytes() == before
    run_json("register", contract, "--replace", capsys=capsys)
    assert registered.read_bytes() != before


def test_flows_check_their_parameters_themselves(
    prefect_server: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever started them: the server's own checks are for its forms."""
    monkeypatch.setenv("GRAMERCY_HOME", str(tmp_path / "other"))
    request = read_registered(write_request(tmp_path))
    for name, (changes, code) in hostile_requests(tmp_path).items():
        hostile = type(request).model_validate(request.model_dump(mode="json") | changes)
        if name == "epsilon":
            continue
        with pytest.raises(GramercyError) as refused:
            release(hostile)
        assert refused.value.code == code, name
    for flow in (estimate, report):
        with raises(families.ESTIMATES, most=MOST_ESTIMATES):
            flow("toy/v1-r1", request.estimates * MOST_ESTIMATES)
        for name in ("../../etc/x", f"toy/../../../{tmp_path}", "toy/v1-r1/../..", "/etc/passwd"):
            with pytest.raises(UnknownRelease):
                flow(name, ())
    with pytest.raises(ParameterBindError):
        audit(folder=tmp_path / "written")  # type: ignore[call-arg]  no folder to write to
    assert not (tmp_path / "written").exists()
    assert not (tmp_path / "other" / "ledger.sqlite").exists()


@pytest.mark.parametrize("minutes", ["0", "-1", "inf", "nan", "long"])
def test_limit_on_estimates_is_a_positive_number(
    minutes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAMERCY_ESTIMATE_MINUTES", minutes)
    with raises(families.SETTING):
        estimate_minutes()
