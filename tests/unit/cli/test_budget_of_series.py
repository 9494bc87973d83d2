"""Budgets and histories show a step that the charge of its series includes as no free release."""

from __future__ import annotations

from pathlib import Path

import pytest

from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.ledger.timelines import approximate_epsilons_of
from gramercy.schemas.ledger_history import counted_charges
from tests.support.factories import run_command, run_json
from tests.support.series import WINDOW, charge_step, publish_steps, spend, step_of

FIRST = "2026-W01-r1"


@pytest.fixture
def ledger() -> Ledger:
    """Two steps, and a third one that was drawn twice."""
    ledger = Ledger.of(Home.default())
    publish_steps(ledger, 2)
    spent = charge_step(ledger, step_of(3)).release
    spend(ledger, spent)
    charge_step(ledger, step_of(3), instead_of=spent)
    return ledger


@pytest.mark.usefixtures("ledger")
def test_budget_names_the_release_whose_charge_includes_a_step(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (facts,) = run_json("budget", "toy", capsys=capsys)
    charges = facts["charges"]
    assert [each["series"]["included_in"] for each in charges] == [None, FIRST, FIRST, None]
    assert [each["series"]["step"] for each in charges] == [1, 2, 3, 3]
    assert {each["series"]["steps"] for each in charges} == {12}
    assert [each["mu"] > 0 for each in charges] == [True, False, False, True]
    _, out, _ = run_command("budget", "toy", capsys=capsys)
    assert out.count(f"in {FIRST}") == 2


@pytest.mark.usefixtures("ledger")
def test_steps_that_are_included_are_not_counted_as_charges(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gramercy.cli.budget._LISTED_IN_FULL", 0)
    _, out, _ = run_command("budget", capsys=capsys)
    assert "2 charges; 'gramercy budget toy' lists them." in out


def test_history_states_the_epsilon_of_the_series(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (facts,) = run_json("history", "toy", capsys=capsys)
    registered, *events = facts["events"]
    assert registered["series"] is None
    (whole,) = approximate_epsilons_of([(WINDOW, 1e-5)])
    epsilons = [each["epsilon"] for each in events]
    assert epsilons[:3] == pytest.approx([whole] * 3, rel=1e-6)
    assert 0 < epsilons[3] < whole
    assert [each["series"]["included_in"] for each in events] == [None, FIRST, FIRST, None]
    spent = [each["spent_epsilon"] for each in events]
    assert spent[0] == spent[1] == spent[2] < spent[3]
    (timeline,) = ledger.timelines("toy")
    assert counted_charges(timeline.events) == "2 charges and 2 included steps"
    page = tmp_path / "history.html"
    _, out, _ = run_command("history", "toy", "--page", page, capsys=capsys)
    assert out.count(f"in the charge of {FIRST}") == page.read_text().count("included</td>") == 2
