"""Workbooks and Delta tables are copied once for a release, like tables of databases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from gramercy.application.accumulation import PrivateSums, accumulate
from gramercy.application.context import Context
from gramercy.application.publishing import publish, replay
from gramercy.application.table_copy import copy_folder, copy_table
from gramercy.application.yaml_files import read_contract
from gramercy.schemas.problems import contract as contract_problems
from gramercy.schemas.problems import source as problems
from gramercy.tables.row_count import count_rows
from gramercy.tables.source import open_source
from tests.support.factories import (
    MECHANISM,
    read_plan,
    run_command,
    run_json,
    write_request,
    write_table,
)
from tests.support.problems import raises
from tests.support.workbooks import workbook, written_rows

SOURCES: dict[str, Any] = {
    "excel": "book.xlsx",
    "sheet": {"path": "book.xlsx", "sheet": "visits"},
    "delta": "lake",
}
BUDGET = {"epsilon": 3.0, "delta": 1e-6}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with ``table.csv`` as a workbook and as a Delta table."""
    table = pd.read_csv(write_table(tmp_path / "table.csv"))
    workbook(tmp_path / "book.xlsx", {"visits": written_rows(table)})
    write_deltalake(str(tmp_path / "lake"), pa.Table.from_pandas(table, preserve_index=False))
    return tmp_path


@pytest.mark.parametrize("kind", SOURCES)
def test_release_reads_a_private_copy_that_is_removed(kind: str, folder: Path, home: Path) -> None:
    """The integers are those of the same table in a file, and the source is not published."""
    plan, context = read_plan(write_request(folder, source=SOURCES[kind])), Context.default()
    with raises(problems.table_not_copied):
        accumulate(plan)
    with copy_folder(context.home, plan.contract) as copy:
        assert copy is not None
        local = copy_table(plan, copy)
        sums = accumulate(local)
        release = publish(context, local, sums)
    assert replay(context, plan) == release
    assert not [path for path in (home / "tables").rglob("*") if path.is_file()]
    same = accumulate(read_plan(write_request(folder, source="table.csv")))
    assert isinstance(sums, PrivateSums)
    assert isinstance(same, PrivateSums)
    np.testing.assert_array_equal(sums.sums.gram, same.sums.gram)
    text = (context.archive.release(plan.contract.id, release) / "datapackage.json").read_text()
    assert "selection" not in json.loads(text)["dp"]
    assert not any(name in text for name in ("book.xlsx", "visits", "lake", "tables/"))


@pytest.mark.parametrize("kind", SOURCES)
def test_what_needs_rows_in_order_or_several_machines(kind: str, folder: Path) -> None:
    """A row of a sheet has a place, which the rows before it do not change."""
    source = SOURCES[kind]
    with raises(problems.copy_needs_one_process):
        read_plan(write_request(folder, source=source, request={"engine": "dask"}))
    rows = {"mechanism": MECHANISM | {"name": "rows", "epsilon": 8.0}, "estimates": []}
    request = write_request(folder, source=source, request=rows)
    if kind == "delta":
        with raises(problems.rows_of_database, mechanism="rows"):
            read_plan(request)
    else:
        assert read_plan(request).spec.mechanism["name"] == "rows"
    assert count_rows(open_source(read_contract(folder / "contract.yaml").source)) is None


def test_periods_of_workbooks(folder: Path) -> None:
    (folder / "book.xlsx").rename(folder / "book-2026-10.xlsx")
    source = {"path": "book-{year}-{month}.xlsx", "sheet": "visits"}
    monthly = {"source": source, "budget": BUDGET | {"per": "month"}}
    request = write_request(folder, **monthly, request={"version": "2026-10", "estimates": []})
    plan = read_plan(request)
    with copy_folder(Context.default().home, plan.contract) as copy:
        assert copy is not None
        assert isinstance(accumulate(copy_table(plan, copy)), PrivateSums)
    plain = {"path": "book.xlsx", "sheet": "visits {year}"}
    request = write_request(folder, **monthly | {"source": plain}, request={"version": "2026-10"})
    with raises(contract_problems.source_and_period_disagree):
        read_plan(request)


@pytest.mark.slow  # imports Great Expectations
@pytest.mark.parametrize("kind", SOURCES)
def test_commands(kind: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = write_request(folder, source=SOURCES[kind])
    for command in ("plan", "check"):
        code, out, err = run_command(command, request, "--json", capsys=capsys)
        assert code == 0, err
    assert json.loads(out)["rows"] == 40


@pytest.mark.parametrize("kind", ["excel", "delta"])
def test_draft_and_patterns_use_the_header_alone(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    made = run_json("new", SOURCES[kind], "--id", "blood", capsys=capsys)
    drafted = Path(made["contract"]).read_text()
    assert f"source: ../{SOURCES[kind]}" in drafted
    assert "c0: " in drafted
    columns = {"c*": {"lower": -5.0, "upper": 5.0}}
    plan = read_plan(write_request(folder, source=SOURCES[kind], columns=columns))
    assert list(plan.contract.columns) == ["c0", "c1", "c2"]


def test_a_first_row_that_looks_like_data_is_not_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    workbook(folder / "book.xlsx", written_rows(pd.DataFrame(columns=["63.1234", "A"])))
    code, out, err = run_command("new", "book.xlsx", capsys=capsys)
    assert code == 2
    assert "63.1234" not in out + err
