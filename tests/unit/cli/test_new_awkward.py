"""``gramercy new`` for tables with indexes, codes, dates, preambles and files of periods."""

from __future__ import annotations

import datetime
import shlex
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramercy.cli.draft.drafting import draft, find_series
from gramercy.pipeline.plan.request_files import read_contract, read_request
from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from gramercy.schemas.source import Files
from tests.support.factories import run_command, run_json
from tests.support.problems import raises
from tests.unit.cli.conftest import CTRL_C, Answer

CANARY = "63.1234"


@pytest.fixture
def cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check_planned(folder: Path, capsys: pytest.CaptureFixture[str]) -> Contract:
    """The contract of a draft, whose request can be planned with the table."""
    assert run_json("plan", folder / "request.yaml", capsys=capsys)["admitted"]
    return read_contract(folder / "contract.yaml")


def left_out(table: str, columns: Mapping[str, Any]) -> list[str]:
    """The columns that a draft leaves out, of a table with one row."""
    pq.write_table(pa.table({k: [each] for k, each in columns.items()}), table)
    return list(draft(table).left_out)


def test_indexes_and_identifiers_are_left_out(cwd: Path) -> None:
    names = [
        "__index_level_0__",
        "Unnamed: 0",
        "index",
        "pid",
        "patientID",
        "person_key",
    ]
    kept = {"body_mass_index": 1.5, "level": 3, "candid": 2, "income": 1}
    assert left_out("t.parquet", dict.fromkeys(names, 1) | kept) == names


def test_whole_numbers_that_are_named_like_codes_are_left_out(cwd: Path) -> None:
    codes = ["sex", "Gender", "ward", "ward_no", "zip", "zip5", "PLZ", "postcode", "icd10_code"]
    codes += ["region", "ageGroup", "state"]
    kept = {"group_size": 2, "codeine": 1, "sexual_health_score": 5}
    assert left_out("t.parquet", dict.fromkeys(codes, 1) | kept) == codes
    assert left_out("t.parquet", {"class": 0.5, "age": 1}) == []  # not whole: no codes
    columns = draft("t.parquet", columns=["class"]).published
    assert columns.keys() == {"class"}


