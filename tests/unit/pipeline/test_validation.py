"""Great Expectations in its own process: what it answers, from what, and how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramercy.common.home import Home
from gramercy.pipeline.validation import worker_process
from gramercy.pipeline.validation.outcome import Outcome, changes, validation_notices
from gramercy.pipeline.validation.suite import Job, steward_suite
from gramercy.pipeline.validation.worker_process import worker
from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from tests.support.factories import contract_facts
from tests.support.problems import raises

BOUNDS = {"lower": -5.0, "upper": 5.0}
SECRET = "Mnemosyne-31415926"


def contract(source: Path, columns: dict[str, Any], **keys: Any) -> Contract:
    return Contract.model_validate(contract_facts(source) | {"columns": columns} | keys)


def add_suite(*expectations: dict[str, Any]) -> Path:
    """Write the suite that a steward adds to the data set."""
    path = Home.default().expectations("toy")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"expectations": expectations}))
    return path


def expect(kind: str, severity: str | None = None, **arguments: Any) -> dict[str, Any]:
    stated = {} if severity is None else {"severity": severity}
    return {"type": f"expect_{kind}", "kwargs": arguments, **stated}


def validated(declared: Contract) -> Outcome:
    outcome = Outcome(Job.of(Home.default(), declared, declared))
    with worker() as process:
        outcome.ask_all(process)
    return outcome


def failed(outcome: Outcome) -> dict[tuple[str, str], list[str]]:
    """Files of the failed expectations, by their type and column."""
    found = outcome.facts()["expectations"]["failed"]
    return {
        (each["type"].removeprefix("expect_"), each["column"]): [
            Path(x).name for x in each["files"]
        ]
        for each in found
    }


@pytest.mark.slow  # imports Great Expectations
def test_cells_are_validated_as_a_release_reads_them(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "cost;blood;stage;fine\n1234.5;A;1;0.5\n2000;a;2;-9\n0.5;B;7;1\n"
    )
    source = {"path": str(tmp_path / "t.csv"), "separator": ";"}
    columns = {
        "cost": {"lower": 0.0, "upper": 2000.0},
        "blood": {"levels": ["A", "B"]},
        "stage": {"levels": [1, 2]},
        "fine": {"lower": 0.0, "upper": 2.0, "missing": [-9]},
    }
    declared = Contract.model_validate(contract_facts() | {"source": source, "columns": columns})
    outcome = validated(declared)
    assert outcome.cells["levels"] == {"blood": ["A", "B"], "stage": ["1", "2"]}
    assert failed(outcome) == {
        ("column_values_to_be_in_set", "blood"): ["t.csv"],
        ("column_values_to_be_in_set", "stage"): ["t.csv"],
        ("column_values_to_not_be_null", "fine"): ["t.csv"],
    }


@pytest.mark.slow
def test_failures_are_found_in_their_files(tmp_path: Path) -> None:
    for name, cells in {"t-1": [1.0, 2.0], "t-2": [3.0, 99.0], "t-3": [np.inf, 1.0]}.items():
        pd.DataFrame({"a": cells}).to_parquet(tmp_path / f"{name}.parquet")
    outcome = validated(contract(tmp_path / "t-*.parquet", {"a": BOUNDS}))
    assert failed(outcome) == {
        ("column_values_to_be_between", "a"): ["t-2.parquet"],
        ("column_values_to_not_be_null", "a"): ["t-3.parquet"],
    }
    found = outcome.facts()["expectations"]
    assert (found["files"], found["sampled_files"], found["sampled_rows"]) == (3, 3, 6)
    assert outcome.error(Home.default()) is None


@pytest.mark.slow
def test_schema_expectations_see_no_cell(tmp_path: Path) -> None:
    """Columns of objects, of which pandas would look at each cell, and every other type."""
    table = pa.table(
        {
            "a": pa.array([1.0, 2.0]),
            "text": pa.array([SECRET, "b"]),
            "dict": pa.array(["x", "y"]).dictionary_encode(),
            "whole": pa.array([1, 2], pa.int32()),
            "list": pa.array([[1], [2]]),
            "none": pa.nulls(2),
        }
    )
    kinds = ("str", "int", "int32", "float64", "list", "datetime64[ns]")
    add_suite(
        *(
            expect("column_values_to_be_of_type", column=name, type_=kind)
            for name in table.column_names
            for kind in kinds
        )
    )
    found = []
    for rows in (2, 1, 0):
        pq.write_table(table.slice(0, rows), tmp_path / "t.parquet")
        outcome = validated(contract(tmp_path / "t.parquet", {"a": BOUNDS}))
        found.append({each["number"] for each in outcome.columns["failed"]})
    assert found[0] == found[1] == found[2]
    passed = {
        (each.column, each.arguments["type_"])
        for each in outcome.job.expectations
        if each.number and each.number not in found[0]
    }
    stated = {("a", "float64"), ("text", "str"), ("dict", "str"), ("whole", "int32")}
    assert stated <= passed
    assert not {("a", "str"), ("text", "int"), ("whole", "str"), ("whole", "float64")} & passed
    assert {(column, kind) for column, kind in passed if column == "none"} == {
        ("none", kind) for kind in kinds
    }


@pytest.mark.slow
def test_a_steward_may_expect_columns_and_types(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": [1.0], "b": ["x"]}).to_parquet(path)
    declared = contract(path, {"a": BOUNDS})
    suite = add_suite(
        expect("column_to_exist", column="b"),
        expect("table_columns_to_match_ordered_list", column_list=["a", "b"]),
        expect("table_column_count_to_equal", value=2),
        expect("column_to_exist", "warning", column="absent"),
        expect("column_mean_to_be_between", column="a", min_value=100),
        {"type": "unexpected_rows_expectation", "kwargs": {"unexpected_rows_query": "SELECT 1"}},
        expect("table_row_count_to_equal_other_table", other_table_name="other"),
        expect("table_row_count_to_equal", value=1),
    )
    outcome = validated(declared)
    assert len(outcome.cells["not_run"]) == 3
    assert outcome.error(Home.default()) is None
    assert failed(outcome).keys() == {
        ("column_to_exist", "absent"),
        ("column_mean_to_be_between", "a"),
    }
    added = expect("column_values_to_be_of_type", column="b", type_="int64")
    add_suite(expect("column_to_exist", column="absent"), added)
    error = validated(declared).error(Home.default())
    assert error is not None
    assert error.code == families.TABLE_COLUMNS.code
    assert error.facts["file"] == str(path)
    assert [str(each).split()[0] for each in error.facts["columns"]] == ["absent", "b"]
    assert str(suite) in str(error)


@pytest.mark.slow
def test_an_expectation_that_cannot_be_computed_decides_about_no_other(
    tmp_path: Path,
) -> None:
    """Great Expectations raises an error for the whole suite where a parameter is not given."""
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    given = {"$PARAMETER": "nowhere"}
    add_suite(
        expect("table_column_count_to_equal", value=given),
        expect("column_to_exist", column="b"),
        expect("column_max_to_be_between", column="a", max_value=given),
        expect("column_mean_to_be_between", column="a", max_value=0),
    )
    outcome = validated(contract(tmp_path / "t.csv", {"a": BOUNDS}))
    assert failed(outcome).keys() == {
        ("table_column_count_to_equal", ""),
        ("column_mean_to_be_between", "a"),
    }
    (not_run,) = outcome.facts()["expectations"]["not_run"]
    assert not_run["type"] == "expect_column_max_to_be_between"


@pytest.mark.slow
def test_all_kinds_of_failures_are_recorded(tmp_path: Path) -> None:
    """Some expectations of Great Expectations answer with a truth value of NumPy."""
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,1\n3,3\n")
    half = {"quantiles": [0.5], "value_ranges": [[7, 8]]}
    suite = (
        expect("column_quantile_values_to_be_between", column="a", quantile_ranges=half),
        expect("column_median_to_be_between", column="a", min_value=7),
        expect("column_stdev_to_be_between", column="a", min_value=7),
        expect("column_value_lengths_to_equal", column="b", value=7),
        expect("column_values_to_be_increasing", column="b"),
        expect("column_proportion_of_unique_values_to_be_between", column="a", max_value=0.1),
        expect("column_pair_values_to_be_equal", column_A="a", column_B="b"),
    )
    add_suite(*suite)
    outcome = validated(contract(tmp_path / "t.csv", {"a": BOUNDS}))
    found = outcome.facts()["expectations"]
    recorded = {each["type"] for each in found["failed"] + found["not_run"]}
    assert recorded == {each["type"] for each in suite}


@pytest.mark.slow
def test_csv_states_no_types(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    add_suite(
        expect("column_values_to_be_of_type", column="b", type_="int64"),
        expect("column_type_to_be", column="b", type_="int64"),
    )
    outcome = validated(contract(tmp_path / "t.csv", {"a": BOUNDS}))
    assert failed(outcome) == {}
    assert outcome.error(Home.default()) is None


UNUSABLE = [
    expect("column_values_to_exists", column="a"),
    expect("column_values_to_be_between", column="a", minimum=3),
    expect("column_values_to_be_between", column="a"),
]


@pytest.mark.slow
@pytest.mark.parametrize("unusable", UNUSABLE, ids=lambda each: str(each["kwargs"]))
def test_expectations_that_cannot_be_used_are_refused(
    unusable: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    path = add_suite(expect("column_to_exist", column="a"), unusable)
    error = validated(contract(tmp_path / "t.csv", {"a": BOUNDS})).error(Home.default())
    assert error is not None
    assert (error.code, error.facts["path"]) == (families.CONTRACT_FILE.code, str(path))
    assert "expectation 2" in str(error.facts["reason"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"expectations": {}}',
        '{"expectations": [3]}',
        '{"expectations": [{"type": "expect_column_to_exist"}]}',
        '{"expectations": [{"kwargs": {}}]}',
        "[" * 100_000,
    ],
)
def test_files_that_are_not_suites_are_refused(text: str) -> None:
    assert steward_suite(Home.default(), "toy") == []
    path = add_suite()
    path.write_text(text)
    with raises(families.CONTRACT_FILE, path=str(path)):
        steward_suite(Home.default(), "toy")


FAULTY = {
    "ends at once": "",
    "ends when asked": "import sys; sys.stdin.buffer.read(8)",
    "answers nonsense": "print('nonsense', flush=True); import time; time.sleep(60)",
    "hangs": "import time; time.sleep(60)",
    "reads nothing": "import os, time; os.close(0); time.sleep(60)",
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_worker_that_fails_is_ended_and_reported(
    fault: str, in_place_of_worker: Callable[[str], None], tmp_path: Path
) -> None:
    in_place_of_worker(FAULTY[fault])
    (tmp_path / "t.csv").write_text("a\n1\n")
    declared = contract(tmp_path / "t.csv", {"a": BOUNDS})
    outcome = Outcome(Job.of(Home.default(), declared, declared))
    with worker() as process:
        assert process.ask("columns", outcome.job, 0.5) == {}
        assert not process.is_idle
        outcome.ask_all(process)
    assert outcome.error(Home.default()) is None
    codes = {each.code for each in validation_notices(outcome.facts())}
    assert codes == {families.NOT_CHECKED.code}


WAITS = "import sys; sys.stdin.read()"


def test_a_worker_is_for_one_block_and_kept_for_the_next(
    in_place_of_worker: Callable[[str], None],
) -> None:
    """Also after a refused table: another start would take seconds."""
    in_place_of_worker(WAITS)
    worker_process.start_ahead()
    with contextlib.suppress(KeyError), worker() as first, worker() as second:
        raise KeyError
    assert first is not second
    with worker() as third:
        assert third is second
    assert not first.is_idle


def test_a_worker_that_is_still_asked_ends_with_its_block(
    in_place_of_worker: Callable[[str], None],
) -> None:
    in_place_of_worker(WAITS)
    with ThreadPoolExecutor(1) as threads, worker() as process:
        answer = threads.submit(process.ask, "cells", None)
        while process.is_idle:
            time.sleep(0.01)
    assert answer.result() == {}


def test_a_worker_inherits_no_secrets(
    in_place_of_worker: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_place_of_worker(
        "import json, os; old = os.umask(0); "
        "print(json.dumps({'names': [*os.environ], 'umask': old}), flush=True); os.read(0, 9)"
    )
    secrets = ("GRAMERCY_LEDGER_URL", "PREFECT_API_AUTH_STRING", "PGPASSWORD")
    for name in secrets:
        monkeypatch.setenv(name, SECRET)
    with worker() as process:
        answer = process.ask("columns", None)
    assert not {*secrets} & {*answer["names"]}
    assert answer["umask"] == 0o077


@pytest.mark.slow
def test_a_worker_ends_with_the_process_that_started_it() -> None:
    """It also ends while it imports Great Expectations."""
    code = (
        "import time; from gramercy.pipeline.validation import worker_process as w; "
        "w.start_ahead(); print(w._idle[0]._process.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        started = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 60
    while runs(started):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or state.read_text().split()[2] != "Z"  # of an init that reaps late


def test_changes_between_versions() -> None:
    def fails(column: str, kind: str = "expect_column_values_to_be_in_set") -> dict[str, Any]:
        return {"type": kind, "column": column, "severity": "warning", "number": 0}

    before = {
        "types": {"a": "double", "b": "text", "gone": "any"},
        "rows": 100,
        "filled_cells": {"a": 1, "b": 10},
        "levels": {"b": ["x"]},
        "expectations": {"failed": [fails("b")]},
    }
    now = {
        "types": {"a": "text", "b": "text", "new": "whole"},
        "rows": 210,
        "malformed_rows": 10,
        "filled_cells": {"a": 3, "b": 50},
        "levels": {"b": ["x", "y"], "new": [1]},
        "expectations": {"failed": [fails("a"), fails("b")]},
    }
    assert changes(before, before) == changes({}, now) == []
    assert {tuple(each.values()) for each in changes(before, now)} == {
        ("a", "type", "double", "text"),
        ("a", "values to be in set", "passed", "failed"),
        ("b", "missing or invalid cells", "10 %", "25 %"),
        ("b", "level y", "no cell", "some cells"),
        ("gone", "column", "any", "none"),
        ("new", "column", "none", "whole"),
    }
