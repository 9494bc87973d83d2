"""One Prefect for the whole session, and a home of its own for every test."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from gramercy.common.home import Home
from tests.support.databases import KINDS, fresh
from tests.support.faults.forkserver import Zygote

# Before anything imports Prefect, which reads its settings once.
os.environ["PREFECT_HOME"] = tempfile.mkdtemp(prefix="gramercy-prefect-")
os.environ["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"] = "120"
os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
os.environ["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "CRITICAL"
# Nothing is scheduled on the session's own server; integration/test_server.py has real ones.
_SERVICES = "SCHEDULER LATE_RUNS PAUSE_EXPIRATIONS CANCELLATION_CLEANUP FOREMAN REPOSSESSOR"
for _name in f"{_SERVICES} CLEANUP_RECONCILER TRIGGERS".split():
    os.environ[f"PREFECT_SERVER_SERVICES_{_name}_ENABLED"] = "false"
os.environ.pop("PREFECT_API_URL", None)
for _name in ("GRAMERCY_HOME", "GRAMERCY_LEDGER_URL", "GRAMERCY_ARCHIVE_URL"):
    os.environ.pop(_name, None)


# Files that take long, most of it waiting: they come first, so that nothing waits for them at last.
LONG = ("test_server", "test_14_", "test_22_", "test_auditing", "test_16_", "test_24_", "test_cli")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long files first; `make test` keeps this order."""
    place = {name: turn for turn, name in enumerate(LONG)}

    def turn(item: pytest.Item) -> int:
        return next((place[name] for name in LONG if item.path.name.startswith(name)), len(LONG))

    items.sort(key=turn)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home; nothing a test does reaches the user's own."""
    folder = tmp_path / "home"
    monkeypatch.setenv("GRAMERCY_HOME", str(folder))
    return folder


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a new ledger may lie: a test that asks for it runs on every kind of database."""
    return fresh(request.param, tmp_path)


@pytest.fixture(params=KINDS)
def any_home(request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The home, with its ledger in every kind of database."""
    if request.param != "sqlite":
        monkeypatch.setenv("GRAMERCY_LEDGER_URL", str(fresh(request.param, home)))
    return Home.default()


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[None]:
    """A temporary Prefect database and server."""
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
    from prefect.testing.utilities import prefect_test_harness

    with (
        prefect_test_harness(server_startup_timeout=120),
        temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}),
    ):
        yield


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """A real S3 server on this machine, with a bucket; its URL."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        environ.setenv("AWS_ACCESS_KEY_ID", "nobody")
        environ.setenv("AWS_SECRET_ACCESS_KEY", "VERYSECRET")
        environ.setenv("AWS_DEFAULT_REGION", "us-east-1")
        environ.setenv("AWS_EC2_METADATA_DISABLED", "true")
        import boto3

        boto3.client("s3").create_bucket(Bucket="archives")
        yield "s3://archives"
    server.stop()


@pytest.fixture(params=["local", "memory", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an archive may lie that is not there yet."""
    if request.param == "local":
        return str(tmp_path / "elsewhere")
    if request.param == "memory":
        return f"memory://{uuid.uuid4().hex}"
    return f"{request.getfixturevalue('s3')}/{uuid.uuid4().hex}"


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """A process that forks another for whatever may die of it."""
    made = Zygote()
    yield made
    made.close()
