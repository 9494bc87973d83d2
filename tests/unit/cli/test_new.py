"""Drafts of a contract and a request, from names and types alone."""

from __future__ import annotations

import errno
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from gramercy.application.yaml_files import read_contract, read_request
from gramercy.cli.draft.drafting import draft
from gramercy.cli.draft.files import write
from gramercy.cli.draft.questions import usual_delta
from gramercy.cli.draft.scalars import in_yaml
from gramercy.schemas.column import Levels
from gramercy.schemas.errors import TableError
from tests.support.factories import run_command, run_json, write_yaml
from tests.support.prefect_services import ROOT

CANARY = "63.1234"
NASTY = [
    "yes",
    "null",
    "1",
    "1e5",
    "a: b",
    "a #b",
    "größe",
    "x, y",
    "{a}",
    "- c",
    "C:\\x",
    "~",
    "é✓",
]


def load(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30))
def test_any_text_survives_a_yaml_round_trip(text: str) -> None:
    told = in_yaml(text)
    yaml = YAML(typ="safe", pure=True)
    assert yaml.load(f"{told}: 1  # c\n") == {text: 1}
    assert yaml.load(f"a: {{levels: [{told}, {told}]}}\n")["a"]["levels"] == [text, text]
    assert "\n" not in told


def test_csv_draft_uses_only_the_header(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = ",".join(f'"{name}"' for name in [*NASTY, " lead"])
    (here / "blood.csv").write_text(f'{header}\n"{CANARY},broken\n{CANARY}\n', encoding="utf-8")
    words = ("new", "blood.csv", "--columns", header)
    code, out, err = run_command(*words, capsys=capsys)
    assert code == 0, err
    assert "gramercy plan blood/request.yaml" in out
    contract, text = load(here / "blood/contract.yaml"), (here / "blood/contract.yaml").read_text()
    assert contract["columns"] == {name: {"lower": None, "upper": None} for name in NASTY}
    assert list(contract["columns"]) == NASTY
    assert '# " lead": its name is empty or has blanks around it' in text
    assert contract["source"] == "../blood.csv"
    assert contract["rows"] is contract["title"] is contract["budget"]["epsilon"] is None
    assert CANARY not in text + out + err
    before = text
    code, _, err = run_command(*words, capsys=capsys)
    assert code == 2
    assert "blood/contract.yaml: is there already." in err
    assert "--folder" in err
    assert (here / "blood/contract.yaml").read_text() == before


def test_unfilled_keys_of_a_draft_are_refused_by_name(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "blood.csv").write_text("glucose,ward\n")
    made = run_json("new", "blood.csv", "--folder", "drafts/first", capsys=capsys)
    assert made["next"] == "gramercy plan drafts/first/request.yaml"
    contract = Path(made["contract"])
    contract.write_text(
        contract.read_text().replace("ward: {lower: , upper: }", "ward: {levels: }")
    )
    code, out, err = run_command("plan", made["request"], capsys=capsys)
    assert (code, out) == (2, "")
    for key in ("title", "curator", "rows", "budget.epsilon", "budget.delta"):
        assert f"key '{key}': is empty; write it" in err
    for bound in ("lower", "upper"):
        assert f"key 'columns.glucose.{bound}': is empty; write a bound that somebody knows" in err
    assert "key 'columns.ward.levels': is empty; write the levels that somebody knows" in err


def test_filled_draft_can_be_planned(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "blood-1.csv").write_text("glucose,sodium\n")
    (here / "blood-2.csv").write_text("sodium,glucose,late\n")
    made = run_json("new", "blood-*.csv", "--id", "clinic", capsys=capsys)
    assert made["left_out"] == {"late": "not in every file"}
    contract = Path(made["contract"])
    assert contract == Path("clinic/contract.yaml")
    facts = load(contract)
    facts |= {"title": "Blood", "curator": "City Hospital", "rows": 900}
    facts["budget"] = {"epsilon": 3, "delta": 1e-6}
    facts["columns"] = {name: {"lower": 2, "upper": 30} for name in facts["columns"]}
    write_yaml(contract, facts)
    planned = run_json("plan", made["request"], capsys=capsys)
    assert (planned["dataset"], planned["columns"], planned["admitted"]) == ("clinic", 3, True)
    assert read_contract(contract).source == f"{here}/clinic/../blood-*.csv"


def test_parquet_draft_uses_the_stated_types(here: Path) -> None:
    table = pa.table(
        {
            "age": pa.array([63], pa.int16()),
            "glucose": pa.array([63.1234]),
            "ward": pa.array([CANARY]).dictionary_encode(),
            "name": pa.array([CANARY]),
            "taken": pa.array([63], pa.timestamp("s")),
            "photo": pa.array([CANARY.encode()]),
            "nested": pa.array([{CANARY: 1}]),
            "nothing": pa.nulls(1),
        }
    )
    path = here / "region=north" / "blood.parquet"
    path.parent.mkdir()
    pq.write_table(table, path, compression="none")
    data = bytearray(path.read_bytes())
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[4:end] = os.urandom(end - 4)  # every page is broken; the footer says what is asked for
    path.write_bytes(bytes(data))
    made = draft(str(here), "blood")
    contract, _ = write(made, here / "drafts")
    columns, text = load(contract)["columns"], contract.read_text()
    bounds, levels = {"lower": None, "upper": None}, {"levels": None}
    assert columns == {
        "age": bounds,
        "glucose": bounds,
        "ward": levels,
        "name": levels,
        "nothing": bounds,
        "region": bounds,
    }
    assert "age: {lower: , upper: }  # whole numbers" in text
    assert "# taken: neither numbers nor text (timestamp)" in text
    assert "# photo: neither numbers nor text (binary)" in text
    assert "# nested: neither numbers nor text (struct)" in text
    assert CANARY not in text
    assert "north" not in text


def test_draft_of_a_wide_table_and_of_chosen_columns(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"marker {i}" for i in range(700)] + ["a,b"]
    pd.DataFrame(np.zeros((0, 701)), columns=names).to_csv(here / "wide.csv", index=False)
    made = run_json("new", "wide.csv", "--folder", "all", capsys=capsys)
    assert list(load(here / "all/contract.yaml")["columns"]) == names == made["columns"]
    words = ("new", "wide.csv", "--folder", "some", "--columns", 'marker 7,"a,b",marker 7')
    assert run_json(*words, capsys=capsys)["columns"] == ["marker 7", "a,b"]
    for wrong, told in (("marker 701", "is no column"), ("", "--columns A,B"), ("a,", "A,B")):
        code, _, err = run_command(
            "new", "wide.csv", "--folder", "x", "--columns", wrong, capsys=capsys
        )
        assert code == 2
        assert told in err
    assert not (here / "x").exists()


@pytest.mark.parametrize(
    "row",
    [
        f"{CANARY},-4,B",
        "Anna,34,Berlin",
        "Anna,Berlin,1970-03-05",
        "Anna,Berlin,5 Mar 1970",
        "Anna,Berlin,1970-03-05T10:00:00Z",
        "Anna,Berlin,3:45 pm",
        'Anna,Berlin,"63,4"',
        "Anna,Berlin,N/A",
        " 34 ,Anna,Berlin",
    ],
)
def test_first_line_that_looks_like_data_is_not_printed(
    row: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "blood.csv").write_text(f"{row}\n1,2,A\n")
    code, out, err = run_command("new", "blood.csv", capsys=capsys)
    assert code == 2
    assert "seems to be a row" in err
    assert "--columns" in err
    assert not any(cell.strip('" ') in out + err for cell in row.split(",") if len(cell) > 1)
    assert not (here / "blood").exists()


def test_column_names_that_look_like_data_can_be_given(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "years.csv").write_text("region,2019,2020\n")
    made = run_json("new", "years.csv", "--columns", "2019,2020", capsys=capsys)
    assert made["columns"] == ["2019", "2020"]
    names = ["marker 7", "CD4/CD8", "1st", "May", "x_2", "c\x01"]
    (here / "names.csv").write_text("," + ",".join(names) + "\n")  # the first one of an index
    made = run_json("new", "names.csv", capsys=capsys)
    assert made["columns"] == names[:-1]
    assert made["left_out"].keys() == {"", "c\x01"}
    assert "\x01" not in Path(made["contract"]).read_text()


def test_tilde_in_a_source_is_expanded(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(here / "someone"))
    (here / "someone").mkdir()
    (here / "someone/blood-1.csv").write_text("glucose\n")
    contract, _ = write(draft("~/blood-*.csv"), here / "drafts")
    assert load(contract)["source"] == str(here / "someone/blood-*.csv")


def test_draft_writes_both_files_or_none(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "blood.csv").write_text("glucose\n")
    opened = Path.open

    def full(path: Path, *args: Any, **given: Any) -> Any:
        if path.name == "request.yaml":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return opened(path, *args, **given)

    with monkeypatch.context() as disk:
        disk.setattr(Path, "open", full)
        code, _, err = run_command("new", "blood.csv", capsys=capsys)
    assert code == 2
    assert "--folder: blood cannot be written (No space left on device)" in " ".join(err.split())
    assert list((here / "blood").iterdir()) == []
    assert run_command("new", "blood.csv", capsys=capsys)[0] == 0


def test_unusable_arguments_are_refused_by_name(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "blood").mkdir()
    (here / "blood/part.csv").write_text("glucose\n")
    (here / "afile").touch()
    for words, told in (
        (("none.csv",), "none.csv: no such file"),
        (("blood",), "blood: is the table itself. Name another with --folder."),
        (("blood", "--id", "No Id"), "--id"),
        (("",), "TABLE: is empty."),
        (("blood", "--folder", "afile"), "--folder: afile is there, and no folder."),
        (("blood", "--folder", "afile/x"), "--folder: afile is there, and no folder."),
    ):
        code, _, err = run_command("new", *words, capsys=capsys)
        assert code == 2
        assert told in err
    with pytest.raises(TableError, match="no such file"):
        draft(str(here / "elsewhere-*.csv"))


def test_year_placeholder_drafts_a_yearly_budget(here: Path) -> None:
    (here / "blood-2025.csv").write_text("glucose\n")
    (here / "blood-2026.csv").write_text("glucose\n")
    made = draft("blood-{year}.csv")
    assert made.id == "blood"
    contract, _ = write(made, here / "blood")
    assert load(contract)["budget"]["per"] == "year"
    assert load(contract)["source"] == "../blood-{year}.csv"


def on_a_terminal(folder: Path, home: Path, lines: list[str], *words: str) -> tuple[int, str]:
    """Run a command whose input is a terminal; return its exit code and output."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "wb", buffering=0) as keyboard:
        typed = "".join(f"{line}\n" for line in lines)
        keyboard.write(f"{typed}\x04".encode())  # end of input
        done = subprocess.run(
            [sys.executable, "-m", "gramercy", *words],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | {"GRAMERCY_HOME": str(home), "PYTHONPATH": str(ROOT)},
            cwd=folder,
            timeout=60,
            check=False,
        )
        os.close(theirs)
    return done.returncode, done.stdout.decode()


@pytest.mark.slow
def test_draft_is_filled_in_on_a_terminal(
    here: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = "patient,glucose,notes,ward,zip,spare,last"
    (here / "blood.csv").write_text(f"{header}\n{CANARY}\n")
    said = ["Blood values", "City Hospital", "nobody", "patient", "y", "2105", "12", "7466"]
    columns = ["numbers", "30", "2", "2", "30", "", "x", "l", "A, B, C", "lev", "007,010", "d"]
    budget = ["", "2", "", "", "", ""]
    code, told = on_a_terminal(here, home, [*said, *columns, *budget], "new", "blood.csv")
    assert code == 0, told
    assert "'nobody' is no column" in told
    assert "'lower' must lie below 'upper'" in told
    assert "[4/6] zip" in told
    assert "write a number of 2105 or more" in told  # as many rows as persons, at least
    assert CANARY not in told
    contract = read_contract(here / "blood/contract.yaml")
    assert (contract.title, contract.curator) == ("Blood values", "City Hospital")
    assert (contract.unit, contract.persons, contract.rows) == ("patient", 2105, 7466)
    assert contract.names == ["glucose", "ward", "zip"]
    assert contract.columns["zip"] == Levels(levels=("007", "010"))
    assert contract.levels("ward") == ("A", "B", "C")
    request = here / "blood/request.yaml"
    assert read_request(request).mechanism.delta == pytest.approx(1e-7)
    planned = run_json("plan", request, capsys=capsys)
    assert (planned["columns"], planned["persons"], planned["admitted"]) == (7, 2105, True)


@pytest.mark.slow
def test_interactive_draft_without_columns_writes_nothing(here: Path, home: Path) -> None:
    (here / "blood.csv").write_text("glucose\n")
    lines = ["Blood", "Hospital", "", "", "900", "done"]
    code, told = on_a_terminal(here, home, lines, "new", "blood.csv")
    assert code == 2
    assert "No column was chosen" in told
    assert not (here / "blood").exists()


def test_usual_delta_is_well_below_one_over_rows() -> None:
    for count in (1, 999, 10**5, 10**5 + 1, 10**9):
        assert usual_delta(count) <= 0.1 / count
    assert usual_delta(1) == 1e-6
