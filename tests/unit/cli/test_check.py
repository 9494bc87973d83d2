"""``gramercy check``: a private look at the table, on the terminal only."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gramercy.schemas import families
from tests.support.factories import run_command, run_json, write_request

FINE = "c0,c1,c2\n" + "1,2,3\n2,3,1\n" * 20


def written(folder: Path, text: str = FINE, **changes: Any) -> Path:
    (folder / "table.csv").write_text(text)
    return write_request(folder, **changes)


@pytest.mark.parametrize("terminals", [(), ("stdout",), ("stderr",)])
@pytest.mark.parametrize("variable", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_output_is_refused_to_files(
    variable: str,
    terminals: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Half of it goes to standard error; and variables do not make a terminal of a file."""
    monkeypatch.setenv(variable, "1")
    for name in terminals:
        monkeypatch.setattr(getattr(sys, name), "isatty", lambda: True)
    code, out, err = run_command("check", written(tmp_path), capsys=capsys)
    assert (code, out) == (2, "")
    assert families.NOT_A_TERMINAL.code in err
    assert families.PRIVATE.code not in err


@pytest.mark.usefixtures("on_terminal")
def test_usable_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run_command("check", written(tmp_path), capsys=capsys)
    assert code == 0
    assert "40 lines" in out
    assert [line.split()[0] for line in out.splitlines() if "fine" in line] == ["c0", "c1", "c2"]
    assert err.count("GRM-") == 1
    assert families.PRIVATE.code in err


@pytest.mark.usefixtures("on_terminal")
def test_unusable_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns: dict[str, Any] = {
        "[bold]": {"lower": 0, "upper": 9},
        "kind": {"levels": ["1", "2"]},
        "c1": {"lower": 0, "upper": 9},
    }
    text = "[bold],kind,c1\n" + '"63,5",2.0,314\n5,1.0,271\n'
    request = written(tmp_path, text, columns=columns, rows=2)
    code, out, err = run_command("check", request, capsys=capsys)
    assert code == 2
    assert "[bold]" in out
    unusable = (families.UNUSABLE_TABLE, families.UNUSABLE_COLUMNS)
    for problem in (*unusable, families.MANY_CELLS, families.PRIVATE):
        assert problem.code in err
    assert "[bold] (50 %)" in err
    shown = (out + err).replace("\n", "").replace(str(tmp_path), "")
    assert not any(cell in shown for cell in ("63,5", "314", "271"))


@pytest.mark.usefixtures("on_terminal")
def test_persons_of_two_spellings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counts of ids are shown, and no id."""
    text = "c0,c1,c2,who\n" + "1,2,3,zulu\n1,2,3,ZULU\n1,2,3,yoke\n" * 13 + "1,2,3,yoke\n"
    request = written(tmp_path, text, privacy_unit="who", persons=2)
    code, out, err = run_command("check", request, capsys=capsys)
    assert code == 0
    assert "3 ids" in out
    assert families.PERSON_IDS.code in err
    assert "2 of the 3 ids" in err
    assert not any(name in (out + err).lower() for name in ("zulu", "yoke"))
    facts = run_json("check", request, capsys=capsys)
    assert (facts["persons"], facts["ids_alike"]) == (3, 2)


def test_json_has_the_same_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "c0,c1,c2\n" + "x,2,3\n" * 39 + "broken\n"
    code, out, _ = run_command("check", written(tmp_path, text), "--json", capsys=capsys)
    facts = json.loads(out)
    assert code == 2
    assert (facts["rows"], facts["malformed_rows"], facts["complete"]) == (40, 1, True)
    assert facts["usable"] is False
    assert facts["columns"]["c0"] == {"missing": 39, "out_of_bounds": 0, "verdict": "unusable"}
    assert [each["code"] for each in facts["problems"]] == [
        families.UNUSABLE_TABLE.code,
        families.UNUSABLE_COLUMNS.code,
    ]
    assert len(facts["notice"]) > 40


@pytest.mark.parametrize(("rows", "expected"), [(41, 2), (40, 0)])
def test_wrong_number_of_rows(
    rows: int, expected: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = written(tmp_path, rows=rows)
    code, out, _ = run_command("check", request, "--json", capsys=capsys)
    assert code == expected
    codes = [each["code"] for each in json.loads(out)["problems"]]
    assert codes == [families.ROW_COUNT.code] * (expected == 2)
    code, out, _ = run_command("check", request, "--json", "--rows", "7", capsys=capsys)
    assert (code, json.loads(out)["rows"]) == (0, 7)
    assert run_command("check", request, "--json", "--rows", "0", capsys=capsys)[0] == 2


def test_wrong_columns_and_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text, problem in (("c0,c1,c3\n", families.TABLE_COLUMNS), ("c0;c1;c2\n", families.HEADER)):
        code, out, _ = run_command("check", written(tmp_path, text), "--json", capsys=capsys)
        assert (code, json.loads(out)["code"]) == (2, problem.code)
    code, out, _ = run_command(
        "check", written(tmp_path, source="none.csv"), "--json", capsys=capsys
    )
    assert (code, json.loads(out)["code"]) == (2, families.SOURCE.code)


def test_check_stores_nothing(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = written(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    run_command("check", request, "--json", capsys=capsys)
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before
    assert not home.exists()
