"""``gramercy plan``: the files that it writes on request, and the table that it looks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gramercy.cli import flow_runner
from gramercy.mechanisms.accounting.gdp import gdp_epsilon
from gramercy.schemas import families
from gramercy.schemas.problem import Family
from tests.support.factories import run_command, run_json, run_release, write_request, write_table


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
    assert families.OUTPUT.code in err
    assert "--expectations" in err
    assert not out
    assert not suite.exists()


@pytest.mark.parametrize(
    ("header", "source", "problem"),
    [
        ("c0,c1,c3", "table.csv", families.TABLE_COLUMNS),
        ("c0;c1;c2", "table.csv", families.HEADER),
        ("c0,c1,c2", "tabel.csv", families.SOURCE),
        ("c0,c1,c2", "none-*.csv", families.SOURCE),
        ("c0,c1,c2", "request.yaml", families.SOURCE),
    ],
)
@pytest.mark.parametrize("command", ["plan", "plan --compare", "release --yes"])
def test_wrong_tables_are_found_before_prefect_starts(
    command: str,
    header: str,
    source: str,
    problem: Family[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(flow_runner, "start_prefect", None)  # would fail if it was called
    (tmp_path / "table.csv").write_text(f"{header}\n")
    request = write_request(tmp_path, source=source)
    name, *options = command.split()
    code, out, err = run_command(name, request, *options, capsys=capsys)
    assert (code, out) == (2, "")
    assert problem.code in err
    if name == "plan":
        assert run_command(name, request, *options, "--no-table", capsys=capsys)[0] == 0


@pytest.mark.slow
def test_a_published_release_is_planned_without_its_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same request returns the archived release, so the table is not needed again."""
    request = write_request(tmp_path)
    run_release(request)
    (tmp_path / "table.csv").unlink()
    assert run_command("plan", request, capsys=capsys)[0] == 0
    edited = write_request(tmp_path, request={"version": "v2"}, source="gone.csv")
    code, _, err = run_command("plan", edited, capsys=capsys)
    assert code == 2
    assert families.SOURCE.code in err


def test_period_option_chooses_the_period_of_the_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = {"epsilon": 3.0, "delta": 1e-6, "per": "quarter"}
    facts = {"source": "t-{year}Q{quarter}.csv", "budget": budget}
    request = write_request(tmp_path, request={"version": "{period}"}, **facts)
    write_table(tmp_path / "t-2026Q3.csv")
    planned = run_json("plan", request, "--period", "2026-Q3", capsys=capsys)
    assert planned["version"] == "2026-Q3"
    assert planned["budget_before"]["period"] == "2026-Q3"
    code, _, err = run_command("plan", request, "--period", "2026-09", capsys=capsys)
    assert (code, families.PERIOD.code in err) == (2, True)


@pytest.mark.slow
def test_plan_of_persons_has_the_noise_in_proportion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    persons = {"privacy_unit": "who", "persons": 20}
    request = write_request(tmp_path, **persons)
    facts = run_json("plan", request, "--no-table", capsys=capsys)
    code, out, _ = run_command("plan", request, "--no-table", capsys=capsys)
    assert code == 0
    share = facts["verdict"]["facts"]["noise_share_of_entry"]
    assert f"in proportion about {100 * share:.3g} % " in " ".join(out.split())


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-5, 1e-7])
def test_plan_states_the_guarantee_as_requested_and_then_at_the_delta_of_the_budget(
    delta: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = {"epsilon": 3.0, "delta": 1e-5}
    mechanism = {"name": "gaussian", "epsilon": 1.0, "delta": delta}
    request = write_request(tmp_path, request={"mechanism": mechanism}, budget=budget)
    facts = run_json("plan", request, capsys=capsys)
    assert (facts["epsilon"], facts["delta"]) == (1.0, delta)
    _, out, _ = run_command("plan", request, capsys=capsys)
    shown = " ".join(out.split())
    assert f"guarantee epsilon=1, delta={delta:g};" in shown
    assert ("for the budget" in shown) == (delta != 1e-5)
    if delta != 1e-5:
        converted = gdp_epsilon(facts["mu"], 1e-5)
        assert f"epsilon={converted:.4g}, delta=1e-05" in shown
