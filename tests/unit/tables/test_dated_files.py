"""Files whose names give the period of their rows: a release reads those of its period or steps."""

from __future__ import annotations

import datetime
import pickle
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

from gramercy.common.lattice import Lattice
from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from gramercy.schemas.normalisation import Unit
from gramercy.schemas.periods import first_day_in_name
from gramercy.schemas.steps import Cumulative, StepDays
from gramercy.tables.formats.reader import partitions
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums.exact_sums import Parts
from gramercy.tables.sums.streaming import Accumulated, GramJob, accumulate
from tests.support.factories import contract_facts
from tests.support.problems import raises

LATTICE = Lattice(3, 12)


def contract(source: Path, per: str = "year", **keys: Any) -> Contract:
    budget = {"epsilon": 1.0, "delta": 1e-9, "per": per}
    facts = contract_facts(source) | {"budget": budget, "intercept": False} | keys
    return Contract.model_validate(facts)


def write(path: Path, rows: int, seed: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = np.random.default_rng(seed).normal(size=(rows, 3))
    lines = [",".join(f"{cell:.3f}" for cell in row) for row in cells]
    path.write_text("\n".join(["c0,c1,c2", *lines]) + "\n")


def read(selected: Contract, parts: int = 1) -> Accumulated:
    source = open_source(selected.source)
    return accumulate(source, selected, Unit(), LATTICE, parts=Parts(parts))


def monthly(every: str = "month") -> StepDays:
    return Cumulative.model_validate(every).series("year", "2026")


@pytest.mark.parametrize(
    "layout", ["v-{year}-{month}.csv", "{year}/{month}", "{month}/{year}*.csv"]
)
def test_each_step_has_the_rows_of_its_files(tmp_path: Path, layout: str) -> None:
    """Also of folders; files of other years and later steps are not read."""
    for year, month in [(2025, 12), *((2026, k) for k in range(1, 6)), (2027, 1)]:
        name = layout.replace("{year}", str(year)).replace("{month}", f"{month:02}")
        path = tmp_path / name.replace("*", "-x")
        write(path if path.suffix else path / "part.csv", 2 * month, month + year)
    declared = contract(tmp_path / layout, rows=30)
    sums = read(declared.for_steps(monthly(), 4), 4)
    assert [part.rows for part in sums.part_sums] == [2, 4, 6, 8]
    assert read(declared.for_version("2026")).rows == 30
    quarters = read(declared.for_steps(monthly("quarter"), 2), 2)
    assert [part.rows for part in quarters.part_sums] == [12, 18]
    first = [sums.part_sums[k].gram for k in range(3)]
    assert (quarters.part_sums[0].gram == first[0] + first[1] + first[2]).all()


def test_a_step_without_a_file_is_refused(tmp_path: Path) -> None:
    for month in (1, 2, 4):
        write(tmp_path / f"2026-{month:02}.csv", 3)
    declared = contract(tmp_path / "{year}-{month}.csv")
    assert len(open_source(declared.for_steps(monthly(), 2).source).files) == 2
    with raises(families.SOURCE, steps=("2026-03",)):
        open_source(declared.for_steps(monthly(), 4).source)
    (tmp_path / "2026-03.csv").write_text("c0,c1,c2\n")
    assert [each.rows for each in read(declared.for_steps(monthly(), 4), 4).part_sums] == [
        3,
        3,
        0,
        3,
    ]


def test_malformed_lines_are_rows_of_the_step_of_their_file(tmp_path: Path) -> None:
    for month in (1, 2):
        write(tmp_path / f"2026-{month:02}.csv", 3)
    with (tmp_path / "2026-02.csv").open("a") as stream:
        stream.write("1,2\n,,\n")
    sums = read(contract(tmp_path / "{year}-{month}.csv").for_steps(monthly(), 2), 2)
    assert [each.rows for each in sums.part_sums] == [3, 5]
    assert (sums.malformed, sums.repairs.filled.tolist()) == (1, [1, 1, 1])


def test_a_window_reads_all_of_its_files_and_a_lifetime_all_that_match(tmp_path: Path) -> None:
    for day in ("2025-12-31", "2026-01-01", "2026-03-31", "2026-04-01"):
        write(tmp_path / f"{day}.csv", 10)
    files = tmp_path / "{year}-{month}-{day}.csv"
    assert read(contract(files, "quarter", rows=20).for_version("2026-Q1")).rows == 20
    assert read(contract(files, "lifetime").for_version("v1")).rows == 40
    with raises(families.ROW_COUNT, rows=20, declared=40):
        read(contract(files, "quarter").for_version("2026-Q1"))
    with raises(families.SOURCE):
        open_source(contract(files, "quarter").for_version("2026-Q3").source)


def test_digits_that_are_not_a_period_are_refused(tmp_path: Path) -> None:
    for month in ("12", "13"):
        write(tmp_path / f"2026-{month}.csv", 3)
    with raises(families.SOURCE, span="month"):
        open_source(contract(tmp_path / "{year}-{month}.csv").for_version("2026").source)


def test_weeks_of_days_are_cut_by_their_window(tmp_path: Path) -> None:
    start = datetime.date(2026, 12, 25)
    days = [start + datetime.timedelta(k) for k in range(14)]
    for day in days:
        write(tmp_path / f"{day:%Y%m%d}.csv", 1 + day.day % 3, day.toordinal())
    series = Cumulative(every="week").series("year", "2027")
    declared = contract(tmp_path / "{year}{month}{day}.csv")
    sums = read(declared.for_steps(series, 2), 2)
    expected = [sum(1 + day.day % 3 for day in days if series.step_of(day) == k) for k in (1, 2)]
    assert [part.rows for part in sums.part_sums] == expected


@pytest.mark.parametrize(
    ("source", "path", "day"),
    [
        ("v-{year}-{month}.csv", "/data/v-2026-11.csv", "2026-11-01"),
        ("*-{month}{year}.csv", "20-10-112026.csv", "2026-11-01"),
        ("{year}/Q{quarter}/*.csv", "a/2026/Q3/1.csv", "2026-07-01"),
        ("{year}-W{week}*", "2026-W53-x.csv", "2026-12-28"),
        ("{year}-W{week}*", "2025-W53-x.csv", None),
        ("{day}.{month}.{year}*.csv", "29.02.2028-1.csv", "2028-02-29"),
        ("{day}.{month}.{year}*.csv", "29.02.2027-1.csv", None),
        ("s3://bucket/year={year}/part-*", "bucket/year=2026/part-2025", "2026-01-01"),
    ],
)
def test_period_in_the_name_of_a_file(source: str, path: str, day: str | None) -> None:
    found = first_day_in_name(source, path)
    assert (None if found is None else found.isoformat()) == day


@pytest.mark.parametrize("layout", ["v-{year}-{month}.csv", "{year}/{month}"])
def test_a_folder_may_have_brackets_in_its_name(tmp_path: Path, layout: str) -> None:
    folder = tmp_path / "a[1] b"
    for month in (1, 2):
        path = folder / layout.replace("{year}", "2026").replace("{month}", f"{month:02}")
        write(path if path.suffix else path / "part.csv", month)
    sums = read(contract(folder / layout).for_steps(monthly(), 2), 2)
    assert [each.rows for each in sums.part_sums] == [1, 2]


def test_files_of_any_store_have_steps() -> None:
    store = fsspec.filesystem("memory")
    for month in (1, 2, 3):
        store.pipe(f"/bucket/ward=A/v-2026-{month:02}.csv", b"c0,c1,c2\n1,2,3\n" * month)
    declared = contract("memory://bucket/*/v-{year}-{month}.csv")  # type: ignore[arg-type]
    sums = read(declared.for_steps(monthly(), 3), 3)
    assert [each.rows for each in sums.part_sums] == [1, 3, 5]


def test_partitions_of_a_cluster_have_the_steps_of_their_files(tmp_path: Path) -> None:
    for month in (1, 2, 3):
        write(tmp_path / f"2026-{month:02}.csv", 5 * month, month)
    selected = contract(tmp_path / "{year}-{month}.csv").for_steps(monthly(), 3)
    source, whole = open_source(selected.source), read(selected, 3)
    job = GramJob(selected, Unit(), LATTICE, keep_malformed=True, parts=Parts(3))
    parts = [pickle.loads(pickle.dumps((job, part))) for part in partitions(source, 1)]
    assert len(parts) == 3
    total = reduce(add, (own.run(part) for own, part in parts))
    assert [each.rows for each in total.part_sums] == [5, 10, 15]
    for each, same in zip(total.part_sums, whole.part_sums, strict=True):
        assert (each.gram == same.gram).all()
