"""The exact sums of a table are those of its rows, or of its persons, each in a table of its own.

So no row moves, changes, adds or removes what another one adds, for any cells.
"""

from __future__ import annotations

import datetime
import random
import sqlite3
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramercy.common.lattice import Lattice
from gramercy.pipeline.publish.private_table import copied_contract
from gramercy.schemas.contract import Contract
from gramercy.schemas.facts import LevelsFacts
from gramercy.schemas.normalisation import Clip
from gramercy.schemas.steps import StepDays
from gramercy.tables import batches
from gramercy.tables.formats.source import open_source
from gramercy.tables.persons.person_names import canonical
from gramercy.tables.sums.exact_sums import Parts, Sum
from gramercy.tables.sums.streaming import accumulate
from tests.support.factories import contract_facts

COLUMNS: dict[str, Any] = {
    "n": {"lower": 0.0, "upper": 100.0, "missing": [-9.0, 99.0]},
    "ward": {"levels": ["A", "Süd"]},
    "stage": {"levels": [1.0, 7.5]},
    "smokes": {"levels": [True, False]},
    "icd": {"levels": {"a": ["A", "B1"], "b": ["C", "Bé"], "other": "*"}, "prefix": True},
    "born": {"unit": "years since 2000-01-01", "lower": "1900-01-01", "upper": "2030-01-01"},
    "log": {"from": "n", "transform": "log1p"},
    "gone": {"from": "note", "transform": "is missing"},
    "by_ward": {"from": ["n", "ward"], "transform": "product"},
    "ratio": {"from": ["n", "note"], "transform": "ratio", "lower": -5.0, "upper": 5.0},
    "age": {"from": ["born", "visit"], "transform": "age"},
    "bent": {"from": "n", "transform": "spline", "knots": [10.0, 20.0, 70.0]},
}
NAMES = ["n", "ward", "stage", "smokes", "icd", "born", "note", "visit", "who"]
DATES = ["2024-01-31", "2024-02-29T23:59:59", "2024-02-29T00:30+14:00", "2024-02", "2024-02-30"]
PERSONS = ["9007199254740993", "07", "7", "7.0", "P1", " P1", "\uff301", "\u200bP1", "p\u0301", ""]
CELLS = [
    *("", "NA", "nan", "inf", "-inf", "1e400", "-0.0", "5e-324", "1e308", "99", "-9.0", "7.5"),
    *("A", "B1xyz", "Bé", "Be\u0301x", "Su\u0308d", "Süd", "TRUE", "no", "1.00", "0", "f"),
    *DATES,
    *("0001-01-01", "9999-12-31", "1,234", "1.234,5", "12 %", "€ 5", "− 5", "(5)", "#", "# 5"),
    *("x" * 3000, "e\u0301" * 900, "1" * 1500, "0x1p3", "1_000", "nan(1)", "\ufeff1", "\u00a05"),
]
LINES = ["", "#", "#;;", "a;b", '"open', "x\ry"]  # of a CSV, and no records
NOTATIONS: list[dict[str, Any]] = [
    {"thousands": ","},
    {"thousands": ".", "decimal": ","},
    {"percent": True, "units": ["€"], "accounting": True},
]

Row = dict[str, str] | str


def as_csv(folder: Path, rows: Sequence[Row], keys: dict[str, Any]) -> dict[str, Any]:
    lines = [
        row if isinstance(row, str) else ";".join(f'"{cell}"' for cell in row.values())
        for row in rows
    ]
    text = "\n".join(["a title", "#", ";".join(NAMES), *lines, ""])
    (folder / "t.csv").write_text(text, newline="\n")
    path = str(folder / "t.csv")
    return {"path": path, "separator": ";", "header": 2, "comment": "#", **keys}


