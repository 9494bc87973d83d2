"""Commands share one Prefect server, which ends by itself; what they repeat needs no server."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gramercy.cli.prefect_server import start_ahead
from gramercy.flows.server_process import main
from gramercy.schemas import families
from tests.support.factories import write_request
from tests.support.problems import raises
from tests.support.servers import copy_migrated_database

pytestmark = pytest.mark.slow

# A command whose server is killed between charge and draw.
WITHOUT_SERVER = """
import json, os, pathlib, signal, sys
from gramercy.pipeline.publish import drawing
from gramercy.cli import main

def denoise(*args, **named):
    (record,) = pathlib.Path(os.environ["PREFECT_HOME"]).glob("gramercy/*.json")
    os.kill(json.loads(record.read_bytes())["process"], signal.SIGKILL)
    return draw(*args, **named)

draw, drawing.denoise = drawing.denoise, denoise
main.run()
"""


@pytest.fixture
def prefect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of Prefect; its server is ended after the test."""
    folder = tmp_path / "prefect"
    folder.mkdir()
    copy_migrated_database(folder)
    monkeypatch.setenv("PREFECT_HOME", str(folder))
    monkeypatch.setenv("GRAMERCY_SERVER_MINUTES", "10")
    yield folder
    for record in records(folder):
        with contextlib.suppress(LookupError):
            os.kill(server(record), signal.SIGKILL)


def records(folder: Path) -> list[Path]:
    return sorted((folder / "gramercy").glob("*.json"))


def server(record: Path) -> int:
    """The process id of the server with this record."""
    process: int = json.loads(record.read_bytes())["process"]
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes().decode().split("\0")
    except FileNotFoundError:
        raise LookupError(record) from None
    if "gramercy.flows.server_process" not in command:
        raise LookupError(record)
    return process


def run(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "gramercy", *arguments, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def status(url: str, secret: str | None = None) -> int:
    """Of a request for the server's version."""
    request = urllib.request.Request(f"{url}/admin/version")
    if secret is not None:
        request.add_header("Authorization", f"Basic {base64.b64encode(secret.encode()).decode()}")
    try:
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_commands_share_a_server(
    prefect: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was killed is replaced; a request that was answered before needs none."""
    request = str(write_request(tmp_path))
    first = run("release", request, "--yes", "--despite")
    (record,) = records(prefect)
    facts = json.loads(record.read_bytes())
    assert server(record) == facts["process"]
    assert record.stat().st_mode & 0o077 == 0
    assert status(facts["url"], facts["login"]) == 200
    assert status(facts["url"]) == 401
    # The next command shares it, and it is killed between charge and draw: ending the command there
    # would spend the charge, so it publishes.
    later = write_request(tmp_path, request={"version": "v2"})
    arguments = ("release", str(later), "--yes", "--despite")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SERVER, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == families.SERVER.kind.exit_code, done.stderr
    assert families.SERVER.code in done.stderr
    assert records(prefect) == [record]
    assert json.loads(record.read_bytes()) == facts
    write_request(tmp_path)
    assert run("release", request, "--yes", "--despite") == first | {"replayed": True}
    with pytest.raises(LookupError):
        server(record)
    # Another replaces it, and ends by itself when no command uses it any more.
    monkeypatch.setenv("GRAMERCY_SERVER_MINUTES", "0.01")
    write_request(tmp_path, request={"version": "v2"})
    assert run(*arguments)["replayed"]
    process = json.loads(record.read_bytes())["process"]
    assert process != facts["process"]
    end = time.monotonic() + 120
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < end
        time.sleep(0.2)


def test_server_whose_folder_was_removed_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No command can find it any more, and none would end it."""
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: pytest.fail("it serves"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        main(listener.fileno(), str(tmp_path / "gone/x.users"), "10")


@pytest.mark.parametrize("minutes", ["-1", "inf", "nan", "long", ""])
def test_minutes_are_a_number_that_is_not_negative(
    minutes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAMERCY_SERVER_MINUTES", minutes)
    with raises(families.SETTING, variable="GRAMERCY_SERVER_MINUTES"):
        start_ahead()
