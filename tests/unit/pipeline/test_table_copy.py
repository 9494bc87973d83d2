"""The private copy of a database's table: read once, and removed after the release."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.checking import check_table, check_table_header
from gramercy.pipeline.publish.charging import publish
from gramercy.pipeline.publish.private_table import (
    PrivateSums,
    accumulate,
    copied_contract,
    copy_folder,
    copy_table,
    remove_abandoned_copies,
)
from gramercy.schemas import families
from tests.support.databases import KINDS
from tests.support.factories import (
    MECHANISM,
    contract_facts,
    read_plan,
    run_command,
    write_request,
    write_table,
)
from tests.support.problems import raises
from tests.support.source_tables import execute, new_url


@pytest.fixture(params=KINDS)
def request_path(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A request for a table of a database with the rows of ``table.csv``."""
    url = new_url(request.param, tmp_path)
    monkeypatch.setenv("CLINIC_DB", url)
    frame = pd.read_csv(write_table(tmp_path / "table.csv"))
    columns = ", ".join(f"{name} DOUBLE PRECISION" for name in frame)
    insert = f"INSERT INTO visits VALUES ({', '.join(f':{name}' for name in frame)})"
    execute(url, f"CREATE TABLE visits ({columns})", insert, rows=frame.to_dict("records"))
    return write_request(tmp_path, source={"url": "env:CLINIC_DB", "table": "visits"})


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.slow
def test_release_reads_a_private_copy_that_is_removed(request_path: Path, home: Path) -> None:
    plan, context = read_plan(request_path), Context.default()
    with copy_folder(context.home, plan.contract) as folder:
        assert folder is not None
        local = copy_table(plan, folder)
        assert {stat.S_IMODE(each.stat().st_mode) for each in files_below(folder)} == {0o600}
        assert stat.S_IMODE((home / "tables").stat().st_mode) == 0o700
        sums = accumulate(local)
        release = publish(context, local, sums)
    assert isinstance(sums, PrivateSums)
    assert files_below(home / "tables") == []
    # The same integers as of the same table in a file.
    in_file = write_request(request_path.parent, source="table.csv")
    same = accumulate(read_plan(in_file))
    np.testing.assert_array_equal(sums.sums.gram, same.sums.gram)
    descriptor = context.archive.release(plan.contract.id, release) / "datapackage.json"
    text = descriptor.read_text()
    assert json.loads(text)["dp"]["selection"] == {"table": "visits"}
    card = descriptor.with_name("CARD.md").read_text()
    assert "the rows of the table 'visits'" in card
    assert "CLINIC_DB" not in text
    assert "tables/" not in text


def test_copy_is_removed_after_a_failure_and_after_a_killed_process(
    request_path: Path, home: Path
) -> None:
    plan, context = read_plan(request_path), Context.default()
    (home / "tables" / "copy.0123").mkdir(parents=True)
    (home / "tables" / "copy.0123" / "table.parquet").write_bytes(b"left behind")

    def fail() -> None:
        with copy_folder(context.home, plan.contract) as folder:
            assert folder is not None
            copy_table(plan, folder)
            assert (
                len(files_below(home / "tables")) == 3
            )  # a part of the copy, its constants, and its lock
            raise KeyError

    remove_abandoned_copies(context.home)
    with pytest.raises(KeyError):
        fail()
    assert files_below(home / "tables") == []


def test_copy_on_a_failing_disk_is_not_called_malformed(
    request_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = read_plan(request_path)
    with copy_folder(Context.default().home, plan.contract) as folder:
        assert folder is not None
        local = copy_table(plan, folder)

        def fail(*_: object, **__: object) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(pa, "OSFile", fail)
        with raises(families.FILE, reason="Input/output error"):
            accumulate(local)


def test_steps_refuse_a_table_that_is_not_copied(request_path: Path) -> None:
    plan = read_plan(request_path)
    check_table_header(plan.contract)
    with raises(families.DATABASE_READ):
        accumulate(plan)


def test_columns_are_checked_before_rows_are_read(request_path: Path, tmp_path: Path) -> None:
    columns: dict[str, Any] = contract_facts()["columns"] | {"c0": {"levels": ["A"]}}
    source = {"url": "env:CLINIC_DB", "table": "visits"}
    for changed in (columns, columns | {"c9": {"lower": 0.0, "upper": 1.0}}):
        plan = read_plan(write_request(tmp_path, source=source, columns=changed))
        with raises(families.TABLE_COLUMNS, file="env:CLINIC_DB (table visits)"):
            copied_contract(plan.contract, tmp_path)
    assert not (tmp_path / "table").exists()


def test_rows_are_not_published_from_a_database(request_path: Path) -> None:
    for name in ("rows", "local"):
        mechanism = MECHANISM | {"name": name, "epsilon": 8.0}
        request = {"mechanism": mechanism, "estimates": []}
        path = write_request(
            request_path.parent,
            source={"url": "env:CLINIC_DB", "table": "visits"},
            request=request,
        )
        with raises(families.REQUEST_USE, mechanism=name):
            read_plan(path)


def test_no_cluster_reads_a_database(request_path: Path) -> None:
    path = write_request(
        request_path.parent,
        source={"url": "env:CLINIC_DB", "table": "visits"},
        request={"engine": "dask"},
    )
    with raises(families.REQUEST_USE):
        read_plan(path)


@pytest.mark.slow  # imports Great Expectations
def test_check_and_plan_of_a_database(
    request_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "tables" / "copy.0123").mkdir(parents=True)
    for command in ("plan", "check"):
        code, out, err = run_command(command, request_path, "--json", capsys=capsys)
        assert code == 0, err
    assert json.loads(out)["rows"] == 40
    assert list((home / "tables").iterdir()) == []
    plan = read_plan(request_path)
    with copy_folder(Context.default().home, plan.contract) as folder:
        assert folder is not None
        assert check_table(copied_contract(plan.contract, folder)).errors == []


def test_rows_of_a_period_by_their_dates_in_a_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times of PostgreSQL are instants, which belong to a day of the declared zone."""
    url = new_url("postgresql", tmp_path)
    monkeypatch.setenv("CLINIC_DB", url)
    execute(
        url,
        "CREATE TABLE visits (x INTEGER, visited TIMESTAMPTZ)",
        "INSERT INTO visits VALUES (1, '2026-10-31 23:30+00'), (2, '2026-10-31 22:30+00'),"
        " (3, '2026-11-30 22:59:59.9+00'), (4, '2026-11-30 23:00+00'), (5, NULL), (6, 'infinity')",
    )
    request = write_request(
        tmp_path,
        source={"url": "env:CLINIC_DB", "table": "visits"},
        columns={"x": {"lower": 0.0, "upper": 9.0}},
        budget={"epsilon": 3.0, "delta": 1e-6, "per": "month"},
        neighbours="add-remove",
        period={"column": "visited", "timezone": "Europe/Berlin"},
        rows=10,
        request={"version": "2026-11", "estimates": []},
    )
    plan = read_plan(request)
    with copy_folder(Context.default().home, plan.contract) as folder:
        assert folder is not None
        sums = accumulate(copy_table(plan, folder))
    assert sums.sums.rows == 2  # those with 1 and 3
