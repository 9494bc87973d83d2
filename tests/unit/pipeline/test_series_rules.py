"""What a cumulative series cannot be asked for: refused before the table is opened."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramercy.common.prefix_sums import UNIT, PrefixSums
from gramercy.mechanisms import registry
from gramercy.mechanisms.mechanism import PublicParameters
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.checking import check_table, check_table_header
from gramercy.pipeline.plan.planning import Plan, check_scheduled_version, load_contract, make_plan
from gramercy.pipeline.plan.request_files import read_request
from gramercy.pipeline.plan.step_charges import due
from gramercy.pipeline.publish.charging import publish, replay
from gramercy.pipeline.publish.private_table import accumulate, copy_folder, copy_table
from gramercy.schemas import families
from gramercy.schemas.neighbours import Neighbours
from tests.support.cumulative import catch_up
from tests.support.databases import KINDS
from tests.support.factories import write_request
from tests.support.problems import raises
from tests.support.source_tables import execute, new_url

FACTS: dict[str, Any] = {
    "source": "absent-{year}-{month}.csv",
    "budget": {"epsilon": 3.0, "delta": 1e-9, "per": "year"},
    "neighbours": "add-remove",
}
DATED: dict[str, Any] = {"source": "table.csv", "period": {"column": "visited"}}
GAUSSIAN: dict[str, Any] = {"name": "gaussian", "epsilon": 0.5, "delta": 1e-10}


def request(folder: Path, contract: Any = None, **keys: Any) -> Path:
    asked = {"version": "2026-02", "cumulative": "month", "mechanism": GAUSSIAN, "estimates": []}
    return write_request(folder, request=asked | keys, **(FACTS | (contract or {})))


def planned(path: Path, **keys: Any) -> Plan:
    return make_plan(Context.default(), read_request(path), **keys)


REQUIRED: dict[str, dict[str, Any]] = {"output": {"penalty": 0.1}}


def mechanisms_without_series() -> list[dict[str, Any]]:
    """Keys of a request for every mechanism that a series cannot have."""
    return [
        GAUSSIAN | {"name": name, "arithmetic": each.arithmetic} | REQUIRED.get(name, {})
        for name, each in registry.items()
        if not each.takes_series
    ]


def test_gaussian_noise_alone_takes_series() -> None:
    assert [name for name, each in registry.items() if each.takes_series] == [
        "gaussian",
        "gaussian-iid",
    ]


@pytest.mark.parametrize("mechanism", mechanisms_without_series(), ids=lambda keys: keys["name"])
def test_other_mechanisms_are_refused(tmp_path: Path, mechanism: Any) -> None:
    whole = registry[mechanism["name"]].needs_whole_rows
    keys = {"normalisation": "whole"} if whole else {}
    with raises(families.REQUEST_USE, mechanism=mechanism["name"]):
        planned(request(tmp_path, mechanism=mechanism, **keys))


@pytest.mark.parametrize(
    ("keys", "family"),
    [
        ({"folds": 2}, families.REQUEST_USE),
        ({"mechanism": GAUSSIAN | {"calibration": "published"}}, families.REQUEST_USE),
        ({"scaling": "private"}, families.SCALING),
        ({"cumulative": {"every": "month", "from": "2026-01-01", "steps": 12}}, families.PERIOD),
        ({"cumulative": "week", "version": "2026-W05"}, families.REQUEST_USE),
        ({"version": "2026-02.2"}, families.PERIOD),
        ({"version": "2026-13"}, families.PERIOD),
        ({"mechanism": GAUSSIAN | {"epsilon": 1e-4}}, families.NOISE_RANGE),
    ],
    ids=["folds", "published", "private", "from", "week", "second", "no-month", "noise"],
)
def test_keys_that_a_series_cannot_have(tmp_path: Path, keys: Any, family: Any) -> None:
    with raises(family):
        planned(request(tmp_path, **keys))


@pytest.mark.parametrize("unit", ["cell", "person"])
def test_persons_and_cells_are_refused(tmp_path: Path, unit: str) -> None:
    budget = FACTS["budget"] | {"per": "lifetime"}
    persons = {"privacy_unit": "who", "persons": 7} if unit == "person" else {"privacy_unit": unit}
    series = {"every": "month", "from": "2026-01-01", "steps": 12}
    with raises(families.REQUEST_USE, unit=unit):
        planned(request(tmp_path, {"budget": budget} | persons, cumulative=series))


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_all_steps_have_the_same_constants(tmp_path: Path, neighbours: str) -> None:
    """A remedy is one that this contract allows."""
    free = {"columns": {"c0": {"lower": -5.0, "upper": 5.0}, "c1": {}}, "neighbours": neighbours}
    for keys in ({}, {"scaling": "private"}):
        with raises(families.SCALING) as refused:
            planned(request(tmp_path, DATED | free, **keys))
        marginals = "marginals" in refused.value.hint
        assert marginals == (neighbours == "add-remove")
    free |= {"columns": {"c0": {"lower": -5.0, "upper": 5.0}}}
    first = {"mechanism": GAUSSIAN | {"name": "marginals"}, "version": "2026", "cumulative": None}
    path = request(tmp_path, DATED | free, **first)
    if neighbours == "add-remove":
        assert planned(path).spec.cumulative is None
        return
    with raises(families.PERIOD, column="visited"):
        planned(path)


def test_a_planned_series_does_not_need_its_table(tmp_path: Path) -> None:
    assert planned(request(tmp_path)).spec.cumulative is not None


def test_a_step_is_published_when_its_rows_are_complete(tmp_path: Path) -> None:
    """Days begin in the time zone of the dates."""
    dated = DATED | {"period": {"column": "visited", "timezone": "Asia/Tokyo"}}
    lag = {"every": "month", "lag": 3}
    path = request(tmp_path, dated, cumulative=lag)
    end = datetime.datetime(2026, 3, 3, 15, tzinfo=datetime.UTC)  # midnight in Tokyo
    plan = planned(path, at=end)
    with raises(families.PERIOD, version="2026-02", complete="2026-03-04"):
        check_scheduled_version(plan, end - datetime.timedelta(seconds=1))
    check_scheduled_version(plan, end)


@pytest.mark.parametrize(("rows", "columns", "epsilon"), [(10**8, 5, 0.1), (10**9, 20, 1.0)])
def test_noise_of_large_tables_can_be_drawn_fast(rows: int, columns: int, epsilon: float) -> None:
    """A coarser lattice rounds by a few percent of the noise, where the sampler would be slow."""
    facts = PublicParameters(columns, rows, Neighbours.ADD_REMOVE, True, series=PrefixSums(52))
    spec = registry["gaussian"].spec.model_validate(GAUSSIAN | {"epsilon": epsilon})
    mechanism: Any = registry["gaussian"].from_spec(spec, facts)
    assert mechanism.scale * mechanism.lattice.squared_radius * UNIT <= 2.0**45
    assert rows / (12 * mechanism.lattice.squared_radius) < 0.05 * mechanism.scale


def visits(rows: int = 60) -> pd.DataFrame:
    """Two visits a day from January on."""
    stream, first = np.random.default_rng(1), datetime.date(2026, 1, 1)
    days = [first + datetime.timedelta(k) for k in range(rows)]
    return pd.DataFrame(stream.normal(size=(rows, 3)), columns=["c0", "c1", "c2"]).assign(
        visited=days
    )


@pytest.mark.slow
def test_another_request_does_not_continue_a_series(tmp_path: Path) -> None:
    """It would be charged for a window of its own, and begins with its first step or never."""
    visits().to_csv(tmp_path / "table.csv", index=False)
    assert catch_up(request(tmp_path, DATED, version="2026-01")) == ["2026-01-r1"]
    context, ledger = Context.default(), Context.default().ledger
    for changes in ({"cumulative": {"every": "month", "lag": 9}}, {"normalisation": "box"}):
        other = request(tmp_path, DATED, **changes)
        with raises(families.TERMS, release="toy/2026-01-r1", step=2):
            due(ledger, planned(other))
        with raises(families.TERMS, release="toy/2026-01-r1", step=2):
            replay(context, planned(other))
        first = planned(request(tmp_path, DATED, version="2026-01", **changes))
        assert due(ledger, first) == first.guarantee
    assert due(ledger, planned(request(tmp_path, DATED))).mu == 0
    assert catch_up(request(tmp_path, DATED)) == ["2026-02-r1"]


TYPES = {
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamp with time zone": pa.timestamp("us", "Europe/Berlin"),
    "text": pa.string(),
}


def write_parquet(path: Path, kind: str) -> None:
    frame = pa.Table.from_pandas(visits().drop(columns="visited"))
    stated = pa.array(visits()["visited"], pa.date32())
    column = (
        stated.cast(TYPES[kind])
        if kind != "timestamp with time zone"
        else stated.cast(pa.timestamp("us", "UTC")).cast(TYPES[kind])
    )
    pq.write_table(frame.append_column("visited", column), path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(TYPES))
def test_the_type_of_the_dates_is_fixed_by_the_first_step(tmp_path: Path, kind: str) -> None:
    """A day that becomes an instant may be in another step."""
    facts = DATED | {"source": "table.parquet"}
    write_parquet(tmp_path / "table.parquet", kind)
    assert catch_up(request(tmp_path, facts, version="2026-01")) == ["2026-01-r1"]
    for other in set(TYPES) - {kind}:
        write_parquet(tmp_path / "table.parquet", other)
        plan = planned(request(tmp_path, facts))
        with raises(families.TERMS, release="toy/2026-01-r1"):
            publish(Context.default(), plan, accumulate(plan))
    write_parquet(tmp_path / "table.parquet", kind)
    assert catch_up(request(tmp_path, facts)) == ["2026-02-r1"]


def test_files_have_one_type_of_dates(tmp_path: Path) -> None:
    facts = DATED | {"source": "part-*.parquet"}
    for kind in ("date", "timestamp"):
        write_parquet(tmp_path / f"part-{kind}.parquet", kind)
    declared = planned(request(tmp_path, facts)).contract
    with raises(families.TABLE_COLUMNS, types=("date", "timestamp")):
        check_table_header(declared)
    years = pa.Table.from_pandas(visits().assign(visited=2026))
    for path in tmp_path.glob("part-*"):
        pq.write_table(years, path)
    with raises(families.TABLE_COLUMNS, type="whole"):
        check_table_header(declared)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_dates_of_a_database_give_the_step(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_url(kind, tmp_path)
    monkeypatch.setenv("CLINIC_DB", url)
    seen = "TEXT" if kind == "sqlite" else "TIMESTAMPTZ"
    create = f"CREATE TABLE visits (c0 REAL, c1 REAL, c2 REAL, visited {seen})"
    days = ["2025-12-31", "2026-01-01", "2026-01-31", "2026-02-01", "2026-03-01"]
    rows = [{"c": float(k), "day": f"{day} 12:00:00+00:00"} for k, day in enumerate(days)]
    execute(url, create, "INSERT INTO visits VALUES (:c, :c, 0, :day)", rows=rows)
    source = {"url": "env:CLINIC_DB", "table": "visits"}
    plan = planned(request(tmp_path, DATED | {"source": source}))
    with copy_folder(Context.default().home, plan.contract) as folder:
        assert folder is not None
        sums: Any = accumulate(copy_table(plan, folder))
    assert [part.rows for part in sums.sums.part_sums] == [2, 1]
    assert sums.dates == ("text" if kind == "sqlite" else "timestamp with time zone")


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_check_counts_the_rows_of_the_steps_so_far(tmp_path: Path, neighbours: str) -> None:
    """Under replace-one, `rows` of the contract is a plan for all steps, and no error here."""
    table = visits()
    table.loc[3, "visited"] = None
    table.to_csv(tmp_path / "table.csv", index=False)
    facts = DATED | {"neighbours": neighbours, "rows": 1000}
    asked = read_request(request(tmp_path, facts))
    check = check_table(load_contract(Context.default(), asked))
    assert (check.lines, check.rows_without_date) == (58, 1)
    assert check.errors == []


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_other_releases_of_a_lifetime_have_all_rows(tmp_path: Path, neighbours: str) -> None:
    """Their guarantee does not depend on dates."""
    table = visits()
    table.loc[3, "visited"] = None
    table.to_csv(tmp_path / "table.csv", index=False)
    lifetime = {"budget": FACTS["budget"] | {"per": "lifetime"}, "rows": 60}
    facts = DATED | lifetime | {"neighbours": neighbours}
    plain = planned(request(tmp_path, facts, version="v1", cumulative=None))
    sums: Any = accumulate(plain)
    assert sums.sums.rows == 60
    series = {"every": "month", "from": "2026-01-01", "steps": 12}
    steps: Any = accumulate(planned(request(tmp_path, facts, cumulative=series)))
    assert [part.rows for part in steps.sums.part_sums] == [30, 28]
