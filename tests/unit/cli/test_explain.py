"""``gramercy explain``, and what the command line does with every error."""

from __future__ import annotations

import json

import pytest

from gramercy.schemas.problems import catalogue, contract
from gramercy.schemas.problems.command_line import argument_not_text, unknown_code, usage
from gramercy.schemas.problems.installation import operating_system
from tests.support.factories import run_command, run_json


@pytest.mark.parametrize("spelling", ["GRM-143", "grm-143", "143"])
def test_code_is_accepted_in_every_spelling(
    spelling: str, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = run_json("explain", spelling, capsys=capsys)
    assert facts == contract.bounds_reversed.described()


def test_leading_zeros_may_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_json("explain", "1", capsys=capsys)["code"] == usage.code


def test_explanation_shows_cause_and_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    facts = contract.persons_missing.described()
    code, out, _ = run_command("explain", facts["code"], capsys=capsys)
    shown = " ".join(out.split())
    assert code == 0
    assert facts["hint"].partition(" ")[0] in shown
    assert all(word in shown for word in facts["cause"].split())


def test_all_codes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert [each["code"] for each in run_json("explain", capsys=capsys)] == list(catalogue())
    code, out, _ = run_command("explain", capsys=capsys)
    assert code == 0
    assert all(each in out for each in catalogue())


def test_unknown_code_is_an_error_with_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run_command("explain", "GRM-000", "--json", capsys=capsys)
    assert code == 2
    assert unknown_code.code in err
    facts = json.loads(out)
    assert facts["code"] == unknown_code.code
    assert facts["facts"] == {"code": "GRM-000"}
    assert facts["exit_code"] == 2


@pytest.mark.parametrize(
    "words", [["sail"], ["serve", "--port", "x"], ["withdraw"], ["list", "--nothing"]]
)
def test_misuse_has_a_code_and_names_the_help(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run_command(*words, "--json", capsys=capsys)
    facts = json.loads(out)
    assert code == facts["exit_code"] == 2
    assert facts["code"] == usage.code
    assert usage.code in err
    assert facts["facts"]["command"].startswith("gramercy")


def test_argument_that_is_not_text_has_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run_command("plan", "\udcff", capsys=capsys)
    assert code == 2
    assert argument_not_text.code in err


def test_failure_of_the_operating_system_has_a_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "", "/disk/file")

    monkeypatch.setattr("gramercy.cli.main._run", full)
    code, out, err = run_command("list", "--json", capsys=capsys)
    assert code == 1
    assert operating_system.code in err
    assert json.loads(out)["facts"]["path"] == "/disk/file"


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run_command(capsys=capsys)
    assert code == 2
    assert "Usage: " in err
