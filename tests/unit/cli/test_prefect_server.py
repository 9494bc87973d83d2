"""The Prefect server that `gramercy serve` uses."""

from __future__ import annotations

import contextlib
import urllib.request
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from gramercy.cli import prefect_processes
from gramercy.common.home import Home

API = "http://prefect.example/api"


def test_a_busy_server_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that runs the flows of others, on the same machine, may need ten seconds to answer."""

    @contextlib.contextmanager
    def answer(_: str, timeout: float) -> Iterator[SimpleNamespace]:
        if timeout < 10:
            raise TimeoutError
        yield SimpleNamespace(status=200)

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    monkeypatch.setenv("PREFECT_API_URL", API)
    with prefect_processes.server(Home.default(), 4200) as (api, process):
        assert (api, process) == (API, None)
