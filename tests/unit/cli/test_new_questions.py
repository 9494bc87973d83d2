"""``gramercy new`` on a terminal: what Enter accepts, changes, and interruptions."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gramercy.pipeline.plan.request_files import read_contract, read_request
from gramercy.schemas import families
from gramercy.schemas.column import Column as Bounds
from gramercy.schemas.column import Levels
from gramercy.schemas.contract import Contract
from tests.support.factories import run_json
from tests.unit.cli.conftest import CTRL_C, Answer

CANARY = "63.1234"


def write_blood(folder: Path, header: str = "age,glucose,ward", rows: int = 40) -> None:
    cells = ",".join([CANARY] * len(header.split(",")))
    (folder / "blood.csv").write_text(f"{header}\n" + f"{cells}\n" * rows)


def drafted(folder: Path) -> Contract:
    return read_contract(folder / "blood/contract.yaml")


@pytest.mark.slow
def test_enter_accepts_a_valid_proposal_for_sixty_columns(
    tmp_path: Path, answer: Answer, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["patient_id", "age", "visit_date", *[f"lab_{k}" for k in range(55)], "bmi"]
    table = pd.DataFrame(np.zeros((2100, 59)), columns=names).assign(ward=CANARY)
    table.to_parquet(tmp_path / "blood.parquet")
    code, out = answer("", words=("blood.parquet",))
    assert code == 0, out
    assert CANARY not in out
    assert "57 as numbers without bounds: age, lab_* (55), bmi" in out
    assert "see patient_id" in out
    contract = drafted(tmp_path)
    assert (contract.title, contract.curator, contract.rows) == ("Blood", "jane", 2100)
    assert contract.names == ["age", *[f"lab_{k}" for k in range(55)], "bmi"]
    assert contract.columns_without_bounds == contract.names
    assert (contract.budget.epsilon, contract.budget.delta) == (3.0, 1e-6)
    assert "# ward: {levels: [A, B]}  # text" in (tmp_path / "blood/contract.yaml").read_text()
    planned = run_json("plan", tmp_path / "blood/request.yaml", capsys=capsys)
    assert (planned["columns"], planned["admitted"]) == (58, True)


def test_proposals_follow_from_names_and_types(tmp_path: Path, answer: Answer) -> None:
    names = ["age", "patientId", "visit_date", "survival_time", "body_mass_index", "index", "notes"]
    table = pd.DataFrame({name: [0.5] for name in names}).assign(ward="A", n=1, x0="", q0=1, q1=2)
    table.to_parquet(tmp_path / "blood.parquet", index=False)
    code, out = answer("", words=("blood.parquet",))
    assert code == 0, out
    assert drafted(tmp_path).names == ["age", "survival_time", "body_mass_index", "n", "q0", "q1"]
    assert "see patientId" in out


def test_too_few_rows_for_columns_without_bounds_are_shown(tmp_path: Path, answer: Answer) -> None:
    write_blood(tmp_path, rows=40)
    code, out = answer("columns", "*", "n", "0 100", "")
    assert code == 0, out
    assert out.count("rows are needed, and there are 40") == 1


def test_parts_can_be_changed_by_name(tmp_path: Path, answer: Answer) -> None:
    write_blood(tmp_path)
    texts = ["title", "Blood values", "c", "City Hospital", "v", "nov 26!", "2026-11"]
    counts = ["r", "n", "many", "0", "7000", "nothing"]
    budget = ["budget", "3", "0 1e-7", "2 1e-7", "release", ".5"]
    code, out = answer(*texts, *counts, *budget, "")
    assert code == 0, out
    for problem in (families.REQUEST_FILE, families.DRAFT):  # the version is a short name
        assert problem.code in out
    contract = drafted(tmp_path)
    assert (contract.title, contract.curator) == ("Blood values", "City Hospital")
    assert (contract.rows, contract.neighbours) == (7000, "add-remove")
    assert (contract.budget.epsilon, contract.budget.delta) == (2.0, 1e-7)
    request = read_request(tmp_path / "blood/request.yaml")
    assert (request.version, request.mechanism.epsilon) == ("2026-11", 0.5)
    assert request.mechanism.delta == 1e-8


def test_persons_need_a_column_and_their_number(tmp_path: Path, answer: Answer) -> None:
    write_blood(tmp_path, "patient,age,glucose")
    persons = ["protects", "spouse", "patient", "y", "210", "12", "746"]
    code, out = answer(*persons, "rows", "800", "")
    assert code == 0, out
    assert out.count(families.DRAFT.code) == 2  # there are at least as many rows as persons
    assert "Columns, most similar first: patient" in " ".join(out.split())
    assert "First: gramercy check" in out
    contract = drafted(tmp_path)
    assert (contract.privacy_unit, contract.persons, contract.rows) == ("patient", 210, 800)
    assert contract.names == ["age", "glucose"]


def test_persons_can_be_given_up(tmp_path: Path, answer: Answer) -> None:
    write_blood(tmp_path, "patient,age")
    code, out = answer("p", "patient", "n", "210", "746", "p", "none", "")
    assert code == 0, out
    contract = drafted(tmp_path)
    assert (contract.privacy_unit, contract.persons, contract.rows) == ("row", None, 40)


def test_one_column_after_another(tmp_path: Path, answer: Answer) -> None:
    """Neighbours with one prefix are asked about together."""
    write_blood(tmp_path, "glucose,lab_1,lab_2,lab_3,age,lab_4,q1,q2,q3,ward,zip,spare,last")
    columns = ["numbers", "30 2", "2 30"]  # glucose
    columns += ["n", "2, 30", "", "s"]  # lab_*, age, lab_4
    columns += ["x", "l", "1 2 3"]  # q*
    columns += ["l", "A, B, C", "l", "NA", "007; 010", "", "d"]  # ward, zip, spare
    code, out = answer("columns", "", *columns, "")
    assert code == 0, out
    for problem in (families.BOUNDS, families.LEVELS, families.DRAFT):
        assert problem.code in out
    assert "[2/9] lab_*, 3 columns" in out
    assert "[7/9] zip" in out
    assert drafted(tmp_path).columns == {
        **dict.fromkeys(("glucose", "lab_1", "lab_2", "lab_3"), Bounds(lower=2.0, upper=30.0)),
        "age": Bounds(),
        **dict.fromkeys(("q1", "q2", "q3"), Levels(levels=(1.0, 2.0, 3.0))),
        "ward": Levels(levels=("A", "B", "C")),
        "zip": Levels(levels=("007", "010")),
        **dict.fromkeys(("spare", "last"), Bounds()),
    }


def test_columns_are_changed_by_name_or_pattern(tmp_path: Path, answer: Answer) -> None:
    write_blood(tmp_path, "age,lab_a,lab_b,bmi")
    labs = ["columns", "lap_*", "lab_*", "n", "0 100"]
    others = ["columns", "age", "skip", "columns", "bmi", "n", "abc", "5, x", ""]
    code, out = answer(*labs, *others, "")
    assert code == 0, out
    assert families.DRAFT.code in out
    bounded = dict.fromkeys(("lab_a", "lab_b"), Bounds(lower=0.0, upper=100.0))
    assert drafted(tmp_path).columns == {**bounded, "bmi": Bounds()}


@pytest.mark.parametrize(("end", "expected"), [("", 1), (CTRL_C, 130)])
def test_interrupted_answers_are_private_and_continue(
    end: str, expected: int, tmp_path: Path, home: Path, answer: Answer
) -> None:
    write_blood(tmp_path, "age,glucose,ward,bmi")
    code, out = answer("title", "Blood values", "columns", "", "n", "0 120", "l", *end.split())
    assert code == expected
    assert not (tmp_path / "blood").exists()
    (file,) = (home / "drafts").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert CANARY not in file.read_text() + out
    write_blood(tmp_path, "age,glucose,ward,bmi", rows=41)
    code, out = answer("", "columns", "glucose", "n", "2 30", "")
    assert code == 0, out
    contract = drafted(tmp_path)
    assert contract.rows == 41
    assert contract.title == "Blood values"
    assert contract.columns["age"] == Bounds(lower=0.0, upper=120.0)
    assert contract.columns["glucose"] == Bounds(lower=2.0, upper=30.0)
    assert not file.exists()


@pytest.mark.slow
def test_answers_are_dropped_on_request_or_for_another_table(
    tmp_path: Path, home: Path, answer: Answer
) -> None:
    write_blood(tmp_path)
    answer("title", "Blood values", "rows", "n", "7000")
    answer("n", "curator", "City Hospital")
    (file,) = (home / "drafts").iterdir()
    saved = file.read_text()
    assert "Blood values" not in saved
    assert "7000" not in saved
    write_blood(tmp_path, "age,glucose")
    assert answer("")[0] == 0
    assert drafted(tmp_path).curator == "jane"
    write_blood(tmp_path)
    (tmp_path / "blood").rename(tmp_path / "earlier")
    file.write_text("{}")
    assert answer("")[0] == 0
    assert drafted(tmp_path).curator == "jane"


def test_existing_draft_is_refused_before_the_questions(tmp_path: Path, answer: Answer) -> None:
    write_blood(tmp_path)
    assert answer("")[0] == 0
    code, out = answer()
    assert code == 2
    assert families.OUTPUT.code in out


def test_number_of_rows_is_asked_for_if_it_cannot_be_counted(
    tmp_path: Path, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gramercy.tables.formats.reader._MOST_BYTES", 5)
    write_blood(tmp_path)
    code, out = answer("", "", "0", "many", "900", "")
    assert code == 0, out
    assert out.count(families.DRAFT.code) == 2
    assert drafted(tmp_path).rows == 900


def test_private_number_of_rows_is_not_the_counted_one(tmp_path: Path, answer: Answer) -> None:
    write_blood(tmp_path, rows=4321)
    code, out = answer("rows", "n", "5000", "")
    assert code == 0, out
    assert "4321" not in (tmp_path / "blood/contract.yaml").read_text()


def test_draft_without_columns_is_not_accepted(tmp_path: Path, answer: Answer) -> None:
    write_blood(tmp_path)
    code, out = answer("columns", "*", "skip", "")
    assert code == 1
    assert families.DRAFT.code in out
    assert not (tmp_path / "blood").exists()


def test_table_of_persons_only_cannot_be_published(tmp_path: Path, answer: Answer) -> None:
    write_blood(tmp_path, "patient")
    _, out = answer("protects", "patient")
    assert families.DRAFT.code in out
