"""The Prefect server that `gramercy serve` uses."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gramercy.cli import serve
from gramercy.cli.prefect_server import start_ahead
from gramercy.common.home import Home
from gramercy.pipeline.context import Context
from gramercy.schemas import families
from tests.support.factories import run_command, run_release, write_request
from tests.support.problems import raises

API = "http://prefect.example/api"


def test_a_busy_server_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that runs the flows of others, on the same machine, may need ten seconds to answer."""

    def answer(url: str, seconds: float, login: str | None = None) -> int | None:
        return 200 if seconds >= 10 else None

    monkeypatch.setattr(serve, "_status", answer)
    monkeypatch.setenv("PREFECT_API_URL", API)
    with serve.running_server(Home.default(), 4200) as found:
        assert (found.api, found.process) == (API, None)


@pytest.mark.parametrize("login", [None, "wrong", "right"])
def test_the_login_of_a_configured_server(
    login: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(url: str, seconds: float, given: str | None = None) -> int:
        return 200 if url.endswith("/health") or given == "right" else 401

    monkeypatch.setattr(serve, "_status", answer)
    monkeypatch.setenv("PREFECT_API_URL", API)
    if login is not None:
        monkeypatch.setenv("PREFECT_API_AUTH_STRING", login)
    if login == "right":
        with serve.running_server(Home.default(), 4200) as found:
            assert found.login == login
        assert capsys.readouterr().err == ""
    else:
        with raises(families.SERVER, url=API), serve.running_server(Home.default(), 4200):
            pass


def test_a_server_that_answers_everybody_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve, "_status", lambda *_: 200)
    monkeypatch.setenv("PREFECT_API_URL", API)
    with serve.running_server(Home.default(), 4200):
        assert families.NO_LOGIN.code in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("state", ["copied", "older", "deleted", "damaged"])
def test_a_home_whose_ledger_would_refuse_to_charge_is_not_served(
    state: str,
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(serve, "running_server", lambda *_: pytest.fail("something was started"))
    request = write_request(tmp_path)
    ledger = home / "ledger.sqlite"
    Context.default().ledger.datasets()  # opens it
    content = ledger.read_bytes()
    run_release(request)
    if state == "copied":
        shutil.copytree(home, tmp_path / "copy")
        monkeypatch.setenv("GRAMERCY_HOME", str(tmp_path / "copy"))
    elif state == "older":
        ledger.write_bytes(content)
    elif state == "deleted":
        ledger.unlink()
    else:
        ledger.write_bytes(ledger.read_bytes()[:5000])
    code, _, err = run_command("serve", capsys=capsys)
    assert (code, families.UNTRUSTED.code in err) == (2, True), err


def test_log_of_a_server_that_runs_for_years_is_bounded(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with log.open("ab", buffering=0) as out:
        for _ in range(3):
            out.write(b"x" * 60)
            serve.rotate(log, most=100)
        out.write(b"y")
    assert log.read_bytes() == b"x" * 60 + b"y"
    assert (tmp_path / "server.log.1").read_bytes() == b"x" * 120


@pytest.mark.parametrize("url", ["localhost", "file:///etc", "ftp://127.0.0.1/api"])
def test_only_a_web_address_is_a_server(
    url: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", url)
    with raises(families.SERVER, url=url), serve.running_server(Home(home), 4200):
        pass


@pytest.mark.slow
def test_children_take_no_code_and_no_settings_from_the_folder_of_the_command(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anyone may write to a shared folder, such as /tmp."""
    hostile = tmp_path / "shared"
    hostile.mkdir()
    (hostile / "gramercy").mkdir()
    (hostile / "gramercy" / "__init__.py").write_text("raise SystemExit(99)")
    (hostile / ".env").write_text("PREFECT_LOGGING_LEVEL=hostile")
    monkeypatch.chdir(hostile)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    started = serve.Server("http://127.0.0.1:9/api", "login")
    with serve.running_worker(Home(home), started, "gramercy") as process:
        assert Path(f"/proc/{process.pid}/cwd").resolve() == home / "serve"
        assert process.args[1] == "-P"  # type: ignore[index]
        with contextlib.suppress(subprocess.TimeoutExpired):
            assert process.wait(2) != 99


def test_passwords_cannot_be_tried_on_the_name_of_a_shared_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other users see the name in the list of processes; so it depends on a private key."""
    started: list[str] = []

    def start(words: list[str], **_: object) -> Any:
        started.append(words[-2])
        return SimpleNamespace(pid=1)

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("GRAMERCY_SERVER_MINUTES", "1")
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    monkeypatch.setenv("PREFECT_SERVER_API_AUTH_STRING", "admin:tiger")
    start_ahead()
    start_ahead()
    assert started[0] == started[1]  # the same settings have the same server
    (key,) = (tmp_path / "gramercy").glob("*.key")
    assert key.stat().st_mode & 0o777 == 0o600
    key.unlink()  # as where a guesser has the settings, and not the key
    start_ahead()
    assert started[2] != started[0]
