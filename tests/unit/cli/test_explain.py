"""``gramercy explain``, and what the command line does with every error."""

from __future__ import annotations

import json

import pytest

from gramercy.schemas import families
from gramercy.schemas.families import catalogue
from tests.support.factories import run_command, run_json


def test_code_is_accepted_in_every_spelling(capsys: pytest.CaptureFixture[str]) -> None:
    for spelling in ("GRM-143", "grm-143", "143"):
        assert run_json("explain", spelling, capsys=capsys) == families.BOUNDS.described()
    assert run_json("explain", "1", capsys=capsys)["code"] == families.USAGE.code


def test_explanation_shows_cause_and_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    facts = families.PERSONS.described()
    code, out, _ = run_command("explain", facts["code"], capsys=capsys)
    shown = " ".join(out.split())
    assert code == 0
    assert all(word in shown for word in facts["remedy"].split())
    assert all(word in shown for word in facts["cause"].split())


def test_all_codes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert [each["code"] for each in run_json("explain", capsys=capsys)] == list(catalogue())
    code, out, _ = run_command("explain", capsys=capsys)
    assert code == 0
    assert all(each in out for each in catalogue())


def test_unknown_code_is_an_error_with_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run_command("explain", "GRM-000", "--json", capsys=capsys)
    assert code == 2
    assert families.USAGE.code in err
    facts = json.loads(out)
    assert facts["code"] == families.USAGE.code
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
    assert facts["code"] == families.USAGE.code
    assert families.USAGE.code in err
    assert facts["facts"]["command"].startswith("gramercy")


def test_argument_that_is_not_text_has_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run_command("plan", "\udcff", capsys=capsys)
    assert code == 2
    assert families.USAGE.code in err


def test_failure_of_the_operating_system_has_a_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "", "/disk/file")

    monkeypatch.setattr("gramercy.cli.main._run", full)
    code, out, err = run_command("list", "--json", capsys=capsys)
    assert code == 1
    assert families.OPERATING_SYSTEM.code in err
    assert json.loads(out)["facts"]["path"] == "/disk/file"


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run_command(capsys=capsys)
    assert code == 2
    assert "Usage: " in err
