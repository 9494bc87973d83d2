"""Tables with marks in numbers, lines above the header and titles: released as plain ones are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest

from gramercy.common.home import Home
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.request_files import read_contract, register
from gramercy.pipeline.publish.charging import publish
from gramercy.pipeline.publish.private_table import accumulate
from gramercy.schemas.source import Files
from tests.support.factories import read_plan, run_command, write_request

COLUMNS = {"fee": {"lower": 0, "upper": 10000}, "age": {"lower": 0, "upper": 120}}
ROWS = 60


def table() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    fees = rng.uniform(0, 9000, ROWS).round(2)
    return pd.DataFrame({"fee": fees, "age": rng.integers(0, 100, ROWS)})


def sums(folder: Path, source: Any) -> Any:
    request = write_request(folder, source=source, rows=ROWS, columns=COLUMNS)
    return accumulate(read_plan(request)).sums


def written(fees: list[str], ages: list[str], separator: str = ",") -> str:
    quoted = (f'"{fee}"{separator}{age}' for fee, age in zip(fees, ages, strict=True))
    return "\n".join([f"fee{separator}age", *quoted]) + "\n"


@pytest.fixture
def plain(tmp_path: Path, home: Path) -> Any:
    """The sums of the table as a computer writes it."""
    table().to_csv(tmp_path / "plain.csv", index=False)
    return sums(tmp_path, "plain.csv")


def assert_same(found: Any, plain: Any) -> None:
    np.testing.assert_array_equal(found.gram, plain.gram)
    assert (found.malformed, found.repairs.filled.tolist()) == (plain.malformed, [0, 0])


def test_marks_between_thousands_in_some_cells(tmp_path: Path, plain: Any) -> None:
    fees = [f"{fee:,}" for fee in table()["fee"]]
    ages = [str(age) for age in table()["age"]]
    (tmp_path / "fees.csv").write_text(written(fees, ages))
    assert sums(tmp_path, "fees.csv").repairs.filled[0] > ROWS / 2
    assert_same(sums(tmp_path, {"path": "fees.csv", "thousands": ","}), plain)


def test_units_and_decimal_commas(tmp_path: Path, plain: Any) -> None:
    swapped = str.maketrans(",.", ".,")
    fees = [f"€ {fee:,}".translate(swapped) for fee in table()["fee"]]
    ages = [f"{100 * age} %" for age in table()["age"]]
    (tmp_path / "fees.csv").write_text(written(fees, ages, ";"))
    keys = {"separator": ";", "decimal": ",", "thousands": ".", "units": ["€"], "percent": True}
    assert_same(sums(tmp_path, {"path": "fees.csv", **keys}), plain)


@pytest.mark.parametrize("keys", [{"comment": "#"}, {"header": 3}, {"header": 1, "comment": "#"}])
def test_lines_above_the_header(tmp_path: Path, plain: Any, keys: dict[str, Any]) -> None:
    above = '# extract of 2026-11-01\n# "source: registry\n'
    (tmp_path / "t.csv").write_text(above + table().to_csv(index=False))
    assert_same(sums(tmp_path, {"path": "t.csv", **keys}), plain)


def test_titles_of_a_sheet(
    tmp_path: Path, plain: Any, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    book = openpyxl.Workbook()
    fees = [f"{fee:,}" for fee in table()["fee"]]
    ages = [f"{100 * age}%" for age in table()["age"]]
    for row in (["Episodes of 2026"], [], ["fee", "age"], *zip(fees, ages, strict=True)):
        book.active.append(row)
    book.active.merge_cells("A1:C1")
    book.save("t.xlsx")
    options = ("--header", 3, "--thousands", ",", "--percent")
    assert run_command("convert", "t.xlsx", "t.parquet", *options, capsys=capsys)[0] == 0
    assert_same(sums(tmp_path, "t.parquet"), plain)


def test_comments_in_a_text_file(
    tmp_path: Path, plain: Any, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = table().to_csv(index=False).splitlines()
    text = ['A "title', "# made by hand", *lines[:9], '# a "comment', *lines[9:], ""]
    Path("t.txt").write_text("\n".join(text))
    options = ("--comment", "#", "--header", 2)
    assert run_command("convert", "t.txt", "t.parquet", *options, capsys=capsys)[0] == 0
    assert_same(sums(tmp_path, "t.parquet"), plain)


@pytest.mark.slow
def test_notation_is_registered_and_not_published(tmp_path: Path, home: Path) -> None:
    table().to_csv(tmp_path / "t.csv", index=False)
    source = {"path": "t.csv", "thousands": "'", "units": ["florins"], "header": 1}
    request = write_request(tmp_path, source=source, rows=ROWS, columns=COLUMNS)
    register(Home.default(), tmp_path / "contract.yaml")
    plan, context = read_plan(request), Context.default()
    registered = read_contract(Home.default().registered_contract(plan.contract.id)).source
    assert registered == Files(**source | {"path": str(tmp_path / "t.csv")})
    release = publish(context, plan, accumulate(plan))
    folder = context.archive.release(plan.contract.id, release)
    assert "dp" in json.loads((folder / "datapackage.json").read_text())
    for file in folder.rglob("*"):
        assert not file.is_file() or b"florins" not in file.read_bytes()
