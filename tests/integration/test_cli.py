"""The output and the exit codes of the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import gramercy
from gramercy.cli.main import app
from gramercy.schemas import families
from gramercy.schemas.problem import Family
from tests.support.factories import MECHANISM, run_command, run_json, run_release, write_request
from tests.support.problems import like, raises

ROOT = Path(__file__).parents[2]


def test_plan_reads_no_data(tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = write_request(tmp_path)
    (tmp_path / "table.csv").unlink()
    facts = run_json("plan", request, "--no-table", capsys=capsys)
    # s = sqrt2 sigma, with sigma of sensitivity 1 at epsilon 1, delta 1e-6 (Balle and Wang 2018).
    assert facts["scale"] == pytest.approx(2**0.5 * 4.2246788, rel=1e-6)
    assert facts["mu"] == pytest.approx(2**0.5 / facts["scale"], rel=1e-15)
    assert facts["epsilon"] <= 1
    assert facts["admitted"] is True
    assert facts["budget_before"]["spent_epsilon"] == 0
    assert facts["budget_after"]["spent_mu"] == facts["mu"]
    assert facts["matrix_error"] == pytest.approx((6 / 2) ** 0.5 * 2**0.5 * facts["sd_diagonal"])
    assert run_command("plan", request, "--no-table", capsys=capsys)[0] == 0
    assert not (home / "archive").exists()


@pytest.mark.slow
def test_release_estimate_and_verify_commands(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str], prefect_server: None
) -> None:
    request = write_request(tmp_path)
    released = run_json("release", request, "--yes", capsys=capsys)
    assert released["release"] == "toy/v1-r1"
    assert released["replayed"] is False
    assert Path(released["path"]).is_dir()
    planned = run_json("plan", request, capsys=capsys)
    assert planned["published_as"] == "v1-r1"
    assert planned["budget_after"] == planned["budget_before"]
    assert "v1-r1" in run_command("plan", request, capsys=capsys)[1]
    again = run_json("release", request, "--yes", capsys=capsys)
    assert again == released | {"replayed": True}

    (listed,) = run_json("list", capsys=capsys)
    assert listed["release"] == "toy/v1-r1"
    assert run_json("show", "toy/v1-r1", capsys=capsys)["guarantee"]["epsilon"] <= 1
    (budget,) = run_json("budget", capsys=capsys)
    assert len(budget["charges"]) == 1
    (verified,) = run_json("verify", capsys=capsys)
    assert verified["unchecked"] == []
    twice = ("--penalty", "0.5", "--set", "penalty=0.4")
    for wrong in (twice, ("--set", "penalty"), ("--set", "rate=2"), ("--set", "input='no'")):
        assert run_command("estimate", "toy/v1-r1", *wrong, capsys=capsys)[0] == 2
    estimated = run_json("estimate", "toy/v1-r1", "--penalty", "0.5", capsys=capsys)
    assert Path(estimated["path"]).is_dir()
    checks = run_json("verify", "toy/v1-r1", capsys=capsys)[0]["checks"]
    assert len(checks) == 14

    for words in (["list"], ["show", "toy/v1-r1"], ["budget", "toy"], ["verify"]):
        code, out, _ = run_command(*words, capsys=capsys)
        assert code == 0
        assert "toy" in out
    # A copy is verified without the ledger, and a damaged one is refused by name.
    copy = tmp_path / "copy"
    shutil.copytree(home / "archive", copy)
    (verified,) = run_json("verify", "--archive", copy, capsys=capsys)
    # Instead of the ledger, the listing is compared with the bundles.
    assert len(verified["checks"]) == len(checks)
    matrix = copy / "toy/v1-r1/release/second_moment.npy"
    matrix.chmod(0o644)
    matrix.write_bytes(matrix.read_bytes()[:-1])
    code, out, _ = run_command("verify", "--archive", copy, capsys=capsys)
    assert code == 2
    assert "second_moment.npy" in out


@pytest.mark.slow
def test_repairs_are_shown_only_on_a_terminal(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    prefect_server: None,
) -> None:
    (tmp_path / "table.csv").write_text("c0,c1,c2\n1,2,3\n,98765,x\n4,5\n")
    yaml = write_request(tmp_path, rows=3, budget={"epsilon": 2.0, "delta": 1e-5})
    code, out, err = run_command("release", yaml, "--yes", "--despite", capsys=capsys)
    assert code == 0, err
    assert "c0" not in err  # private notes are not written to a file or a pipe
    request.getfixturevalue("on_terminal")
    code, out, err = run_command("release", yaml, "--yes", "--despite", capsys=capsys)
    for notice in (
        like(families.REPAIRED_CELLS, columns="c0 (1), c2 (1)"),
        like(families.REPAIRED_CELLS, columns="c1 (1)"),
        like(families.UNUSABLE_LINES, lines=1),
    ):
        assert notice.code in err
        assert all(str(fact) in err for fact in notice.facts.values())
    assert "98765" not in err + out


@pytest.mark.parametrize(
    ("request_change", "contract_change", "problem", "key"),
    [
        ({"mechanizm": MECHANISM}, {}, families.KEY, ""),
        ({"mechanism": MECHANISM | {"epsilon": -1}}, {}, families.VALUE, "mechanism.epsilon"),
        ({"mechanism": MECHANISM | {"name": "magic"}}, {}, families.KEY, "mechanism"),
        ({"version": "../../etc"}, {}, families.VALUE, "version"),
        ({"version": "v%e"}, {}, families.VERSION, "version"),
        ({"version": "%Y/%m"}, {}, families.VALUE, "version"),
        ({"version": 1.1}, {}, families.VALUE, "version"),
        ({"timezone": "Mars/Olympus"}, {}, families.VALUE, "timezone"),
        ({"normalisation": "max"}, {}, families.KEY, "normalisation"),
        ({"normalisation": {"kind": "clip"}}, {}, families.REQUEST_KEYS, ""),
        ({"dataset": "nowhere.yaml"}, {}, families.REQUEST_FILE, ""),
        ({"dataset": "unregistered"}, {}, families.REQUEST_FILE, ""),
        ({"estimates": [{"name": "rige"}]}, {}, families.KEY, "estimates.0"),
        (
            {"estimates": [{"name": "ridge", "penalty": "x"}]},
            {},
            families.VALUE,
            "estimates.0.penalty",
        ),
        ({"estimates": [{"name": "discriminant"}]}, {}, families.ESTIMATE, "estimates.0"),
        ({"folds": 21}, {}, families.VALUE, "folds"),
        (
            {"normalisation": {"kind": "clip", "radius": -1}},
            {},
            families.VALUE,
            "normalisation.radius",
        ),
        ({}, {"columns": {"c\x01": {"lower": 0, "upper": 1}}}, families.COLUMNS, ""),
        ({}, {"columns": {"c": {"levels": ["a\r\nb"]}}}, families.LEVELS, ""),
        ({}, {"id": "Has Spaces"}, families.VALUE, "id"),
        ({}, {"rows": 0}, families.VALUE, "rows"),
        ({}, {"columns": {"c0": {"lower": "0", "upper": 1}}}, families.VALUE, "columns.c0.lower"),
        ({}, {"columns": {}}, families.KEY, "columns"),
        ({}, {"columns": {"c0": {"lower": 1, "upper": 0}}}, families.BOUNDS, "columns.c0"),
        ({}, {"columns": {"c0": {"lower": 0}}}, families.BOUNDS, "columns.c0"),
        ({}, {"columns": {"c0": {"lower": 0, "upper": 5e-324}}}, families.BOUNDS, "columns.c0"),
        (
            {},
            {"columns": {"c0": {"lower": 0, "upper": 1, "scale": 0}}},
            families.VALUE,
            "columns.c0.scale",
        ),
        (
            {},
            {"columns": {"c0": {"lower": 0, "upper": 1, "centre": 2}}},
            families.BOUNDS,
            "columns.c0",
        ),
        (
            {},
            {"columns": {"c0": {"lower": -1e308, "upper": 1e308, "scale": 1e-9}}},
            families.BOUNDS,
            "columns.c0",
        ),
        ({}, {"budget": {"epsilon": 1, "delta": 0.5}}, families.VALUE, ""),
        ({}, {"neighbors": "replace-one"}, families.KEY, ""),
    ],
    ids=str,
)
def test_invalid_keys_are_refused_by_name(
    request_change: Any,
    contract_change: Any,
    problem: Family[Any],
    key: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    request = write_request(tmp_path, request=request_change, **contract_change)
    code, out, err = run_command("plan", request, capsys=capsys)
    assert (code, out) == (2, "")
    assert problem.code in err
    assert f"{key}: " in err
    assert "Traceback" not in err


def test_many_errors_are_shown_in_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = write_request(tmp_path)
    columns = "".join(f"  c{i}: {{lower: 1, upper: 0}}\n" for i in range(60))
    (tmp_path / "contract.yaml").write_text(f"id: toy\ncolumns:\n{columns}")
    code, out, err = run_command("plan", request, "--json", capsys=capsys)
    error = json.loads(out)
    assert code == 2
    assert "columns.c0" in [each["key"] for each in error["details"]]
    assert error["facts"]["left_out"] > 50
    assert len(err) < 1000


@pytest.mark.slow
def test_broken_yaml_is_reported_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = tmp_path / "request.yaml"
    for text, problem in (
        ("dataset: x\nversion: [", families.YAML),
        ("dataset: x\ndataset: y", families.YAML),
        ("just words", families.KEY),
        ("version: 2024-02-30", families.YAML),
        ("version: " + "[" * 3000, families.REQUEST_FILE),
        ("version: " + "9" * 5000, families.REQUEST_FILE),
        ("", families.KEY),
    ):
        request.write_text(text)
        code, _, err = run_command("plan", request, capsys=capsys)
        assert code == 2
        assert problem.code in err
        assert "request.yaml" in err
    code, _, err = run_command("plan", tmp_path / "absent.yaml", capsys=capsys)
    assert code == 2
    assert families.REQUEST_FILE.code in err
    request.write_bytes(b"\xff\xfe")
    assert run_command("plan", request, capsys=capsys)[0] == 2


def test_release_without_a_terminal_needs_yes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run_command("release", write_request(tmp_path), capsys=capsys)
    assert code == 2
    assert families.NOT_A_TERMINAL.code in err
    assert "--yes" in err


@pytest.mark.parametrize(
    "words", [["nothing"], ["plan"], ["show", "no/such"], ["verify"], ["budget", "unknown"]]
)
def test_unusable_arguments_are_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run_command(*words, capsys=capsys)
    assert code == 2
    assert err


def test_errors_are_printed_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run_command("plan", tmp_path / "absent.yaml", "--json", capsys=capsys)
    error = json.loads(out)
    assert code == error["exit_code"] == 2
    assert error["code"] == families.REQUEST_FILE.code
    assert error["facts"] == {"file": str(tmp_path / "absent.yaml")}
    assert error["code"] in err
    assert run_command("--version", capsys=capsys)[1].strip() == gramercy.__version__


def test_missing_release_is_reported_by_list_and_verify(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_release(write_request(tmp_path))
    run_release(write_request(tmp_path, request={"version": "v2"}))
    here = ("--archive", home / "archive")
    assert len(run_json("verify", "toy", *here, capsys=capsys)) == 2
    assert len(run_json("verify", "toy/v1-r1", *here, capsys=capsys)) == 1
    shutil.rmtree(home / "archive/toy/v1-r1")
    present, missing = run_json("list", capsys=capsys)
    assert missing["release"] == "toy/v1-r1"
    assert families.UNKNOWN_RELEASE.code in missing["error"]
    assert present["release"] == "toy/v2-r1"
    for words in (["verify"], ["verify", "toy/v1-r1"]):
        code, out, _ = run_command(*words, capsys=capsys)
        assert code == 2
        assert families.SEAL.code in out
    code, out, _ = run_command("verify", "nonsense", capsys=capsys)
    assert code == 2


def test_catalogue_is_a_mapping(tmp_path: Path, home: Path) -> None:
    run_release(write_request(tmp_path))
    catalogue = gramercy.open(str(home / "archive"))
    assert "toy/v1-r1" in catalogue
    assert "toy/v9-r1" not in catalogue
    assert "../toy" not in catalogue
    assert catalogue.get("toy/v9-r1") is None
    with raises(families.UNKNOWN_RELEASE, release="toy/v9-r1"):
        catalogue["toy/v9-r1"]


def test_list_and_budget_of_an_empty_home(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_json("list", capsys=capsys) == []
    assert run_json("budget", capsys=capsys) == []
    assert run_command("list", capsys=capsys)[0] == 0
    assert run_command("budget", capsys=capsys)[0] == 0


def test_raising_the_budget_needs_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = write_request(tmp_path)
    run_release(request)
    raising = ["budget", "toy", "--raise", "4", "2e-5"]
    code, _, err = run_command(*raising, capsys=capsys)
    assert code == 2
    assert families.CHANGE.code in err
    (facts,) = run_json(*raising, "--reason", "board, 3 May", capsys=capsys)
    assert (facts["epsilon"], facts["delta"]) == (4, 2e-5)
    assert (
        run_command("budget", "toy", "--raise", "1", "2e-5", "--reason", "x", capsys=capsys)[0] == 2
    )
    assert facts["budgets"][1]["reason"] == "board, 3 May"
    assert "board, 3 May" in run_command("budget", "toy", capsys=capsys)[1]
    # The contract may state the old budget or the new one; the ledger's is used.
    assert run_json("plan", request, capsys=capsys)["budget_before"]["epsilon"] == 4
    raised = {"epsilon": 4.0, "delta": 2e-5}
    assert run_release(write_request(tmp_path, budget=raised)) == "v1-r1"
    code, _, err = run_command(
        "plan", write_request(tmp_path, budget=raised | {"epsilon": 5.0}), capsys=capsys
    )
    assert code == 2
    assert families.TERMS.code in err
    assert "budget.epsilon" in err


def test_damaged_bundle_does_not_hide_others(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_release(write_request(tmp_path))
    run_release(write_request(tmp_path, request={"version": "v2"}))
    description = home / "archive/toy/v1-r1/release/datapackage.json"
    description.chmod(0o644)
    description.write_text("forged")
    intact, damaged = run_json("list", capsys=capsys)
    assert "datapackage.json" in damaged["error"]
    assert intact["release"] == "toy/v2-r1"
    assert "datapackage.json" in run_command("list", capsys=capsys)[1]


@pytest.mark.slow
@pytest.mark.usefixtures("on_terminal", "prefect_server")
def test_names_with_brackets_are_printed_literally(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = {"rate [/min]": {"lower": 0.0, "upper": 1.0}, "[bold]": {"lower": 0.0, "upper": 1.0}}
    (tmp_path / "table.csv").write_text("rate [/min],[bold]\n5,1\n0.5,0.5\n")
    facts = {"columns": columns, "title": "Blood [/b] [red]", "rows": 2}
    request = write_request(tmp_path, **facts, curator="[link]")
    code, _, err = run_command("release", request, "--yes", "--despite", capsys=capsys)
    assert code == 0, err
    assert "rate [/min] (1)" in err
    for words in (["list"], ["show", "toy/v1-r1"], ["verify"], ["plan", request]):
        code, _, err = run_command(*words, capsys=capsys)
        assert code == 0, err
    assert "Blood [/b] [red]" in run_command("show", "toy/v1-r1", capsys=capsys)[1]


@pytest.mark.slow
def test_new_charge_option_recharges_a_spent_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], prefect_server: None
) -> None:
    request = write_request(tmp_path)

    def broken(*_: object, **__: object) -> None:
        raise MemoryError("63.1234")

    with pytest.MonkeyPatch.context() as failing:
        failing.setattr("gramercy.pipeline.publish.drawing.denoise", broken)
        code, _, err = run_command("release", request, "--yes", capsys=capsys)
    assert code == 1
    assert families.STEP_FAILED.code in err
    assert "MemoryError" in err
    assert "63.12" not in err
    code, _, err = run_command("release", request, "--yes", capsys=capsys)
    assert code == 2
    assert families.SPENT.code in err
    assert families.SPENT.code in run_command("plan", request, capsys=capsys)[1]
    code, out, err = run_command("release", request, "--yes", "--new-charge", capsys=capsys)
    assert code == 0, err
    assert "toy/v1-r2" in out


def test_failures_outside_the_steps_are_typed_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> None:
        raise RuntimeError("connection to 10.0.0.1 failed")

    monkeypatch.setattr("gramercy.flows.release.release_as_planned", lambda *_: unreachable)
    monkeypatch.setattr("gramercy.flows.server_process.has_configured_server", lambda: True)
    code, _, err = run_command("release", write_request(tmp_path), "--yes", capsys=capsys)
    assert code == 1
    assert families.SERVER.code in err
    assert "10.0.0.1" not in err
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the home should be")
    monkeypatch.setenv("GRAMERCY_HOME", str(blocked))
    for words in (["demo"], ["budget", "toy"], ["plan", tmp_path / "request.yaml"]):
        code, _, err = run_command(*words, capsys=capsys)
        assert code == 1
        assert "blocked" in err


def test_readme_commands_exist() -> None:
    """Every `gramercy` command shown in the documents exists."""
    import re

    import typer.main

    commands = set(typer.main.get_group(app).commands)
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")]
    text = "\n".join(page.read_text() for page in pages)
    named = set(re.findall(r"^\s*gramercy ([a-z]+)", text, re.MULTILINE))
    assert named
    assert named <= commands
