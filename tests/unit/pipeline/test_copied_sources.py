"""Delta tables are copied once for a release, like tables of databases."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.request_files import read_contract
from gramercy.pipeline.publish.charging import publish, replay
from gramercy.pipeline.publish.private_table import accumulate, copy_folder, copy_table
from gramercy.schemas import families
from gramercy.tables.formats.reader import count_rows
from gramercy.tables.formats.source import open_source
from tests.support.factories import (
    MECHANISM,
    read_plan,
    run_command,
    run_json,
    write_request,
    write_table,
)
from tests.support.problems import raises


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with ``table.csv``, also as the Delta table ``lake``."""
    table = pd.read_csv(write_table(tmp_path / "table.csv"))
    write_deltalake(str(tmp_path / "lake"), pa.Table.from_pandas(table, preserve_index=False))
    return tmp_path


@pytest.mark.slow
def test_release_reads_a_private_copy_that_is_removed(folder: Path, home: Path) -> None:
    """The integers are those of the same table in a file, and the source is not published."""
    plan, context = read_plan(write_request(folder, source="lake")), Context.default()
    with raises(families.DATABASE_READ):
        accumulate(plan)
    with copy_folder(context.home, plan.contract) as copy:
        assert copy is not None
        local = copy_table(plan, copy)
        sums = accumulate(local)
        release = publish(context, local, sums)
    assert replay(context, plan) == release
    assert not [path for path in (home / "tables").rglob("*") if path.is_file()]
    same = accumulate(read_plan(write_request(folder, source="table.csv")))
    np.testing.assert_array_equal(sums.sums.gram, same.sums.gram)
    text = (context.archive.release(plan.contract.id, release) / "datapackage.json").read_text()
    assert "selection" not in json.loads(text)["dp"]
    assert not any(name in text for name in ("lake", "tables/"))


def test_what_needs_rows_in_order_or_several_machines(folder: Path) -> None:
    with raises(families.REQUEST_USE):
        read_plan(write_request(folder, source="lake", request={"engine": "dask"}))
    rows = {"mechanism": MECHANISM | {"name": "rows", "epsilon": 8.0}, "estimates": []}
    with raises(families.REQUEST_USE, mechanism="rows"):
        read_plan(write_request(folder, source="lake", request=rows))
    assert count_rows(open_source(read_contract(folder / "contract.yaml").source)) is None


@pytest.mark.slow  # imports Great Expectations
def test_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = write_request(folder, source="lake")
    for command in ("plan", "check"):
        code, out, err = run_command(command, request, "--json", capsys=capsys)
        assert code == 0, err
    assert json.loads(out)["rows"] == 40


def test_draft_and_patterns_use_the_header_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    made = run_json("new", "lake", "--id", "blood", capsys=capsys)
    drafted = Path(made["contract"]).read_text()
    assert "source: ../lake" in drafted
    assert "c0: " in drafted
    columns = {"c*": {"lower": -5.0, "upper": 5.0}}
    plan = read_plan(write_request(folder, source="lake", columns=columns))
    assert list(plan.contract.columns) == ["c0", "c1", "c2"]
