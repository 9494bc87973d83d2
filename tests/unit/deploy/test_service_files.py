"""The files in deploy/: what they promise about users, secrets, ports and commands."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from prefect.client.schemas.actions import WorkPoolCreate
from ruamel.yaml import YAML

from gramercy.cli.commands import load

DEPLOY = Path(__file__).parents[3] / "deploy"
COMPOSE: dict[str, Any] = YAML(typ="safe", pure=True).load(
    (DEPLOY / "compose" / "compose.yaml").read_text("utf-8")
)
SERVICES = sorted(COMPOSE["services"])
# Of the Compose specification, as far as they are used.
KEYS = (
    "build cap_drop command cpus depends_on entrypoint environment healthcheck hostname image "
    "logging mem_limit networks pids_limit ports read_only restart secrets security_opt "
    "stop_grace_period tmpfs user volumes"
)
UNIT = (DEPLOY / "systemd" / "gramercy.service").read_text("utf-8")


def job(pool: str) -> Any:
    """The job of a pool, which has no variables."""
    template = json.loads((DEPLOY / "work-pools" / f"{pool}.json").read_text("utf-8"))
    WorkPoolCreate(name="gramercy", type=pool, base_job_template=template)  # validates it
    assert template["variables"]["properties"] == {}
    assert "{{" not in json.dumps(template)
    return template["job_configuration"]


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_of_compose_is_confined(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service.keys() <= {*KEYS.split()}
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", service["user"])
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}
    assert "privileged" not in service
    assert {"mem_limit", "cpus", "pids_limit"} <= service.keys()
    assert service["logging"]["options"].keys() == {"max-size", "max-file"}
    assert all("size=" in each or "/run/" in each for each in service["tmpfs"])
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    assert {*service.get("secrets", ())} <= COMPOSE["secrets"].keys()
    assert {*service["networks"]} <= COMPOSE["networks"].keys()
    for volume in service.get("volumes", ()):
        source = re.sub(r"\$\{\w+:-(.*?)\}", r"\1", volume).partition(":")[0]
        assert source.startswith("./") or source in COMPOSE["volumes"]


def test_compose_gives_each_secret_to_one_service_and_the_archive_alone_to_the_web_server() -> None:
    services = COMPOSE["services"]
    for secret in ("ledger.pgpass", "prefect.pgpass"):
        assert sum(secret in each.get("secrets", ()) for each in services.values()) == 1
    mounted = [volume.partition(":")[0] for volume in services["catalogue"]["volumes"]]
    assert mounted == ["archive", "./nginx.conf"]
    assert all(volume.endswith(":ro") for volume in services["catalogue"]["volumes"])
    # The login is that of the server, and of the one client.
    holders = [
        name for name, each in services.items() if "prefect-login" in each.get("secrets", ())
    ]
    assert holders == ["prefect", "worker"]
    assert 'AUTH_STRING="$$(cat /run/secrets/prefect-login)"' in services["prefect"]["command"][-1]
    assert services["prefect"]["environment"]["PREFECT_SERVER_CSRF_PROTECTION_ENABLED"] == "true"
    assert "*" not in services["prefect"]["environment"]["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"]
    # Prefect sends the alerts to an address that the worker alone is given.
    assert "alerts-url" in services["worker"]["secrets"]
    assert (
        'GRAMERCY_ALERTS_URL="$$(cat /run/secrets/alerts-url)"' in services["worker"]["command"][-1]
    )
    assert "outside" in services["prefect"]["networks"]
    assert not (COMPOSE["networks"]["outside"] or {}).get("internal")
    for service in services.values():
        for key, value in service.get("environment", {}).items():
            assert "PASSWORD" not in key or key.endswith("_FILE")
            assert not re.search(r"//[^/@]*:[^/@]*@", str(value))


@pytest.mark.parametrize(
    "command",
    [" ".join(COMPOSE["services"]["worker"]["command"]), UNIT],
    ids=["compose", "systemd"],
)
def test_serve_is_called_with_options_that_it_has(command: str) -> None:
    (line,) = re.findall(r"gramercy serve (.*)", command)
    known = {option for each in load("serve").params for option in each.opts}
    options = set(re.findall(r"--[a-z]+", line))
    assert options
    assert options <= known
    # Variables reach the shell, and are set.
    for variable in re.findall(r'"\$+(\w+)"', line):
        assert f"{variable}=" in UNIT or variable in COMPOSE["services"]["worker"]["environment"]


def test_every_base_image_is_a_version_that_an_operator_can_replace_by_a_digest() -> None:
    built = COMPOSE["x-service"]["build"]["args"]["PYTHON_IMAGE"]
    images = {COMPOSE["services"][name]["image"] for name in SERVICES} - {"gramercy"}
    for image in (built, *images):
        assert re.fullmatch(r"\$\{[A-Z]+_IMAGE:-[a-z]+:\d+(\.\d+)?(-slim)?\}", image)
    assert built.split("-", 1)[1][:-1] in (DEPLOY / "Dockerfile").read_text("utf-8")


@pytest.mark.skipif(
    subprocess.call("docker compose version >/dev/null 2>&1", shell=True) != 0,
    reason="needs docker compose",
)
def test_docker_accepts_the_compose_file() -> None:
    path = DEPLOY / "compose" / "compose.yaml"
    command = ["docker", "compose", "--file", str(path), "config", "--quiet"]
    subprocess.run(command, check=True)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "gramercy.service"
    # Users of the machine and its services are looked up.
    unit.write_text(UNIT.replace("=gramercy\n", "=root\n").replace(" postgresql.service", ""))
    command = ["systemd-analyze", "verify", "--man=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_systemd_unit_is_hardened() -> None:
    for line in (
        *("User=gramercy", "NoNewPrivileges=true", "ProtectSystem=strict", "ProtectHome=true"),
        *("PrivateTmp=true", "CapabilityBoundingSet=", "StateDirectoryMode=0700"),
        "ReadWritePaths=/var/lib/gramercy",
        *("SystemCallErrorNumber=EPERM", "RestartPreventExitStatus=2"),
        *("MemoryMax=8G", "TasksMax=1024"),
        "SuccessExitStatus=143",  # of `gramercy serve` that SIGTERM ends
    ):
        assert line in UNIT.splitlines()


def test_image_has_no_root_no_secret_and_only_locked_packages() -> None:
    lines = (DEPLOY / "Dockerfile").read_text("utf-8").replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    final = steps[[i for i, step in enumerate(steps) if step[0] == "FROM"][-1] :]
    assert [rest for step, rest in final if step == "USER"] == ["10001:10001"]
    installs = [rest for step, rest in steps if "pip install" in rest]
    assert all("--no-deps" in each for each in installs)
    assert "--require-hashes" in installs[0]
    copied = [rest for step, rest in steps if step == "COPY"]
    allowed = (DEPLOY.parent / ".dockerignore").read_text("utf-8").splitlines()
    for each in copied:
        source = each.split()[0]
        assert source.startswith("--from=build") or f"!{source}" in allowed
    # Prefect writes its pages and caches; below a read-only root, they go to /tmp.
    (environment,) = [rest for step, rest in final if step == "ENV"]
    for name in ("PREFECT_HOME", "PREFECT_SERVER_UI_STATIC_DIRECTORY", "NUMBA_CACHE_DIR"):
        assert f"{name}=/tmp/" in environment


def test_docker_jobs_are_confined() -> None:
    container = job("docker")["container_create_kwargs"]
    assert container["user"] == "10001:10001"
    assert container["read_only"] is True
    assert container["cap_drop"] == ["ALL"]
    assert {"nano_cpus", "pids_limit", "log_config"} <= container.keys()
    assert job("docker")["mem_limit"]
    assert job("docker")["privileged"] is False


def test_kubernetes_jobs_are_confined() -> None:
    pod = job("kubernetes")["job_manifest"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    volumes = {each["name"]: each for each in pod["volumes"]}
    for container in (*pod["initContainers"], *pod["containers"]):
        confined = container["securityContext"]
        assert confined["readOnlyRootFilesystem"] is True
        assert confined["allowPrivilegeEscalation"] is False
        assert confined["capabilities"] == {"drop": ["ALL"]}
        assert {each["name"] for each in container["volumeMounts"]} <= volumes.keys()
    assert "secret" in volumes["secret-keys"]
    assert volumes["keys"] == {"name": "keys", "emptyDir": {"medium": "Memory"}}


@pytest.mark.parametrize("script", ["secrets.sh", "databases.sh"])
def test_scripts_parse(script: str) -> None:
    subprocess.run(["sh", "-n", str(DEPLOY / "compose" / script)], check=True)


def test_passwords_are_random_private_and_kept(tmp_path: Path) -> None:
    script = tmp_path / "secrets.sh"
    text = (DEPLOY / "compose" / "secrets.sh").read_text("utf-8")
    script.write_text(text.replace("$(id -u)", "1"))  # not as root: the users do not exist here
    contents = []
    for _ in range(2):
        subprocess.run(["sh", str(script)], check=True, capture_output=True)
        files = sorted((tmp_path / "secrets").iterdir())
        contents.append([path.read_text() for path in files])
        assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert contents[0] == contents[1]
    assert [path.name for path in files] == sorted(COMPOSE["secrets"])
    passwords = {path.read_text() for path in files if path.name.endswith("-password")}
    assert {len(each) for each in passwords} == {48}
    assert len(passwords) == 3


@pytest.fixture(params=[True, False], ids=["forgery protection", "plain"])
def prefect_api(request: pytest.FixtureRequest) -> Iterator[tuple[str, dict[str, Any]]]:
    """A server with these answers, by path, for those with the login ``a:b``."""
    answers: dict[str, Any] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/csrf-token"):
                answers[self.path] = {"token": "once"}
            self._answer(422 if "/csrf" in self.path and not request.param else 200)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            stated = self.headers["Prefect-Csrf-Client"] and self.headers["Prefect-Csrf-Token"]
            self._answer(200 if stated == ("once" if request.param else None) else 403)

        def _answer(self, status: int) -> None:
            allowed = self.path == "/health" or self.headers["Authorization"] == "Basic YTpi"
            self.send_response(status if allowed else 401)
            self.end_headers()
            self.wfile.write(json.dumps(answers[self.path]).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", answers
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_health_of_server_and_of_this_worker(prefect_api: tuple[str, dict[str, Any]]) -> None:
    api, answers = prefect_api
    workers = "/work_pools/gramercy/workers/filter"
    own, other = socket.gethostname(), "another machine"

    def health(*words: str, url: str = api, login: str = "a:b") -> int:
        command = [sys.executable, "-I", str(DEPLOY / "health.py"), *words]
        environ = {"PREFECT_API_URL": url, "PREFECT_API_AUTH_STRING": login}
        return subprocess.run(command, env=environ, check=False, capture_output=True).returncode

    answers |= {
        "/health": True,
        workers: [{"name": other, "status": "ONLINE"}, {"name": own, "status": "OFFLINE"}],
    }
    assert health("server") == health("server", login="") == 0
    assert health("worker", "gramercy") == 1
    assert health("worker", "gramercy", other) == 0
    answers[workers] = [{"name": own, "status": "ONLINE"}]
    assert health("worker", "gramercy") == 0
    assert health("worker", "gramercy", other) == 1
    assert health("worker", "gramercy", login="") == health("worker", login="a:c") == 1
    assert health("server", url="http://127.0.0.1:1") == 1
