"""The Prefect server that `gramercy serve` uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from gramercy.cli.prefect_processes import server
from gramercy.common.home import Home
from gramercy.schemas.problems.command_line import server_not_answering
from tests.support.problems import raises


@pytest.mark.parametrize("url", ["localhost", "file:///etc", "ftp://127.0.0.1/api"])
def test_only_a_web_address_is_a_server(
    url: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", url)
    with raises(server_not_answering, url=url), server(Home(home), 4200):
        pass
