"""Plans of a series propose the constants of its first release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import withdraw
from gramercy.schemas import families
from tests.support.factories import (
    read_plan,
    run_command,
    run_json,
    run_release,
    write_request,
    write_table,
)

ROWS = 4000
PRIVATE: dict[str, Any] = {"scaling": "private", "estimates": []}
PRIVATE["mechanism"] = {"name": "gaussian", "epsilon": 4.0, "delta": 1e-6}


def request(folder: Path, version: str, **keys: Any) -> Path:
    if not (folder / "table.csv").exists():
        write_table(folder / "table.csv", rows=ROWS)
    facts = {"rows": ROWS, "intercept": True, "budget": {"epsilon": 50.0, "delta": 1e-5}}
    return write_request(folder, request=PRIVATE | {"version": version} | keys, **facts)


@pytest.mark.slow
def test_plan_of_a_schedule_proposes_common_constants(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = request(tmp_path, "%Y-%m")
    version = read_plan(place).request.version
    proposed = run_json("plan", place, capsys=capsys)["series"]
    assert proposed["code"] == families.READING.code
    assert proposed["release"] == f"{version}-r1"
    assert 0 < proposed["saved"] < 50
    shown = " ".join(run_command("plan", place, capsys=capsys)[1].split())
    assert proposed["line"] in shown
    first = run_release(request(tmp_path, "2020-01"))
    again = run_json("plan", request(tmp_path, "%Y-%m"), capsys=capsys)["series"]
    assert again["line"] == f"scaling: {{from: {first}}}"


@pytest.mark.slow
def test_line_that_a_plan_proposes_gives_what_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run_release(request(tmp_path, "2020-01"))
    private = read_plan(request(tmp_path, "%Y-%m"))
    proposed = run_json("plan", request(tmp_path, "%Y-%m"), capsys=capsys)["series"]
    common = read_plan(request(tmp_path, "%Y-%m", scaling={"from": first}))
    ratio = common.mechanism.guarantee.mu**2 - private.mechanism.guarantee.mu**2
    assert 100 * ratio / private.guarantee.mu**2 == pytest.approx(proposed["saved"], rel=1e-6)
    place = request(tmp_path, "%Y-%m", scaling={"from": first})
    assert run_json("plan", place, capsys=capsys)["series"] is None


@pytest.mark.slow
def test_single_release_has_no_series(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_json("plan", request(tmp_path, "v1"), capsys=capsys)["series"] is None
    assert Context.default().archive.releases() == []
    laplace = {"mechanism": {"name": "laplace", "epsilon": 4.0, "delta": 1e-6}}
    assert run_json("plan", request(tmp_path, "%Y", **laplace), capsys=capsys)["series"] is None


@pytest.mark.slow
def test_constants_of_a_withdrawn_release_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run_release(request(tmp_path, "2020-01"))
    place = request(tmp_path, "2020-02", scaling={"from": first})
    warning = f"{families.WITHDRAWN.code}: {first} "
    assert warning not in run_command("plan", place, capsys=capsys)[2]
    withdraw(Context.default(), "toy", first, "another table")
    code, _, errors = run_command("plan", place, capsys=capsys)
    assert code == 0
    assert warning in errors
    assert "another table" in errors
