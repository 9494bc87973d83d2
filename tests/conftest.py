"""One Prefect for the whole session, and a home of its own for every test."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.home import Home
from tests.databases import KINDS, fresh

# Before anything imports Prefect, which reads its settings once.
os.environ["PREFECT_HOME"] = tempfile.mkdtemp(prefix="gramercy-prefect-")
os.environ["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"] = "120"
os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
os.environ["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "CRITICAL"
os.environ.pop("PREFECT_API_URL", None)
for _name in ("GRAMERCY_HOME", "GRAMERCY_LEDGER_URL", "GRAMERCY_ARCHIVE_URL"):
    os.environ.pop(_name, None)


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
