"""``gramercy new``: drafts of a contract and a request, from names and types alone."""

from __future__ import annotations

import errno
import json
import os
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

from gramercy.cli.draft.drafting import default_delta, default_id, draft
from gramercy.cli.new import write
from gramercy.pipeline.plan.request_files import read_contract
from gramercy.schemas import families
from gramercy.schemas.corrections import as_yaml
from gramercy.schemas.periods import Span, is_label
from gramercy.schemas.problem import Family
from tests.support.factories import run_command, run_json, write_yaml
from tests.support.problems import raises
from tests.support.source_tables import execute

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
def cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30))
def test_any_text_survives_a_yaml_round_trip(text: str) -> None:
    scalar = as_yaml(text)
    yaml = YAML(typ="safe", pure=True)
    assert yaml.load(f"{scalar}: 1  # c\n") == {text: 1}
    assert yaml.load(f"a: {{levels: [{scalar}, {scalar}]}}\n")["a"]["levels"] == [text, text]
    assert "\n" not in scalar


def test_csv_draft_uses_only_the_header(cwd: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = ",".join(f'"{name}"' for name in [*NASTY, " lead"])
    (cwd / "blood.csv").write_text(f'{header}\n"{CANARY},broken\n{CANARY}\n', encoding="utf-8")
    words = ("new", "blood.csv", "--columns", header)
    code, out, err = run_command(*words, capsys=capsys)
    assert code == 0, err
    assert "gramercy plan blood/request.yaml" in out
    contract, text = (load(cwd / "blood/contract.yaml"), (cwd / "blood/contract.yaml").read_text())
    names = [*NASTY, "lead"]  # without blanks around it
    assert contract["columns"] == {name: {"lower": None, "upper": None} for name in names}
    assert list(contract["columns"]) == names
    assert contract["source"] == "../blood.csv"
    assert contract["rows"] is contract["title"] is contract["budget"]["epsilon"] is None
    assert CANARY not in text + out + err
    before = text
    code, _, err = run_command(*words, capsys=capsys)
    assert code == 2
    assert families.OUTPUT.code in err
    assert "blood/contract.yaml" in err
    assert (cwd / "blood/contract.yaml").read_text() == before


def test_unfilled_keys_of_a_draft_are_refused_by_name(
    cwd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (cwd / "blood.csv").write_text("glucose,ward\n")
    words = ("new", "blood.csv", "--folder", "drafts/first", "--columns", "glucose,ward")
    made = run_json(*words, capsys=capsys)
    assert made["next"] == "gramercy plan drafts/first/request.yaml"
    contract = Path(made["contract"])
    contract.write_text(
        contract.read_text().replace("ward: {lower: , upper: }", "ward: {levels: }")
    )
    code, out, err = run_command("plan", made["request"], capsys=capsys)
    assert (code, out) == (2, "")
    for key in (
        *("title", "curator", "rows", "budget.epsilon", "budget.delta"),
        "columns.ward.levels",
    ):
        assert any(f"{key}: " in line and families.KEY.code in line for line in err.splitlines())


@pytest.mark.slow
def test_filled_draft_can_be_planned(cwd: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (cwd / "blood-1.csv").write_text("glucose,sodium\n")
    (cwd / "blood-2.csv").write_text("sodium,glucose,late\n")
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
    assert read_contract(contract).source == f"{cwd}/clinic/../blood-*.csv"


def test_parquet_draft_uses_the_stated_types(cwd: Path) -> None:
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
    path = cwd / "region=north" / "blood.parquet"
    path.parent.mkdir()
    pq.write_table(table, path, compression="none")
    data = bytearray(path.read_bytes())
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[4:end] = os.urandom(end - 4)  # no page can be read; the footer has the types
    path.write_bytes(bytes(data))
    made = draft(str(cwd), "blood")
    contract, _ = write(made, cwd / "drafts")
    columns, text = load(contract)["columns"], contract.read_text()
    bounds = {"lower": None, "upper": None}
    assert columns == {"age": bounds, "glucose": bounds, "nothing": bounds}
    assert "age: {lower: , upper: }  # whole numbers" in text
    assert "# taken: {unit: days since 1970-01-01, " in text
    assert "# ward: {levels: [A, B]}" in text
    assert "# region: {levels: [1, 2]}" in text
    assert "# photo: neither numbers nor text (binary)" in text
    assert "# nested: neither numbers nor text (struct)" in text
    assert CANARY not in text
    assert "north" not in text


@pytest.mark.slow
def test_draft_of_a_wide_table_and_of_chosen_columns(
    cwd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"marker {i}" for i in range(700)] + ["a,b"]
    pd.DataFrame(np.zeros((0, 701)), columns=names).to_csv(cwd / "wide.csv", index=False)
    made = run_json("new", "wide.csv", "--folder", "all", capsys=capsys)
    assert list(load(cwd / "all/contract.yaml")["columns"]) == names == made["columns"]
    words = ("new", "wide.csv", "--folder", "some", "--columns", 'marker 7,"a,b",marker 7')
    assert run_json(*words, capsys=capsys)["columns"] == ["marker 7", "a,b"]
    for wrong in ("marker 701", "", "a,"):
        words = ("new", "wide.csv", "--folder", "x", "--columns", wrong)
        code, _, err = run_command(*words, capsys=capsys)
        assert (code, families.DRAFT.code in err) == (2, True)
    assert not (cwd / "x").exists()


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
    row: str, cwd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (cwd / "blood.csv").write_text(f"{row}\n1,2,A\n")
    code, out, err = run_command("new", "blood.csv", capsys=capsys)
    assert code == 2
    assert families.DRAFT.code in err
    shown = (out + err).replace(families.DRAFT.code, "")
    assert not any(cell.strip('" ') in shown for cell in row.split(",") if len(cell) > 1)
    assert not (cwd / "blood").exists()


def test_column_names_that_look_like_data_can_be_given(
    cwd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (cwd / "years.csv").write_text("region,2019,2020\n")
    made = run_json("new", "years.csv", "--columns", "2019,2020", capsys=capsys)
    assert made["columns"] == ["2019", "2020"]
    names = ["marker 7", "CD4/CD8", "1st", "May", "x_2", "c\x01"]
    # The first name is empty, as for an index.
    (cwd / "names.csv").write_text("," + ",".join(names) + "\n")
    made = run_json("new", "names.csv", capsys=capsys)
    assert made["columns"] == names[:-1]
    assert made["left_out"].keys() == {"", "c\x01"}
    assert "\x01" not in Path(made["contract"]).read_text()


def test_tilde_in_a_source_is_expanded(cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(cwd / "someone"))
    (cwd / "someone").mkdir()
    (cwd / "someone/blood-1.csv").write_text("glucose\n")
    contract, _ = write(draft("~/blood-*.csv"), cwd / "drafts")
    assert load(contract)["source"] == str(cwd / "someone/blood-*.csv")


def test_draft_writes_both_files_or_none(
    cwd: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (cwd / "blood.csv").write_text("glucose\n")
    opened = Path.open

    def fill_disk(path: Path, *args: Any, **options: Any) -> Any:
        if path.name == "request.yaml":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return opened(path, *args, **options)

    with monkeypatch.context() as disk:
        disk.setattr(Path, "open", fill_disk)
        code, _, err = run_command("new", "blood.csv", capsys=capsys)
    assert code == 2
    assert families.OUTPUT.code in err
    assert "--folder: blood" in err
    assert list((cwd / "blood").iterdir()) == []
    assert run_command("new", "blood.csv", capsys=capsys)[0] == 0


def test_unusable_arguments_are_refused_by_name(
    cwd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (cwd / "blood").mkdir()
    (cwd / "blood/part.csv").write_text("glucose\n")
    (cwd / "afile").touch()
    in_file = {"option": "--folder", "path": "afile"}
    cases: list[tuple[tuple[str, ...], Family[Any], dict[str, str]]] = [
        (("none.csv",), families.SOURCE, {}),
        (("blood",), families.DRAFT, {"folder": "blood"}),
        (("blood", "--id", "No Id"), families.REQUEST_FILE, {"file": "--id"}),
        (("",), families.DRAFT, {}),
        (("blood", "--folder", "afile"), families.OUTPUT, in_file),
        (("blood", "--folder", "afile/x"), families.OUTPUT, in_file),
    ]
    for words, problem, facts in cases:
        code, out, _ = run_command("new", *words, "--json", capsys=capsys)
        error = json.loads(out)
        assert code == 2
        assert error["code"] == problem.code
        assert facts.items() <= error["facts"].items()
    with raises(families.SOURCE):
        draft(str(cwd / "elsewhere-*.csv"))


def test_year_placeholder_drafts_a_yearly_budget(
    cwd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (cwd / "blood-2025.csv").write_text("glucose\n")
    (cwd / "blood-2026.csv").write_text("glucose\n")
    made = draft("blood-{year}.csv")
    assert made.id == "blood"
    contract, request = write(made, cwd / "blood")
    facts = load(contract)
    assert facts["budget"]["per"] == "year"
    assert facts["source"] == f"{cwd}/blood-{{year}}.csv"  # with '..' it would be refused
    facts |= {"title": "Blood", "curator": "City Hospital", "rows": 900}
    facts["budget"] |= {"epsilon": 3, "delta": 1e-6}
    facts["columns"] = {"glucose": {"lower": 2, "upper": 30}}
    write_yaml(contract, facts)
    assert run_json("plan", request, capsys=capsys)["admitted"]
    written, _ = write(made, cwd)
    assert load(written)["source"] == "blood-{year}.csv"


@pytest.mark.parametrize(
    ("table", "per", "name"),
    [
        ("blood-{year}-{month}.csv", "month", "blood-2026-11.csv"),
        ("{year}/W{week}/blood.csv", "week", "2026/W47/blood.csv"),
        ("blood{year}Q{quarter}.csv", "quarter", "blood2026Q4.csv"),
    ],
)
def test_placeholders_draft_a_budget_per_period(
    cwd: Path, table: str, per: Span, name: str
) -> None:
    (cwd / name).parent.mkdir(parents=True, exist_ok=True)
    (cwd / name).write_text("glucose\n")
    made = draft(table)
    assert (made.id, made.per) == ("blood", per)
    assert is_label(per, made.version)
    contract, _ = write(made, cwd / "blood")
    assert load(contract)["budget"]["per"] == per


def test_data_set_is_named_after_the_folder_if_the_file_says_nothing(
    cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = cwd / "Heart Clinic" / "raw"
    folder.mkdir(parents=True)
    for name in ("data.csv", "2024.csv", "part-0000.csv", "export_2024-v2.csv"):
        (folder / name).write_text("age\n")
        assert draft(str(folder / name)).id == "heart-clinic"
    monkeypatch.chdir(folder)
    assert draft("data.csv").id == draft("*.csv").id == "heart-clinic"
    (folder / "visits-2024.csv").write_text("age\n")
    assert draft("visits-2024.csv").id == "visits-2024"
    assert default_id("https://example.org/heart/data.csv?key=1") == "heart"
    assert default_id("s3://bucket/year=2024/part-0.parquet") == "table"
    monkeypatch.setenv("HOME", str(folder))  # a home folder is named after a user
    assert draft("data.csv").id == "table"


def test_default_delta_is_well_below_one_over_rows() -> None:
    for count in (1, 999, 10**5, 10**5 + 1, 10**9):
        assert default_delta(count) <= 0.1 / count
    assert default_delta(1) == 1e-6


@pytest.mark.parametrize(
    ("name", "encoding", "keys"),
    [
        ("blood.csv", "utf-8", {"separator": ";"}),
        ("blood.tsv", "utf-8", {"separator": "\t"}),
        ("blood.csv", "cp1252", {"separator": ";", "encoding": "cp1252"}),
        ("blood.txt", "utf-16", {"separator": "|", "encoding": "utf-16"}),
    ],
)
def test_format_of_csv_is_drafted_from_the_header(
    name: str, encoding: str, keys: dict[str, str], cwd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"größe;age\n{CANARY};1\n" if encoding != "utf-8" else f"lead;age\n{CANARY};1\n"
    (cwd / name).write_bytes(text.replace(";", keys["separator"]).encode(encoding))
    code, _, err = run_command("new", name, "--no-ask", capsys=capsys)
    assert code == 0, err
    drafted = load(cwd / "blood/contract.yaml")
    assert drafted["source"] == {"path": f"../{name}", "decimal": ".", **keys}
    assert list(drafted["columns"]) == [text[: text.index(";")], "age"]
    assert CANARY not in (cwd / "blood/contract.yaml").read_text()


def test_draft_for_a_table_of_a_database(cwd: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names and types only; a file of SQLite is found from the folder of the contract, too."""
    execute(
        f"sqlite:///{cwd}/clinic.db",
        "CREATE TABLE visits_2020 (lead REAL, ward TEXT, photo BLOB)",
        f"INSERT INTO visits_2020 VALUES ({CANARY}, '{CANARY}', NULL)",
    )
    words = ("new", "visits_2020", "--database", "sqlite:///clinic.db", "--no-ask")
    code, _, err = run_command(*words, capsys=capsys)
    assert code == 0, err
    path = cwd / "visits-2020/contract.yaml"
    drafted = load(path)
    assert drafted["source"] == {"url": f"sqlite:///{cwd}/clinic.db", "table": "visits_2020"}
    assert list(drafted["columns"]) == ["lead", "photo"]
    assert CANARY not in path.read_text()
    for url in ("sqlite://user:pw@host/x", "clinic.db"):
        with raises(families.DATABASE):
            draft("visits_2020", database=url)
