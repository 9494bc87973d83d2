"""Great Expectations as a task of releases: what refuses, what does not, and what is kept."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.pipeline.publish.internal_record import read_record
from gramercy.pipeline.validation.outcome import validation_notices
from gramercy.schemas import families
from tests.integration.test_flows import last_run
from tests.support.factories import (
    bundle_bytes,
    contract_facts,
    read_registered,
    run_json,
    write_request,
)
from tests.support.problems import raises

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("prefect_server")]


def add_suite(*expectations: dict[str, Any]) -> None:
    path = Home.default().expectations("toy")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"expectations": expectations}))


MEAN = {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "c0", "min_value": 100}}
EXISTS = {"type": "expect_column_to_exist", "kwargs": {"column": "absent"}}


def release(request: Path) -> str:
    from gramercy.flows.release import release as flow

    (done,) = flow(read_registered(request))
    return done


def charges() -> int:
    return len(Ledger.of(Home.default()).charges("toy"))


def kept_runs(home: Path) -> list[dict[str, Any]]:
    """The records of all runs, oldest first."""
    files = sorted((home / "internal" / "toy" / "runs").iterdir())
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    return [json.loads(file.read_text()) for file in files]


def task_states(flow: str) -> dict[str, str]:
    """The tasks of the last run of a flow, in the order of their start, and their states."""
    from prefect import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
    from prefect.client.schemas.sorting import TaskRunSort

    with get_client(sync_client=True) as client:
        tasks = client.read_task_runs(
            flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[last_run(flow).id])),
            sort=TaskRunSort.EXPECTED_START_TIME_ASC,
        )
    return {str(each.name).rsplit("-", 1)[0]: str(each.state_name) for each in tasks}


def test_values_are_for_the_steward_alone(tmp_path: Path, home: Path) -> None:
    release(write_request(tmp_path))
    table = pd.read_csv(tmp_path / "table.csv")
    table.loc[:5, "c1"] = np.nan
    table.loc[7, "c2"] = 99.0
    table.assign(added=1).to_csv(tmp_path / "table.csv", index=False)
    add_suite(MEAN)
    done = release(write_request(tmp_path, request={"version": "v2"}))
    assert charges() == 2
    dataset, name = done.split("/")
    record = read_record(Home.default(), dataset, name)
    failed = {(each["type"], each["column"]) for each in record["expectations"]["failed"]}
    assert failed == {
        (MEAN["type"], "c0"),
        ("expect_column_values_to_not_be_null", "c1"),
        ("expect_column_values_to_be_between", "c2"),
    }
    assert record["changes_since"] == "v1-r1"
    changed = {(each["column"], each["before"], each["now"]) for each in record["changes"]}
    assert changed >= {("added", "none", "any"), ("c1", "0 %", "15 %"), ("c2", "passed", "failed")}
    codes = [each.code for each in validation_notices(record)]
    assert codes == [families.MANY_CELLS.code] * 2
    page = (home / "internal" / "toy" / f"{name}.html").read_text()
    assert all(each in page for each in ("Changes since v1-r1", MEAN["type"], "added"))
    assert [each["refused"] for each in kept_runs(home)] == [None, None]
    states = task_states("release")
    begun = ["replay", "validate", "expectations", "sampled_expectations", "accumulate", "publish"]
    assert sorted(states) == sorted([*begun, "catalogue"])
    assert {*states.values()} == {"Completed"}


def test_a_failed_value_changes_nothing_that_is_published(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger and the names of files are the same with and without it."""
    found = []
    for suite in ([], [MEAN]):
        folder = tmp_path / str(len(suite))
        folder.mkdir()
        monkeypatch.setenv("GRAMERCY_HOME", str(folder / "home"))
        add_suite(*suite)
        done = release(write_request(folder))
        entries = Ledger.of(Home.default()).head().seq
        files = bundle_bytes(folder / "home" / "archive" / done / "release")
        found.append((done, entries, sorted(files)))
    assert found[0] == found[1]


def test_a_schema_that_is_not_as_expected_is_refused_before_the_charge(
    tmp_path: Path, home: Path
) -> None:
    request = write_request(tmp_path)
    add_suite(EXISTS)
    with raises(families.TABLE_COLUMNS, file=str(tmp_path / "table.csv")):
        release(request)
    assert charges() == 0
    (run,) = kept_runs(home)
    assert run["refused"] == families.TABLE_COLUMNS.code
    assert task_states("release")["expectations"] == "Failed"
    assert not (home / "internal" / "toy" / "v1-r1.json").exists()
    add_suite(EXISTS | {"severity": "warning"})  # the remedy
    release(request)
    assert charges() == 1


def test_a_suite_that_cannot_be_used_is_refused_before_the_charge(
    tmp_path: Path, home: Path
) -> None:
    add_suite(MEAN | {"kwargs": {"columns": "c0"}})
    with raises(families.CONTRACT_FILE, path=str(Home.default().expectations("toy"))):
        release(write_request(tmp_path))
    assert charges() == 0


def test_a_release_goes_on_without_a_worker(
    tmp_path: Path, home: Path, in_place_of_worker: Callable[[str], None]
) -> None:
    from tests.integration.test_run_log import logged_messages

    in_place_of_worker("")
    done = release(write_request(tmp_path))
    record = read_record(Home.default(), *done.split("/"))
    assert [each.code for each in validation_notices(record)] == [families.NOT_CHECKED.code]
    assert (home / "internal" / "toy" / f"{done.split('/')[1]}.html").exists()
    assert any("did not validate" in line for line in logged_messages("release"))


def test_check_shows_the_same(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = write_request(tmp_path)
    add_suite(MEAN)
    done = release(request)
    record = read_record(Home.default(), *done.split("/"))
    checked = run_json("check", request, capsys=capsys)
    assert checked["expectations"] == record["expectations"]
    assert (checked["changes_since"], checked["changes"]) == ("v1-r1", [])
    assert [each["code"] for each in checked["problems"]] == [families.MANY_CELLS.code]


def test_a_copied_table_is_validated_in_its_copy(tmp_path: Path, home: Path) -> None:
    """Expectations about names and types are of the original, which has more columns."""
    table = pd.DataFrame({f"c{k}": np.linspace(-1, 1, 40) for k in range(3)} | {"note": "x"})
    with sqlite3.connect(tmp_path / "t.sqlite") as database:
        table.to_sql("visits", database, index=False)
    add_suite(EXISTS | {"kwargs": {"column": "note"}}, MEAN)
    source = {"url": f"sqlite:///{tmp_path}/t.sqlite", "table": "visits"}
    done = release(write_request(tmp_path, **contract_facts() | {"source": source}))
    found = read_record(Home.default(), *done.split("/"))["expectations"]
    assert [each["type"] for each in found["failed"]] == [MEAN["type"]]
    assert (found["files"], found["sampled_files"]) == (1, 1)
