"""``gramercy release`` of a red plan: asks again, and `--yes` is not enough."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from gramercy.cli import flow_runner
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import withdraw
from gramercy.schemas import families
from tests.support.factories import run_command, run_json, run_release, write_request

RED = {"mechanism": {"name": "gaussian", "epsilon": 0.1, "delta": 1e-6}}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Versions of the releases whose flow would run; then the command ends."""
    versions: list[str] = []

    def record(context: Any, planned: Any, *others: Any) -> Any:
        versions.append(planned.request.version)
        raise typer.Exit(0)

    monkeypatch.setattr(flow_runner, "publish", record)
    return versions


def test_script_is_refused_even_with_yes(
    tmp_path: Path, home: Path, started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    request = write_request(tmp_path, request=RED)
    code, out, err = run_command("release", request, "--yes", capsys=capsys)
    assert code == 2
    assert families.USELESS.code in err
    code, out, _ = run_command("release", request, "--yes", "--json", capsys=capsys)
    assert code == 2
    assert json.loads(out)["code"] == families.USELESS.code
    assert not started
    assert run_json("budget", capsys=capsys) == []


def test_despite_answers_the_question(
    tmp_path: Path, started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    request = write_request(tmp_path, request=RED)
    code, _, err = run_command("release", request, "--yes", "--despite", capsys=capsys)
    assert code == 0, err
    assert started == ["v1"]


@pytest.mark.parametrize(("answer", "exit_code"), [(True, 0), (False, 1)])
def test_terminal_is_asked(
    answer: bool,
    exit_code: int,
    tmp_path: Path,
    started: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    keyboard = io.StringIO("perhaps\ny\n" if answer else "\n")
    monkeypatch.setattr(keyboard, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", keyboard)
    code, _, err = run_command(
        "release", write_request(tmp_path, request=RED), "--yes", capsys=capsys
    )
    assert code == exit_code
    assert "Publish it all the same?" in err
    assert keyboard.read() == ""
    assert bool(started) == answer


def test_other_plans_are_not_asked_about(
    tmp_path: Path, started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    request = write_request(tmp_path)
    code, _, err = run_command("release", request, "--yes", capsys=capsys)
    assert code == 0, err
    assert started == ["v1"]


@pytest.mark.slow
def test_published_release_is_returned_without_the_question(
    tmp_path: Path, started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    request = write_request(tmp_path, request=RED)
    run_release(request)
    code, _, err = run_command("release", request, "--yes", capsys=capsys)
    assert code == 0, err
    assert started == ["v1"]


@pytest.mark.slow
def test_release_over_its_budget_is_refused_before_prefect(
    tmp_path: Path, started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    charged = {"mechanism": {"name": "gaussian", "epsilon": 2.5, "delta": 1e-6}}
    request = write_request(tmp_path, request=charged)
    run_release(request)
    before = run_json("budget", capsys=capsys)
    write_request(tmp_path, request=charged | {"version": "v2"})
    code, _, err = run_command("release", request, "--yes", "--despite", capsys=capsys)
    assert code == 2
    assert families.EXCEEDED.code in err
    assert not started
    assert run_json("budget", capsys=capsys) == before


@pytest.mark.slow
def test_withdrawn_release_is_refused_before_prefect(
    tmp_path: Path, started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    request = write_request(tmp_path)
    withdraw(Context.default(), "toy", run_release(request), "a column was shifted")
    code, _, err = run_command("release", request, "--yes", "--despite", capsys=capsys)
    assert code == 2
    assert families.SPENT.code in err
    assert not started
    code, _, err = run_command(
        "release", request, "--yes", "--despite", "--new-charge", capsys=capsys
    )
    assert code == 0, err
    assert started == ["v1"]