def as_parquet(folder: Path, rows: Sequence[Any], keys: dict[str, Any]) -> dict[str, Any]:
    columns = {name: pa.array([row[name] or None for row in rows], pa.string()) for name in NAMES}
    columns["icd"] = columns["icd"].dictionary_encode()
    pq.write_table(pa.table(columns), folder / "t.parquet", row_group_size=3)
    return {"path": str(folder / "t.parquet"), **keys}


def as_sqlite(folder: Path, rows: Sequence[Any], keys: dict[str, Any]) -> dict[str, Any]:
    with sqlite3.connect(folder / "t.db") as connection:
        connection.execute("DROP TABLE IF EXISTS t")
        connection.execute(f"CREATE TABLE t ({', '.join(f'{name} TEXT' for name in NAMES)})")
        values = [[row[name] or None for name in NAMES] for row in rows]
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(NAMES))})", values)
    connection.close()
    return {"url": "env:CLINIC_DB", "table": "t", **keys}


FORMATS: dict[str, Callable[..., dict[str, Any]]] = {
    "csv": as_csv,
    "parquet": as_parquet,
    "sqlite": as_sqlite,
}
MODES: dict[str, dict[str, Any]] = {
    "rows": {},
    "malformed lines are kept": {},
    "persons": {"privacy_unit": "who", "persons": 20},
    "groups": {},
    "series": {"period": {"column": "visit"}},
}
STARTS = tuple(datetime.date(2024, month, 1) for month in (1, 2, 3, 4))


def sums(source: dict[str, Any], mode: str, folder: Path) -> list[Sum]:
    """The exact sums of all parts of a table."""
    facts = contract_facts(rows=50) | {"columns": COLUMNS, "source": source} | MODES[mode]
    declared, parts = Contract.model_validate(facts | {"neighbours": "add-remove"}), Parts()
    if mode == "series":
        declared, parts = declared.for_steps(StepDays("month", STARTS, ""), 3), Parts(3)
    copy = folder / str(len([*folder.iterdir()]))
    copy.mkdir()
    declared = copied_contract(declared, copy)
    if mode == "groups":
        groups = LevelsFacts(name="icd", levels=("a", "b", "other"))
        parts = Parts(1, groups, declared.columns["icd"].coding)
        declared = declared.without_column("icd")
    width = declared.intercept + sum(column.width for column in declared.columns.values())
    keep = mode == "malformed lines are kept"
    made = accumulate(
        open_source(declared.source),
        declared,
        Clip(radius=3.0),
        Lattice(width, 14),
        keep_malformed=keep,
        parts=parts,
    )
    return list(made.part_sums)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", FORMATS)
def test_sums_are_those_of_each_row_or_person_alone(
    kind: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(f"{kind} {mode}")
    monkeypatch.setenv("CLINIC_DB", f"sqlite:///{tmp_path / 't.db'}")
    copies = tmp_path / "copies"
    copies.mkdir()
    keys = draw.choice(NOTATIONS)
    chosen = dict.fromkeys(NAMES, CELLS) | {"visit": DATES, "who": PERSONS}
    rows: list[Row] = [{x: draw.choice(chosen[x]) for x in NAMES} for _ in range(14)]
    units = [canonical(row["who"]) if mode == "persons" else str(k) for k, row in enumerate(rows)]
    alone = [[row for row, of in zip(rows, units, strict=True) if of == x] for x in {*units}]
    if kind == "csv":
        for line in LINES:
            rows.insert(draw.randrange(len(rows)), line)
            alone.append([line])

    def sums_of(some: Sequence[Row]) -> list[Sum]:
        return sums(FORMATS[kind](tmp_path, some, keys), mode, copies)

    expected = [reduce(add, of_part) for of_part in zip(*map(sums_of, alone), strict=True)]
    monkeypatch.setattr(batches, "BATCH_CELLS", 100)  # some rows
    found = sums_of(rows)
    assert [each.rows for each in found] == [each.rows for each in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.gram, other.gram)
    assert any(np.any(each.gram) for each in found)
