"""``gramercy budget``: what was spent, what is left, and what a planned release would leave."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.context import Context
from gramercy.schemas import families
from tests.support.archives import update_listing
from tests.support.factories import run_command, run_json, run_release, write_request, write_table
from tests.support.ledgers import charge, contract
from tests.support.problems import raises

YEARLY = {"source": "visits-{year}.csv", "budget": {"epsilon": 1.2, "delta": 1e-6, "per": "year"}}


@pytest.mark.slow
def test_budget_plan_predicts_the_remaining_budget(
    tmp_path: Path, any_home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    request = write_request(tmp_path)
    planned = run_json("budget", "--plan", request, capsys=capsys)
    assert planned["admitted"] is True
    assert planned["budget_before"]["spent_epsilon"] == 0
    assert Ledger.of(any_home).datasets() == []  # nothing was registered
    _, out, _ = run_command("budget", "--plan", request, capsys=capsys)
    assert "▒" in out
    assert "planned: epsilon=" in out
    run_release(request)
    (facts,) = run_json("budget", "toy", capsys=capsys)
    assert facts["spent_epsilon"] == planned["budget_after"]["spent_epsilon"]
    assert facts["remaining_epsilon"] == planned["budget_after"]["remaining_epsilon"]
    assert facts["charges"][0]["state"] == "published"
    _, out, _ = run_command("budget", "--plan", request, capsys=capsys)
    assert "already published as v1-r1" in out
    greedy = {"mechanism": {"name": "gaussian", "epsilon": 9.0, "delta": 1e-6}, "version": "v2"}
    _, out, _ = run_command(
        "budget", "--plan", write_request(tmp_path, request=greedy), capsys=capsys
    )
    assert "would be refused" in out
    _, out, _ = run_command("budget", capsys=capsys)
    assert "█" in out
    assert "░" in out
    assert "▪" in out


@pytest.mark.slow
def test_budget_shows_the_last_30_charges(capsys: pytest.CaptureFixture[str]) -> None:
    for turn in range(33):
        charge(Ledger.of(Home.default()), f"v{turn}")
    _, out, _ = run_command("budget", "toy", capsys=capsys)
    assert "v32-r1" in out
    assert "v2-r1" not in out
    assert "the last 30 of 33" in out
    assert len(run_json("budget", "toy", capsys=capsys)[0]["charges"]) == 33


@pytest.mark.slow
def test_budget_per_year_of_data(
    tmp_path: Path, any_home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    for year in (2025, 2026):
        write_table(tmp_path / f"visits-{year}.csv", seed=year)

    def request_for(version: str) -> Path:
        return write_request(tmp_path, request={"version": version}, **YEARLY)

    assert run_release(request_for("2025")) == "2025-r1"
    assert run_release(request_for("2026-W01")) == "2026-W01-r1"
    first, second = run_json("budget", "toy", capsys=capsys)
    assert (first["period"], second["period"]) == ("2025", "2026")
    assert [c["release"] for c in first["charges"]] == ["2025-r1"]
    assert first["spent_epsilon"] == second["spent_epsilon"]
    assert "data of 2026" in run_command("budget", capsys=capsys)[1]
    _, out, _ = run_command("budget", "toy", capsys=capsys)
    assert "Every other year of the data has all of its budget: epsilon=1.2, delta=1e-06" in out
    with raises(families.EXCEEDED, budget="toy, data of 2026"):
        run_release(request_for("2026-W02"))
    with raises(families.SOURCE):
        run_release(request_for("2027"))
    for version in ("spring", "20267"):
        with raises(families.PERIOD, version=version):
            run_release(request_for(version))
    assert len(Ledger.of(any_home).charges("toy")) == 2


@pytest.mark.slow
def test_moved_ledger_is_accepted_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    request, moved = write_request(tmp_path), tmp_path / "moved"
    run_release(request)
    shutil.move(tmp_path / "home", moved)
    monkeypatch.setenv("GRAMERCY_HOME", str(moved))
    code, _, err = run_command("plan", request, capsys=capsys)
    assert code == 2
    assert "--moved" in err
    assert run_command("budget", "--moved", capsys=capsys)[0] == 2  # a reason is required
    assert run_json("budget", "--moved", "--reason", "a new disk", capsys=capsys)[0]["charges"]
    assert run_release(request) == "v1-r1"
    assert run_release(write_request(tmp_path, request={"version": "v2"})) == "v2-r1"
    update_listing(Context.default(), "toy", "v2-r1")
    assert run_json("audit", capsys=capsys)["discrepancies"] == []


def test_charges_of_many_budgets_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gramercy.cli.budget._LISTED_IN_FULL", 1)
    ledger = Ledger.of(Home.default())
    for version in ("v1", "v2"):
        charge(ledger, version)
    _, out, _ = run_command("budget", capsys=capsys)
    assert "v2-r1" in out
    charge(ledger, "v1", terms=contract(id="other"))
    _, out, _ = run_command("budget", capsys=capsys)
    assert "2 charges; 'gramercy budget toy' lists them." in out
    assert "1 charge; 'gramercy budget other' lists it." in out
    assert "v2-r1" not in out
    _, out, _ = run_command("budget", "toy", capsys=capsys)
    assert "v2-r1" in out


def test_one_data_set_is_shown_with_mu_and_pure_epsilon(capsys: pytest.CaptureFixture[str]) -> None:
    ledger = Ledger.of(Home.default())
    charge(ledger, "v1", Guarantee(0.7, pure=0.5))
    (facts,) = run_json("budget", "toy", capsys=capsys)
    assert facts["spent_pure_epsilon"] == 0.5
    assert facts["remaining_epsilon"] == facts["remaining_pure_epsilon"] == 2.5
    assert 0 < facts["remaining_gaussian_epsilon"] < 1
    _, out, _ = run_command("budget", "toy", capsys=capsys)
    words = " ".join(out.split())
    assert f"mu=0.7 spent; {facts['remaining_mu']:.4g} left" in words
    assert f"release (epsilon={facts['remaining_gaussian_epsilon']:.4g});" in words
    assert f"{100 * facts['share']:.3g} % of the budget is spent" in words
    assert "pure epsilon=0.5 spent, 2.5 left" in words
    assert "of the data has all of its budget" not in words
    assert "mu=" not in run_command("budget", capsys=capsys)[1]
    charge(ledger, "v2", Guarantee(0.1))
    (facts,) = run_json("budget", "toy", capsys=capsys)
    assert facts["spent_pure_epsilon"] is None
    assert facts["remaining_pure_epsilon"] == 0
    assert "pure epsilon" not in run_command("budget", "toy", capsys=capsys)[1]
