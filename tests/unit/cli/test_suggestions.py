"""A mistyped name is answered with the one that was meant, and never with a list of hundreds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gramercy.cli.commands import COMMANDS
from gramercy.schemas import families, wordings
from gramercy.schemas.problem import Family
from tests.support.factories import MECHANISM, run_command, run_json, run_release, write_request


def refusal(*words: object, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What a refused command prints with ``--json``."""
    code, out, _ = run_command(*words, "--json", capsys=capsys)
    assert code == 2
    error: dict[str, Any] = json.loads(out)
    return error


@pytest.mark.parametrize(
    ("words", "meant"), [(("releaze", "x"), "'release'"), (("list", "--archve", "x"), "--archive")]
)
def test_mistyped_command_or_option_is_recognised(
    words: tuple[str, ...], meant: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refusal(*words, capsys=capsys)
    assert error["code"] == families.USAGE.code
    assert meant in error["facts"]["reason"]
    assert "?." not in error["facts"]["reason"]


def test_mistyped_estimator_is_recognised(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = refusal("estimate", "toy/v1-r1", "--estimator", "threshold", capsys=capsys)
    assert error["code"] == families.USAGE.code
    facts = {"option": "--estimator", "value": "threshold", "suggestion": "thresholded"}
    assert error["facts"] == facts


@pytest.mark.parametrize(
    ("request_keys", "contract_keys", "key", "suggestion"),
    [
        ({"mechanism": MECHANISM | {"name": "gausssian"}}, {}, "mechanism", "gaussian"),
        ({"mechanism": MECHANISM | {"arithmetic": "exakt"}}, {}, "mechanism.arithmetic", "exact"),
        ({"normalisation": "units"}, {}, "normalisation", "unit"),
        ({"estimates": [{"name": "rigde"}]}, {}, "estimates.0", "ridge"),
        ({}, {"neighbours": "replace_one"}, "neighbours", "replace-one"),
    ],
)
def test_mistyped_value_in_a_file_is_recognised(
    request_keys: dict[str, Any],
    contract_keys: dict[str, Any],
    key: str,
    suggestion: str,
    tmp_path: Path,
    home: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    request = write_request(tmp_path, request=request_keys, **contract_keys)
    details = refusal("plan", request, capsys=capsys)["details"]
    expected = (key, families.KEY.code, {"suggestion": suggestion})
    assert expected in [(each["key"], each["code"], each["facts"]) for each in details]


@pytest.mark.slow
def test_mistyped_data_set_or_release_is_recognised(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_release(write_request(tmp_path))
    listed = run_json("list", "toy", capsys=capsys)
    assert [each["release"] for each in listed] == ["toy/v1-r1"]
    assert listed == run_json("list", capsys=capsys)
    refused: list[tuple[tuple[str, ...], Family[Any], str]] = [
        (("list", "toys"), families.UNKNOWN_RELEASE, "toy"),
        (("verify", "toy/v1-r2"), families.UNKNOWN_RELEASE, "toy/v1-r1"),
        (("budget", "tyo"), families.CHANGE, "toy"),
        (("history", "tyo"), families.CHANGE, "toy"),
        (("show", "toy/v1"), families.UNKNOWN_RELEASE, "toy/v1-r1"),
    ]
    for words, problem, first in refused:
        error = refusal(*words, capsys=capsys)
        assert (error["code"], error["facts"]["known"][0]) == (problem.code, first)


def test_mistyped_id_of_a_contract_is_recognised(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "contracts").mkdir(parents=True)
    (home / "contracts/clinic.yaml").write_text("")
    error = refusal("plan", write_request(tmp_path, request={"dataset": "clinc"}), capsys=capsys)
    assert (error["code"], error["facts"]["known"]) == (families.REQUEST_FILE.code, ["clinic"])


def test_error_names_the_first_of_many_and_a_warning_names_all() -> None:
    names = tuple(f"column-{k}" for k in range(300))
    words = ("Unknown key '{key}'.", "Known: {known}.")
    error = families.KEY(*words, key="x", known=names)
    assert len(error.message) < 250
    assert error.message.count("column-") == 12
    assert "288" in error.message
    assert error.facts["known"] == names
    assert str(wordings.table_shared(names)).count("column-") == 300


def test_every_command_resembles_itself_most(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        error = refusal(f"{name}x", capsys=capsys)
        assert f"'{name}'" in error["facts"]["reason"]
