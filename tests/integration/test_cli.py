"""The command line: what it prints, and its exit codes."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from ruamel.yaml import YAML

import gramercy
from gramercy.cli.main import app
from gramercy.cli.output import terminal
from tests.support.factories import MECHANISM, run_command, run_json, run_release, write_request

ROOT = Path(__file__).parents[2]


def test_plan_reads_no_data(tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = write_request(tmp_path)
    (tmp_path / "table.csv").unlink()
    facts = run_json("plan", request, capsys=capsys)
    # s = sqrt2 sigma, with sigma of sensitivity 1 at epsilon 1, delta 1e-6 (Balle and Wang 2018).
    assert facts["scale"] == pytest.approx(2**0.5 * 4.2246788, rel=1e-6)
    assert facts["mu"] == pytest.approx(2**0.5 / facts["scale"], rel=1e-15)
    assert facts["epsilon"] <= 1
    assert facts["admitted"] is True
    assert facts["budget_before"]["spent_epsilon"] == 0
    assert facts["budget_after"]["spent_mu"] == facts["mu"]
    assert facts["matrix_error"] == pytest.approx((6 / 2) ** 0.5 * 2**0.5 * facts["sd_diagonal"])
    code, out, _ = run_command("plan", request, capsys=capsys)
    assert code == 0
    assert "sd" in out
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
    assert "nothing would be charged" in run_command("plan", request, capsys=capsys)[1]
    again = run_json("release", request, "--yes", capsys=capsys)
    assert again == released | {"replayed": True}

    (listed,) = run_json("list", capsys=capsys)
    assert listed["release"] == "toy/v1-r1"
    assert run_json("show", "toy/v1-r1", capsys=capsys)["guarantee"]["epsilon"] <= 1
    (budget,) = run_json("budget", capsys=capsys)
    assert len(budget["charges"]) == 1
    (verified,) = run_json("verify", capsys=capsys)
    assert any("ledger" in words for words in verified["checks"])
    twice = ("--penalty", "0.5", "--set", "penalty=0.4")
    for wrong in (twice, ("--set", "penalty"), ("--set", "rate=2"), ("--set", "input='no'")):
        assert run_command("estimate", "toy/v1-r1", *wrong, capsys=capsys)[0] == 2
    estimated = run_json("estimate", "toy/v1-r1", "--penalty", "0.5", capsys=capsys)
    assert Path(estimated["path"]).is_dir()
    assert len(run_json("verify", "toy/v1-r1", capsys=capsys)[0]["checks"]) == 14

    for words in (["list"], ["show", "toy/v1-r1"], ["budget", "toy"], ["verify"]):
        code, out, _ = run_command(*words, capsys=capsys)
        assert code == 0
        assert "toy" in out
    # A copy is verified without the ledger, and a damaged one is refused by name.
    copy = tmp_path / "copy"
    shutil.copytree(home / "archive", copy)
    assert run_command("verify", "--archive", copy, capsys=capsys)[0] == 0
    matrix = copy / "toy/v1-r1/release/second_moment.npy"
    matrix.chmod(0o644)
    matrix.write_bytes(matrix.read_bytes()[:-1])
    code, out, _ = run_command("verify", "--archive", copy, capsys=capsys)
    assert code == 2
    assert "second_moment.npy" in out


@pytest.mark.slow
def test_repairs_are_shown_only_on_a_terminal(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    prefect_server: None,
) -> None:
    (tmp_path / "table.csv").write_text("c0,c1,c2\n1,2,3\n,98765,x\n4,5\n")
    request = write_request(tmp_path, rows=3, budget={"epsilon": 2.0, "delta": 1e-5})
    code, out, err = run_command("release", request, "--yes", capsys=capsys)
    assert code == 0, err
    assert "c0" not in err  # into a file or a pipe, nothing private
    monkeypatch.setattr(terminal, "err", Console(stderr=True, force_terminal=True, width=200))
    code, out, err = run_command("release", request, "--yes", capsys=capsys)
    assert "c0 (1), c2 (1)" in err
    assert "c1 (1)" in err
    assert "1 lines are blank, broken or of the wrong width" in err
    assert "98765" not in err + out


@pytest.mark.parametrize(
    ("request_change", "contract_change", "words"),
    [
        ({"mechanizm": MECHANISM}, {}, "did you mean 'mechanism'"),
        ({"mechanism": MECHANISM | {"epsilon": -1}}, {}, "mechanism.epsilon"),
        ({"mechanism": MECHANISM | {"name": "magic"}}, {}, "must be one of 'gaussian', "),
        ({"version": "../../etc"}, {}, "version"),
        ({"version": "v%e"}, {}, "no other '%'"),
        ({"version": "%Y/%m"}, {}, "version"),
        ({"version": 1.1}, {}, "put it in quotes"),
        ({"timezone": "Mars/Olympus"}, {}, "is no time zone"),
        ({"normalisation": "max"}, {}, "normalisation"),
        ({"normalisation": {"kind": "clip"}}, {}, "radius"),
        ({"dataset": "nowhere.yaml"}, {}, "nowhere.yaml"),
        ({"dataset": "unregistered"}, {}, "unregistered.yaml"),
        ({"estimates": [{"name": "rige"}]}, {}, "must be one of 'ridge', 'graphical-lasso'"),
        ({"estimates": [{"name": "ridge", "penalty": "x"}]}, {}, "'estimates.0.penalty': must be"),
        ({"estimates": [{"name": "discriminant"}]}, {}, "'estimates.0': The release has no column"),
        ({"folds": 21}, {}, "folds"),
        ({"normalisation": {"kind": "clip", "radius": -1}}, {}, "'normalisation.radius': must"),
        ({}, {"columns": {"c\x01": {"lower": 0, "upper": 1}}}, "control character"),
        ({}, {"columns": {"c": {"levels": ["a\r\nb"]}}}, "control character"),
        ({}, {"id": "Has Spaces"}, "'id'"),
        ({}, {"rows": 0}, "rows"),
        ({}, {"columns": {"c0": {"lower": "0", "upper": 1}}}, "without quotes"),
        ({}, {"columns": {}}, "columns"),
        ({}, {"columns": {"c0": {"lower": 1, "upper": 0}}}, "columns.c0"),
        ({}, {"columns": {"c0": {"lower": 0}}}, "columns.c0.upper"),
        ({}, {"columns": {"c0": {"lower": 0, "upper": 5e-324}}}, "columns.c0"),
        ({}, {"columns": {"c0": {"lower": 0, "upper": 1, "scale": 0}}}, "scale"),
        ({}, {"columns": {"c0": {"lower": 0, "upper": 1, "centre": 2}}}, "centre"),
        ({}, {"columns": {"c0": {"lower": -1e308, "upper": 1e308, "scale": 1e-9}}}, "narrow"),
        ({}, {"budget": {"epsilon": 1, "delta": 0.5}}, "1/rows"),
        ({}, {"neighbors": "replace-one"}, "did you mean 'neighbours'"),
    ],
    ids=str,
)
def test_invalid_keys_are_refused_by_name(
    request_change: Any,
    contract_change: Any,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    request = write_request(tmp_path, request=request_change, **contract_change)
    code, out, err = run_command("plan", request, capsys=capsys)
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


def test_many_errors_are_shown_in_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = write_request(tmp_path)
    columns = "".join(f"  c{i}: {{}}\n" for i in range(50))
    (tmp_path / "contract.yaml").write_text(f"id: toy\ncolumns:\n{columns}")
    code, _, err = run_command("plan", request, capsys=capsys)
    assert code == 2
    assert "columns.c0.lower" in err
    assert re.search(r"; and \d+ more", err)
    assert len(err) < 1000


@pytest.mark.slow
def test_broken_yaml_is_reported_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = tmp_path / "request.yaml"
    for text, words in (
        ("dataset: x\nversion: [", "request.yaml, line"),
        ("dataset: x\ndataset: y", "request.yaml, line"),
        ("just words", "table of keys"),
        ("version: 2024-02-30", "cannot be"),
        ("version: " + "[" * 3000, "request.yaml"),
        ("version: " + "9" * 5000, "request.yaml"),
        ("", "table of keys"),
    ):
        request.write_text(text)
        code, _, err = run_command("plan", request, capsys=capsys)
        assert code == 2
        assert words in err
    code, _, err = run_command("plan", tmp_path / "absent.yaml", capsys=capsys)
    assert code == 2
    assert "no such file" in err
    request.write_bytes(b"\xff\xfe")
    assert run_command("plan", request, capsys=capsys)[0] == 2


def test_release_without_a_terminal_needs_yes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run_command("release", write_request(tmp_path), capsys=capsys)
    assert code == 2
    assert "--yes" in err


@pytest.mark.parametrize(
    "words", [["nothing"], ["plan"], ["show", "no/such"], ["verify"], ["budget", "nobody"]]
)
def test_unusable_arguments_are_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run_command(*words, capsys=capsys)
    assert code == 2
    assert err


def test_errors_are_printed_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run_command("plan", tmp_path / "absent.yaml", "--json", capsys=capsys)
    told = json.loads(out)
    assert code == told["exit_code"] == 2
    assert "absent.yaml: no such file" in told["error"]
    assert "absent.yaml: no such file" in err.replace("\n", "")
    assert run_command("--version", capsys=capsys)[1].strip() == gramercy.__version__


def test_missing_release_is_reported_by_list_and_verify(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_release(write_request(tmp_path))
    run_release(write_request(tmp_path, request={"version": "v2"}))
    assert len(run_json("verify", "toy", capsys=capsys)) == 2
    assert len(run_json("verify", "toy/v1-r1", capsys=capsys)) == 1
    shutil.rmtree(home / "archive/toy/v1-r1")
    gone, there = run_json("list", capsys=capsys)
    assert "holds no release 'toy/v1-r1'" in gone["error"]
    assert there["release"] == "toy/v2-r2"
    for words in (["verify"], ["verify", "toy/v1-r1"]):
        code, out, _ = run_command(*words, capsys=capsys)
        assert code == 2
        assert "was published, and is gone" in out
    code, out, _ = run_command("verify", "nonsense", capsys=capsys)
    assert code == 2


def test_catalogue_is_a_mapping(tmp_path: Path, home: Path) -> None:
    run_release(write_request(tmp_path))
    catalogue = gramercy.open(str(home / "archive"))
    assert "toy/v1-r1" in catalogue
    assert "toy/v9-r9" not in catalogue
    assert "../toy" not in catalogue
    assert catalogue.get("toy/v9-r9") is None
    with pytest.raises(gramercy.UnknownRelease, match="holds no release 'toy/v9-r9'"):
        catalogue["toy/v9-r9"]


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
    assert "--reason" in err
    (facts,) = run_json(*raising, "--reason", "board, 3 May", capsys=capsys)
    assert (facts["epsilon"], facts["delta"]) == (4, 2e-5)
    assert (
        run_command("budget", "toy", "--raise", "1", "2e-5", "--reason", "x", capsys=capsys)[0] == 2
    )
    assert facts["budgets"][1]["reason"] == "board, 3 May"
    assert "board, 3 May" in run_command("budget", "toy", capsys=capsys)[1]
    # The contract may state the old budget or the new one; the one in force is the ledger's.
    assert run_json("plan", request, capsys=capsys)["budget_before"]["epsilon"] == 4
    raised = {"epsilon": 4.0, "delta": 2e-5}
    assert run_release(write_request(tmp_path, budget=raised)) == "v1-r1"
    code, _, err = run_command(
        "plan", write_request(tmp_path, budget=raised | {"epsilon": 5.0}), capsys=capsys
    )
    assert code == 2
    assert "budget.epsilon" in err


def test_damaged_bundle_does_not_hide_others(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_release(write_request(tmp_path))
    run_release(write_request(tmp_path, request={"version": "v2"}))
    card = home / "archive/toy/v1-r1/release/CARD.md"
    card.chmod(0o644)
    card.write_text("forged")
    damaged, whole = run_json("list", capsys=capsys)
    assert "CARD.md" in damaged["error"]
    assert whole["release"] == "toy/v2-r2"
    assert "CARD.md" in run_command("list", capsys=capsys)[1]


@pytest.mark.slow
def test_names_with_brackets_are_printed_literally(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    prefect_server: None,
) -> None:
    columns = {"rate [/min]": {"lower": 0.0, "upper": 1.0}, "[bold]": {"lower": 0.0, "upper": 1.0}}
    (tmp_path / "table.csv").write_text("rate [/min],[bold]\n5,1\n0.5,0.5\n")
    facts = {"columns": columns, "title": "Blood [/b] [red]", "rows": 2}
    request = write_request(tmp_path, **facts, curator="[link]")
    monkeypatch.setattr(terminal, "err", Console(stderr=True, force_terminal=True, width=200))
    code, _, err = run_command("release", request, "--yes", capsys=capsys)
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

    def broken(*_: object) -> None:
        raise MemoryError("63.1234")

    with pytest.MonkeyPatch.context() as broke:
        broke.setattr("gramercy.application.drawing.denoise", broken)
        code, _, err = run_command("release", request, "--yes", capsys=capsys)
    assert code == 1
    assert "publish: MemoryError." in err
    assert "63" not in err
    code, _, err = run_command("release", request, "--yes", capsys=capsys)
    assert code == 2
    assert "--new-charge" in err
    assert "needs --new-charge" in run_command("plan", request, capsys=capsys)[1]
    code, out, err = run_command("release", request, "--yes", "--new-charge", capsys=capsys)
    assert code == 0, err
    assert "budget after" in out
    assert "toy/v1-r2" in out


def test_failures_outside_the_steps_are_typed_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> None:
        raise RuntimeError("connection to 10.0.0.1 failed")

    monkeypatch.setattr("gramercy.flows.release.release_as_planned", lambda *_: unreachable)
    code, _, err = run_command("release", write_request(tmp_path), "--yes", capsys=capsys)
    assert code == 1
    assert "PREFECT_API_URL" in err
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

    known = set(typer.main.get_group(app).commands)
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")]
    text = "\n".join(page.read_text() for page in pages)
    named = set(re.findall(r"^\s*gramercy ([a-z]+)", text, re.MULTILINE))
    assert named
    assert named <= known


def test_demo_contract_has_30_complete_columns() -> None:
    contract = YAML(typ="safe", pure=True).load(ROOT / "gramercy/application/demo/contract.yaml")
    assert len(contract["columns"]) == 30
    for column in contract["columns"].values():
        assert column.keys() == {"lower", "upper", "centre", "scale"}