@pytest.mark.slow
def test_codes_are_drafted_as_a_line_that_declares_levels(
    cwd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (cwd / "blood.csv").write_text("sex,age\n1,60\n")
    made = run_json("new", "blood.csv", capsys=capsys)
    contract = Path(made["contract"])
    text = contract.read_text().replace("# sex: {levels: [1, 2]}", "sex: {levels: [1, 2]}")
    for key, value in {"title": "Blood", "curator": "me", "rows": "1000"}.items():
        text = text.replace(f"{key}:  #", f"{key}: {value}  #")
    text = text.replace("epsilon:  #", "epsilon: 3  #").replace("delta:  #", "delta: 1e-6  #")
    contract.write_text(text)
    assert check_planned(contract.parent, capsys).names == ["age", "sex"]


def test_table_of_codes_alone_is_refused_with_a_remedy(
    cwd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (cwd / "codes.csv").write_text("sex,ward\n1,2\n")
    code, _, err = run_command("new", "codes.csv", capsys=capsys)
    assert (code, families.DRAFT.code in err) == (2, True)
    assert run_json("new", "codes.csv", "--columns", "sex", capsys=capsys)["columns"] == ["sex"]


def test_dates_are_an_option_in_the_draft(cwd: Path, answer: Answer) -> None:
    day = datetime.date(2026, 1, 5)
    rows = {"born": [day] * 2000, "age": [1] * 2000, "seen": pd.Timestamp("2026-01-05")}
    pd.DataFrame(rows).to_parquet("blood.parquet")
    code, out = answer("n", "", words=("blood.parquet",))
    assert code == 0, out
    text = (cwd / "blood/contract.yaml").read_text()
    for name in ("born", "seen"):
        assert f"# {name}: {{unit: days since 1970-01-01, lower: 1900-01-01" in text
    assert "2026-01-05" not in text


@pytest.mark.slow
def test_truth_values_are_levels(
    cwd: Path, answer: Answer, capsys: pytest.CaptureFixture[str]
) -> None:
    pd.DataFrame({"smoker": [True, False] * 1000, "age": 40.5}).to_parquet("blood.parquet")
    code, out = answer("", words=("blood.parquet",))
    assert code == 0, out
    contract = check_planned(cwd / "blood", capsys)
    assert contract.columns["smoker"].categories == ("true", "false")


@pytest.mark.slow
def test_names_are_drafted_in_one_unicode_form(
    cwd: Path, answer: Answer, capsys: pytest.CaptureFixture[str]
) -> None:
    decomposed = unicodedata.normalize("NFD", "Größe (cm)")
    (cwd / "blood.csv").write_text(f"{decomposed},age\n" + "180,60\n" * 2000)
    code, out = answer("", words=("blood.csv",))
    assert code == 0, out
    assert check_planned(cwd / "blood", capsys).names == ["Größe (cm)", "age"]
    assert draft("blood.csv", columns=[decomposed]).published.keys() == {"Größe (cm)"}


ROWS = f"{CANARY},60\n" * 2000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("above", "keys"),
    [
        ("# extract of 2026-11-01\n# source: registry, all\n", {"comment": "#", "header": 1}),
        ("Hospital episodes 2026\n\n", {"comment": None, "header": 3}),
        ("Hospital episodes 2026,\n,\n", {"comment": None, "header": 3}),
        ("\n", {"comment": None, "header": 2}),
        ("# a\n\nRegistry\n", {"comment": None, "header": 4}),
    ],
)
def test_lines_above_the_header_are_recognised(
    above: str,
    keys: dict[str, Any],
    cwd: Path,
    answer: Answer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (cwd / "blood.csv").write_text(f"{above}income,age\n{ROWS}")
    code, out = answer("", words=("blood.csv",))
    assert code == 0, out
    contract = check_planned(cwd / "blood", capsys)
    assert (contract.names, contract.rows) == (["income", "age"], 2000)
    assert isinstance(contract.source, Files)
    assert keys.items() <= contract.source.model_dump().items()
    assert f"line {above.count(chr(10)) + 1} has 2 fields" in out
    assert CANARY not in out + (cwd / "blood/contract.yaml").read_text()


@pytest.mark.parametrize(
    "text",
    [
        "Episodes\n\nAnna,Berlin\nBernd,Mainz\n",  # names or rows?
        f"income,age\n1,{CANARY},60\n2,{CANARY},61\n",  # names of rows have no name
        f"Episodes\n{CANARY},60\n{CANARY},61\n",
    ],
)
def test_doubtful_header_is_refused_and_no_cell_is_shown(
    text: str, cwd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (cwd / "blood.csv").write_text(text)
    with raises(families.DRAFT):
        draft("blood.csv")
    code, out, err = run_command("new", "blood.csv", capsys=capsys)
    assert code == 2
    assert not any(cell in out + err for cell in (CANARY, "Anna", "Mainz", "60"))
    assert not (cwd / "blood").exists()


def test_header_of_words_can_be_named(cwd: Path) -> None:
    (cwd / "wards.csv").write_text("Wards\n\nward,town\nA,Berlin\nB,Mainz\n")
    made = draft("wards.csv", columns=["town", "ward"])
    assert made.written is not None
    assert (made.written.header, list(made.published)) == (3, ["town", "ward"])


@pytest.mark.parametrize(
    "text",
    [
        "note,income,age\n" + '"line one\nline two",1,2\n' * 9,
        "#id,age\n1,2\n2,3\n",
        "age;income\n" + "1,5;2,5\n" * 9,
        'note\n"one, two"\n"three, four"\n',
        ",income,age\n0,1,2\n1,2,3\n",
    ],
)
def test_usual_headers_are_in_line_one(text: str, cwd: Path) -> None:
    (cwd / "blood.csv").write_text(text)
    written = draft("blood.csv").written
    assert written is None or (written.header, written.comment) == (1, None)


@pytest.mark.slow
def test_decimal_mark_is_asked_for_where_it_may_be_a_comma(
    cwd: Path, answer: Answer, capsys: pytest.CaptureFixture[str]
) -> None:
    (cwd / "blood.csv").write_text("glucose;age\n" + "5,5;60,0\n" * 2000)
    code, out = answer("", "", "1,5", "comma", "", words=("blood.csv",))
    assert code == 0, out
    assert out.count(families.DRAFT.code) == 2
    contract = check_planned(cwd / "blood", capsys)
    assert isinstance(contract.source, Files)
    assert (contract.source.separator, contract.source.decimal) == (";", ",")


SERIES = {
    "month": ["visits-2026-01.csv", "visits-2026-02.csv"],
    "quarter": ["visits-2025Q3.csv", "visits-2025Q4.csv"],
    "week": ["visits_2026-W01.csv", "visits_2026-W02.csv"],
    "day": ["visits-20260105.csv", "visits-20260106.csv"],
    "year": ["visits-2024.csv", "visits-2025.csv"],
}


@pytest.mark.slow
@pytest.mark.parametrize("span", SERIES)
def test_file_of_a_series_drafts_all_its_files(
    span: str, cwd: Path, answer: Answer, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in SERIES[span]:
        (cwd / name).write_text("glucose,age\n" + "5,60\n" * 2000)
    code, out = answer("", "", "2000", "", words=(SERIES[span][0],))
    assert code == 0, out
    contract = check_planned(cwd / "visits", capsys)
    assert (contract.id, contract.budget.per) == ("visits", span)
    assert (contract.rows, contract.neighbours) == (2000, "add-remove")
    assert "{year}" in str(contract.source)
    request = read_request(cwd / "visits/request.yaml")
    digits = "".join(filter(str.isdigit, SERIES[span][1]))
    assert "".join(filter(str.isdigit, request.version)) == digits


@pytest.mark.slow
def test_file_of_a_series_can_be_drafted_alone(
    cwd: Path, answer: Answer, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in SERIES["month"]:
        (cwd / name).write_text("glucose,age\n" + "5,60\n" * 2000)
    code, out = answer("n", "", words=(SERIES["month"][0],))
    assert code == 0, out
    contract = check_planned(cwd / "visits-2026-01", capsys)
    assert (contract.budget.per, contract.rows) == ("lifetime", 2000)
    made = run_json("new", SERIES["month"][1], capsys=capsys)
    assert made["contract"] == "visits/contract.yaml"
    (cwd / SERIES["month"][1]).unlink()
    assert draft(SERIES["month"][0]).id == "visits-2026-01"
    made = run_json("new", SERIES["month"][0], "--folder", "alone", capsys=capsys)
    assert "  per: " not in Path(made["contract"]).read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "names", "source"),
    [
        ("data", ["data/2026-01.csv", "data/2026-02.csv"], "data/{year}-{month}.csv"),
        ("data/", ["data/a_2026Q1.csv", "data/a_2026Q2.csv"], "data/a_{year}Q{quarter}.csv"),
        ("data/*.csv", ["data/2026-01.csv", "data/2026-02.csv"], "data/{year}-{month}.csv"),
        ("v-2026-*.tsv", ["v-2026-01.tsv", "v-2026-02.tsv"], "v-{year}-{month}.tsv"),
    ],
)
def test_folder_or_glob_of_a_series_drafts_all_its_files(
    table: str, names: list[str], source: str, cwd: Path, answer: Answer
) -> None:
    (cwd / "data").mkdir()
    for name in names:
        rows = "glucose,age\n" + "5,60\n" * 2000
        (cwd / name).write_text(rows.replace(",", "\t") if name.endswith(".tsv") else rows)
    decimals = ["point"] if table.endswith(".tsv") else []
    code, out = answer("", "", *decimals, "2000", "", words=(table, "--folder", "made"))
    assert code == 0, out
    contract = read_contract(cwd / "made/contract.yaml")
    assert contract.rows == 2000
    stated = contract.source
    assert (stated.path if isinstance(stated, Files) else str(stated)).endswith(source)
    decimals = ["", *decimals] if decimals else []
    code, out = answer("n", *decimals, "", words=(table, "--folder", "as-it-is"))
    assert code == 0, out
    assert read_contract(cwd / "as-it-is/contract.yaml").budget.per == "lifetime"


def test_files_of_several_kinds_are_not_a_series(cwd: Path) -> None:
    (cwd / "data").mkdir()
    for name in ("2026-01.csv", "2026-02.csv", "wards.csv"):
        (cwd / "data" / name).write_text("glucose\n")
    assert find_series("data") is None
    assert find_series("data/2026-*.csv") == ("data/{year}-{month}.csv", 2)
    assert find_series("data/2026-03.csv") is None  # it is missing, and the draft will say so
    assert find_series("") is None


@pytest.mark.parametrize(
    ("above", "command"),
    [
        (
            [["Episodes of Anna"], [None]],
            "gramercy convert 'data 1.xlsx' 'data 1.parquet' --header 3",
        ),
        ([], "gramercy convert 'data 1.xlsx' 'data 1.parquet'"),
    ],
)
def test_sheet_is_refused_with_the_command_that_converts_it(
    above: list[list[Any]], command: str, cwd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = openpyxl.Workbook()
    for row in [*above, ["income", "age"], *[[63.1234, 60]] * 20]:
        book.active.append(row)
    book.save("data 1.xlsx")
    with raises(families.SOURCE, command=command, target="'data 1.parquet'"):
        draft("data 1.xlsx")
    code, out, err = run_command("new", "data 1.xlsx", capsys=capsys)
    assert code == 2
    assert not any(cell in out + err for cell in ("Anna", CANARY, "income"))
    assert run_command(*shlex.split(command)[1:], capsys=capsys)[0] == 0
    assert run_json("new", "data 1.parquet", capsys=capsys)["columns"] == ["income", "age"]


@pytest.mark.slow
def test_counted_rows_are_those_that_a_release_compares(
    cwd: Path, answer: Answer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also if some lines are malformed."""
    (cwd / "blood.csv").write_text("glucose,age\n" + "5,60\n" * 2000 + '"5,6\n\n1,2,3\n')
    code, out = answer("", words=("blood.csv",))
    assert code == 0, out
    assert read_contract(cwd / "blood/contract.yaml").rows == 2003
    code, out, err = run_command("check", "blood/request.yaml", "--json", capsys=capsys)
    assert code == 0, out + err


@pytest.mark.parametrize("end", ["", CTRL_C])
def test_question_about_a_series_can_be_interrupted(end: str, cwd: Path, answer: Answer) -> None:
    for name in SERIES["month"]:
        (cwd / name).write_text("glucose,age\n5,60\n")
    assert answer(*end.split(), words=(SERIES["month"][0],))[0] == (130 if end else 1)
    assert not (cwd / "visits").exists()


QUESTIONS = {  # each with the answers before it, and one that is accepted
    "title": ([], "Blood"),
    "curator": ([], "City Hospital"),
    "version": ([], "2026-11"),
    "rows": (["y"], "900"),
    "protects": ([], "patient"),
    "budget": ([], "2 1e-7"),
    "release": ([], "0.5"),
}
# Answers that no question but those of texts accepts, and those that none accepts.
NUMBERS = ["many", "-5", "1e999", "nan", "1,5 2,5", "5 apples", "0"]


@pytest.mark.parametrize("question", QUESTIONS)
def test_wrong_answers_are_explained_and_asked_again(
    question: str, cwd: Path, answer: Answer
) -> None:
    (cwd / "blood.csv").write_text("glucose,patient\n" + "5,60\n" * 2000)
    before, accepted = QUESTIONS[question]
    wrong = ["\t", "a\x07b"] if question in {"title", "curator", "version"} else NUMBERS
    after = ["", "70", "100"] if question == "protects" else []
    code, out = answer(question, *before, *wrong, accepted, *after, "")
    assert code == 0, out
    assert out.count("GRM-") >= len(wrong)
    assert "Traceback" not in out
    code, out = answer(question, *before, wrong[0], CTRL_C, words=("blood.csv", "--folder", "b"))
    assert code == 130
    assert answer(question, *before, words=("blood.csv", "--folder", "b"))[0] == 1
    assert not (cwd / "b").exists()


@pytest.mark.parametrize(
    ("column", "lines", "declared"),
    [
        ("n", ["0,5", "1 2 3", "9 1", "inf 1", "low high", "0.5, 2"], {"lower": 0.5, "upper": 2.0}),
        ("l", ["", "A, A", "NA", "A, B"], {"levels": ("A", "B")}),
    ],
)
def test_wrong_bounds_and_levels_are_explained(
    column: str, lines: list[str], declared: dict[str, Any], cwd: Path, answer: Answer
) -> None:
    (cwd / "blood.csv").write_text("glucose,age\n" + "5,60\n" * 2000)
    code, out = answer("columns", "glucose", column, *lines, "")
    assert code == 0, out
    assert out.count("GRM-") >= len(lines) - 1
    drafted = read_contract(cwd / "blood/contract.yaml").columns["glucose"]
    assert declared.items() <= drafted.model_dump().items()


def test_numbers_of_persons_and_rows_are_whole_and_in_digits(cwd: Path, answer: Answer) -> None:
    (cwd / "blood.csv").write_text("glucose,patient\n" + "5,60\n" * 2000)
    wrong = ["many", "1,000", "1.000", "-1", "1e9", "9" * 30]
    code, out = answer("p", "patient", "y", *wrong, "1000", *wrong, "2000", "")
    assert code == 0, out
    assert out.count(families.DRAFT.code) == 2 * len(wrong)
    assert "decimal" not in out
    contract = read_contract(cwd / "blood/contract.yaml")
    assert (contract.persons, contract.rows) == (1000, 2000)


@pytest.mark.slow
def test_budget_that_the_contract_refuses_is_refused_in_the_dialogue(
    cwd: Path, answer: Answer, capsys: pytest.CaptureFixture[str]
) -> None:
    (cwd / "blood.csv").write_text("glucose,age\n" + "5,60\n" * 2000)
    code, out = answer("budget", "3 0.01", "1e9 1e-7", "1 1e-7", "release", "2", "1", "")
    assert code == 0, out
    assert families.VALUE.code in out
    check_planned(cwd / "blood", capsys)


def test_empty_table_has_no_number_of_rows_to_propose(cwd: Path, answer: Answer) -> None:
    (cwd / "blood.csv").write_text("glucose,age\n")
    code, out = answer("", "", "900", "", words=("blood.csv",))
    assert code == 0, out
    assert read_contract(cwd / "blood/contract.yaml").rows == 900
