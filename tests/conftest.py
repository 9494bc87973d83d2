"""One Prefect for the whole session, and a home of its own for every test."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# Before anything imports Prefect, which reads its settings once.
os.environ["PREFECT_HOME"] = tempfile.mkdtemp(prefix="gramercy-prefect-")
os.environ["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"] = "120"
os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
os.environ["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "CRITICAL"
os.environ.pop("PREFECT_API_URL", None)
os.environ.pop("GRAMERCY_HOME", None)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home; nothing a test does reaches the user's own."""
    folder = tmp_path / "home"
    monkeypatch.setenv("GRAMERCY_HOME", str(folder))
    return folder


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
