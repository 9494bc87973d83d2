"""``gramercy new`` for a table that grows: a contract, a weekly series and its constants."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gramercy.cli.draft.drafting import draft
from gramercy.pipeline.plan.request_files import read_contract, read_request
from gramercy.schemas import families
from gramercy.schemas.periods import last_complete
from gramercy.schemas.steps import Cumulative
from tests.support.factories import run_command, run_json
from tests.support.problems import raises
from tests.unit.cli.conftest import Answer

YES = "y"


def write_visits(folder: Path, days: object = "2026-11-23") -> None:
    rows = {"age": [0.5] * 40, "glucose": [0.5] * 40, "date_of_birth": "1980-01-01"}
    pd.DataFrame(rows).assign(visit_date=days).to_parquet(folder / "visits.parquet")


def constants_version() -> str:
    return f"{last_complete('year', datetime.date.today())}-constants"


def check_drafted(folder: Path, dates: str, rows: int) -> None:
    contract = read_contract(folder / "contract.yaml")
    assert contract.period is not None
    assert (contract.period.column, contract.rows) == (dates, rows)
    assert (contract.budget.per, contract.neighbours) == ("year", "add-remove")
    assert dates not in contract.columns
    request = read_request(folder / "request.yaml")
    assert request.cumulative == Cumulative(every="week", lag=7)
    assert request.version == "{period}"
    constants = read_request(folder / "constants.yaml")
    assert (constants.mechanism.name, constants.version) == ("marginals", constants_version())
    assert request.scaling.release == f"{constants_version()}-r1"


def test_question_is_asked_once_where_a_column_has_dates(tmp_path: Path, answer: Answer) -> None:
    write_visits(tmp_path)
    code, out = answer(YES, "", "", "5000", "", words=("visits.parquet",))
    assert code == 0, out
    check_drafted(tmp_path / "visits", "visit_date", 5000)
    assert out.count("Does the table grow?") == 1
    assert "gramercy release visits/constants.yaml" in out
    assert "date_of_birth: " in (tmp_path / "visits/contract.yaml").read_text()


def test_growth_can_be_declined_and_chosen_later(tmp_path: Path, answer: Answer) -> None:
    write_visits(tmp_path)
    code, out = answer("", "", words=("visits.parquet", "--folder", "plain"))
    assert code == 0, out
    assert read_contract(tmp_path / "plain/contract.yaml").period is None
    assert not (tmp_path / "plain/constants.yaml").exists()
    later = ["n", "g", YES, "when", "age", "", "5000", ""]
    code, out = answer(*later, words=("visits.parquet", "--folder", "grown"))
    assert code == 0, out
    assert families.DRAFT.code in out
    check_drafted(tmp_path / "grown", "age", 5000)
    back = [YES, "", "g", "n", ""]
    code, out = answer(*back, words=("visits.parquet", "--folder", "back"))
    assert code == 0, out
    contract = read_contract(tmp_path / "back/contract.yaml")
    assert (contract.period, contract.rows, contract.budget.per) == (None, 40, "lifetime")


def test_persons_are_protected_in_tables_that_do_not_grow(tmp_path: Path, answer: Answer) -> None:
    write_visits(tmp_path)
    words = [YES, "", "protects", "age", "y", "210", "746", ""]
    code, out = answer(*words, words=("visits.parquet",))
    assert code == 0, out
    contract = read_contract(tmp_path / "visits/contract.yaml")
    assert (contract.privacy_unit, contract.period) == ("age", None)


def test_flag_drafts_the_same_without_questions(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_visits(tmp_path)
    made = run_json("new", "visits.parquet", "--grows", "visit_date", capsys=capsys)
    assert made["columns"] == ["age", "glucose"]
    assert made["next"] == "gramercy plan visits/constants.yaml"
    assert Path(made["constants"]).exists()
    assert "epsilon:  #" in (tmp_path / "visits/contract.yaml").read_text()
    code, _, err = run_command("new", "visits.parquet", "--grows", "visit", capsys=capsys)
    assert code != 0
    assert "visit_date" in err


def test_flag_is_refused_where_names_of_files_have_the_dates(tmp_path: Path) -> None:
    (tmp_path / "blood-2026.csv").write_text("glucose,seen\n")
    with raises(families.DRAFT, span="year"):
        draft(f"{tmp_path}/blood-{{year}}.csv", dates="seen")


def test_table_that_an_option_took_is_named(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what the option takes; passwords in URLs are left out."""
    monkeypatch.chdir(tmp_path)
    code, _, err = run_command("new", "--grows", "visits/", capsys=capsys)
    assert (code, families.USAGE.code in err) == (2, True)
    assert all(word in err for word in ("TABLE", "--grows", "visits/", "COLUMN", "date"))
    url = "https://jane:secret@example.org/visits.csv"
    *_, err = run_command("new", "--folder", "f", "--columns", url, capsys=capsys)
    assert "example.org" in err
    assert "secret" not in err
    *_, err = run_command("new", "--no-ask", capsys=capsys)
    assert "--no-ask" not in err


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server")
def test_draft_is_planned_and_published(
    tmp_path: Path,
    answer: Answer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    today = datetime.date.today()
    days = [today - datetime.timedelta(k % 700) for k in range(4000)]
    cells = np.random.default_rng(4).normal(size=(4000, 2))
    table = pd.DataFrame(cells, columns=["age", "glucose"]).assign(visit_date=days)
    table.to_parquet(tmp_path / "visits.parquet")
    columns = ["columns", "*", "numbers", "-9 9"]
    code, out = answer(YES, "", *columns, "", "2000", "", words=("visits.parquet",))
    assert code == 0, out
    folder = tmp_path / "visits"
    assert run_json("plan", folder / "constants.yaml", capsys=capsys)["admitted"]
    code, out, err = run_command("check", folder / "constants.yaml", "--json", capsys=capsys)
    assert code == 0, out + err
    code, out, err = run_command("release", folder / "constants.yaml", "--yes", capsys=capsys)
    assert code == 0, out + err
    assert run_json("plan", folder / "request.yaml", capsys=capsys)["admitted"]
    code, out, err = run_command("check", folder / "request.yaml", "--json", capsys=capsys)
    assert code == 0, out + err
