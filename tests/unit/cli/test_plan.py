"""``gramercy plan``: the files that it writes on request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gramercy.schemas.problems.command_line import parent_folder_missing
from tests.support.factories import run_command, run_json, write_request


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--compare",)], ids=" ".join)
def test_plan_writes_the_expectations_of_the_contract(
    tmp_path: Path, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    request, suite = write_request(tmp_path), tmp_path / "suite.json"
    run_json("plan", request, "--expectations", suite, *options, capsys=capsys)
    expectations = json.loads(suite.read_text())["expectations"]
    assert expectations[0]["kwargs"]["column_set"] == ["c0", "c1", "c2"]
    bounds = {"column": "c2", "min_value": -5.0, "max_value": 5.0}
    assert bounds in [each["kwargs"] for each in expectations]
    code, out, _ = run_command("plan", request, "--expectations", suite, *options, capsys=capsys)
    assert code == 0
    assert f"Expectations: {suite}" in out.replace("\n", "")


def test_expectations_need_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = tmp_path / "none" / "suite.json"
    code, out, err = run_command(
        "plan", write_request(tmp_path), "--expectations", suite, capsys=capsys
    )
    assert code == 2
    assert parent_folder_missing.code in err
    assert "--expectations" in err
    assert not out
    assert not suite.exists()
