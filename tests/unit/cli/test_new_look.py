"""``gramercy new --look``: what rows show, and that no other draft has a cell."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ruamel.yaml import YAML

from tests.support.factories import run_command
from tests.unit.cli.conftest import Answer

N = 3000


def table() -> pd.DataFrame:
    """Cells of many kinds; none of a number is also in a name."""
    rng = np.random.default_rng(3)
    days = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 300, N), "D")
    few = np.arange(N) < 4
    return pd.DataFrame(
        {
            "patient": [f"P{k:05}" for k in rng.permutation(N)],
            "sex": rng.integers(1, 3, N),
            "ward": np.where(few, "rare", rng.choice(["north", "south"], N)),
            "plz": [f"{k:05}" for k in rng.integers(1000, 99999, N)],
            "income": np.where(rng.random(N) < 0.02, -666666666, rng.gamma(2, 20000, N).round(2)),
            "rating": np.where(rng.random(N) < 0.05, -9, rng.integers(1, 6, N)),
            "smoker": rng.choice(["Yes", "No"], N),
            "seen": days.strftime("%Y-%m-%d"),
            "remarks_of_staff": [f"said {k}" for k in rng.permutation(N)],
            "contact": rng.permutation(N) + 4000000000,
            "age": rng.integers(18, 90, N),
        }
    )


CELLS = ["north", "south", "666666666", "Yes", "said", "P00", "rare", "2026-0", "400000"]
DECLARED = {
    "sex": {"levels": [1, 2]},
    "ward": {"levels": ["north", "south"]},
    "income": {"lower": None, "upper": None, "missing": [-666666666]},
    "rating": {"lower": None, "upper": None, "missing": [-9]},
    "smoker": {"levels": [True, False]},
    "age": {"lower": None, "upper": None},
}


@pytest.fixture(params=["csv", "parquet"])
def blood(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    if request.param == "csv":
        table().to_csv("blood.csv", index=False)
    else:
        table().to_parquet("blood.parquet", index=False)
    return f"blood.{request.param}"


def columns_of(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path)["columns"]


@pytest.mark.slow
def test_levels_and_codes_are_proposed_from_rows(
    blood: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run_command("new", blood, "--look", capsys=capsys)
    assert code == 0, err
    assert "not protected" in err
    text = (tmp_path / "blood/contract.yaml").read_text()
    assert columns_of(tmp_path / "blood/contract.yaml") == DECLARED
    assert "looked at rows" in text
    assert "levels [1, 2, 3, 4, 5] instead" in text
    assert "# seen: {unit: days since 1970-01-01, lower: 1900-01-01" in text
    left_out = ("patient", "plz", "remarks_of_staff", "contact")
    assert all(f"# {name}: " in text for name in left_out)
    shown = text + out + err
    assert not any(cell in shown for cell in ("rare", "said", "P00", "2026-0", "400000"))


def test_draft_has_no_cell_unless_rows_are_looked_at(
    blood: str, tmp_path: Path, answer: Answer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run_command("new", blood, "--folder", "first", capsys=capsys)
    assert code == 0, err
    _, asked = answer("n", "", words=(blood, "--folder", "second"))
    _, declined = answer("n", "n", "", words=(blood, "--folder", "third", "--look"))
    _, not_answered = answer(words=(blood, "--folder", "fourth", "--look"))
    shown = out + err + asked + declined + not_answered
    for path in tmp_path.rglob("*.yaml"):
        shown += path.read_text()
        assert "looked at rows" not in path.read_text()
    today = pd.Timestamp.today().strftime("%Y-%m")
    assert not any(cell in shown for cell in CELLS if not today.startswith(cell))
    assert not (tmp_path / "fourth").exists()


@pytest.mark.slow
def test_few_whole_numbers_become_levels_on_request(
    blood: str, tmp_path: Path, answer: Answer
) -> None:
    growth = ["n"] if blood.endswith("never") else []
    code, out = answer("y", *growth, "columns", "rating", "levels", "", "", words=(blood, "--look"))
    assert code == 0, out
    assert "levels 1, 2, 3, 4, 5" in out
    assert columns_of(tmp_path / "blood/contract.yaml")["rating"] == {"levels": [1, 2, 3, 4, 5]}


@pytest.mark.parametrize("stored", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("cells", "keys"),
    [
        (["1,234.50", "17.25", "12,346.50"], {"thousands": ","}),
        (["12.5 %", "3.25 %", "75 %"], {"percent": True}),
        (["€ 12.50", "€ 3.25", "€ 75"], {"units": ["€"]}),
    ],
)
def test_notation_is_proposed_from_shapes_of_cells(
    cells: list[str],
    keys: dict[str, Any],
    stored: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    fees = [cell.replace("5", str(k)) for k in range(300) for cell in cells]
    fees_and_ages = pd.DataFrame({"fee": fees, "age": 60})
    fees_and_ages.to_csv("fees.csv", index=False)
    fees_and_ages.to_parquet("fees.parquet", index=False)
    code, _, err = run_command(
        "new", f"fees.{stored}", "--look", "--columns", "fee,age", capsys=capsys
    )
    assert code == 0, err
    drafted = YAML(typ="safe", pure=True).load(tmp_path / "fees/contract.yaml")
    assert keys.items() <= drafted["source"].items()
    assert drafted["columns"]["fee"] == {"lower": None, "upper": None}


def drafted(place: Path, table: str, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """The contract that is drafted for a table, which has to be one."""
    code, _, err = run_command("new", table, "--look", "--folder", "made", *words, capsys=capsys)
    assert code == 0, err
    return YAML(typ="safe", pure=True).load(place / "made/contract.yaml")


def test_levels_have_no_control_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    wards = ["north", "south"] * 500 + ["in\tout"] * 15 + ["in\nout"] * 15 + ["in\x1aout"] * 15
    pd.DataFrame({"ward": wards, "age": 60}).to_parquet("wards.parquet")
    columns = drafted(tmp_path, "wards.parquet", capsys)["columns"]
    assert columns["ward"] == {"levels": ["north", "south"]}


@pytest.mark.parametrize(
    ("encoding", "stated"), [("cp1252", {"encoding": "cp1252"}), ("utf-8", None)]
)
def test_encoding_is_proposed_from_rows_below_a_plain_header(
    encoding: str,
    stated: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    towns = pd.DataFrame({"town": ["Zürich", "Genève"] * 200, "age": 60})
    towns.to_csv("towns.csv", index=False, encoding=encoding)
    contract = drafted(tmp_path, "towns.csv", capsys)
    assert contract["columns"]["town"] == {"levels": ["Genève", "Zürich"]}
    source = contract["source"]
    assert source == (source if stated is None else {"path": source["path"], **stated})
    assert isinstance(source, str) == (stated is None)


def test_forms_of_accents_are_one_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    towns = ["Z\u00fcrich", "Zu\u0308rich", "Bern"] * 200
    pd.DataFrame({"town": towns, "age": 60}).to_csv("towns.csv", index=False)
    columns = drafted(tmp_path, "towns.csv", capsys)["columns"]
    assert columns["town"] == {"levels": ["Bern", "Z\u00fcrich"]}


def test_spellings_of_a_level_are_one_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    answers = ["Ja", "ja", "Ja", "Nein"] * 200
    pd.DataFrame({"agrees": answers, "age": 60}).to_csv("answers.csv", index=False)
    columns = drafted(tmp_path, "answers.csv", capsys)["columns"]
    assert columns["agrees"] == {"levels": {"Ja": ["Ja", "ja"], "Nein": ["Nein"]}}


@pytest.mark.slow
@pytest.mark.parametrize(
    "form", ["Heim {few}", "Haus Nr. {few}b", "Rechnung {k}", "{k} R", "{k} Heim {few}.5"]
)
def test_words_of_names_are_not_units(
    form: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [form.format(few=k % 200, k=(k * 7919) % 3001) for k in range(N)]
    pd.DataFrame({"home": names, "age": 60}).to_csv("homes.csv", index=False)
    contract = drafted(tmp_path, "homes.csv", capsys)
    assert isinstance(contract["source"], str)
    assert "home" not in contract["columns"]


@pytest.mark.parametrize("stored", ["parquet", "sqlite"])
def test_plain_numbers_of_a_text_column_have_a_stated_notation(
    stored: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    fees = pd.DataFrame({"fee": [f"{k}.25" for k in range(300)], "age": 60})
    words = ["--columns", "fee,age"]
    if stored == "sqlite":
        with contextlib.closing(sqlite3.connect("fees.sqlite")) as connection:
            fees.to_sql("fees", connection, index=False, dtype={"fee": "TEXT", "age": "INTEGER"})
        table, words = "fees", [*words, "--database", "sqlite:///fees.sqlite"]
    else:
        fees.to_parquet(table := "fees.parquet")
    contract = drafted(tmp_path, table, capsys, *words)
    assert contract["source"]["decimal"] == "."
    assert contract["columns"]["fee"] == {"lower": None, "upper": None}
