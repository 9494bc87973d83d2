"""Checks count exactly what a release repairs, and judge the table by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy.pipeline.plan import checking
from gramercy.pipeline.plan.checking import TableCheck, check_table
from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats.reader import cell_batches
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums.row_transform import Repairs, repair
from tests.support.factories import contract_facts
from tests.support.problems import raises

COLUMNS: dict[str, Any] = {
    "size": {"lower": -1.0, "upper": 1.0},
    "free": {},
    "ward": {"levels": ["A", "B", "C"]},
    "stage": {"levels": [1, 2]},
}
NASTY = """size,free,ward,stage,who
-1,1e300,A,1,p
1.0000001,inf,A,2.0,p
nan,"1,5",c,3,q
1e400,-7,B ,01,

"0.5,broken,A,1,q
0,,,,q
0,0,A,1,q,too,many
-inf,x,A,one,r
"""


def declared(folder: Path, text: str = NASTY, **facts: Any) -> Contract:
    (folder / "t.csv").write_text(text)
    source = {"columns": COLUMNS, "rows": 9, "neighbours": "add-remove"}
    return Contract.model_validate(contract_facts(folder / "t.csv") | source | facts)


def errors(check: TableCheck) -> list[str]:
    return [each.code for each in check.errors]


def notices(check: TableCheck) -> list[str]:
    return [each.code for each in check.notices]


def test_counts_equal_the_repairs_of_a_release(tmp_path: Path) -> None:
    contract = declared(tmp_path)
    found = check_table(contract)
    repairs, malformed = Repairs.zeros(4), MalformedLines()
    codings = {name: contract.levels(name) for name in contract.names}
    for batch in cell_batches(open_source(contract.source), codings, malformed):
        repair(batch, list(contract.columns.values()), repairs)
    assert [column.missing for column in found.columns] == repairs.filled.tolist() == [3, 4, 2, 3]
    assert [column.clamped for column in found.columns] == repairs.clamped.tolist() == [1, 0, 0, 0]
    assert found.malformed == malformed.dropped == 3
    assert found.lines == 9
    assert found.complete
    assert found.levels_without_cells == ("ward=C",)


@pytest.mark.parametrize("rows", [1, 3, 999, 1000, 1001])
def test_first_rows_alone_are_read(rows: int, tmp_path: Path) -> None:
    cells = np.arange(1000) / 500 - 1
    lines = "".join(f"{x},{x},A,1,p\n" for x in cells)
    contract = declared(tmp_path, f"size,free,ward,stage,who\n{lines}", neighbours="replace-one")
    read: list[int] = []
    found = check_table(contract, rows, read.append)
    assert found.lines == sum(read) == min(rows, 1000)
    assert found.complete == (rows >= 1000)
    # Whether the number of rows is the declared one is known only at the end.
    assert errors(found) == ([families.ROW_COUNT.code] if rows >= 1000 else [])


def test_number_of_rows_is_compared_where_it_is_public(tmp_path: Path) -> None:
    found = check_table(declared(tmp_path, rows=8, neighbours="replace-one"))
    (error,) = found.errors
    assert error.code == families.ROW_COUNT.code
    assert (error.facts["rows"], error.facts["declared"]) == (9, 8)
    assert not check_table(declared(tmp_path, neighbours="replace-one")).errors
    assert not check_table(declared(tmp_path, rows=8)).errors


def test_reading_stops_where_a_release_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "EXCESS_ROWS", 5)
    text = "size,free,ward,stage\n" + "0,0,A,1\n" * 100
    found = check_table(declared(tmp_path, text, rows=10, neighbours="replace-one"))
    assert errors(found) == [families.ROW_COUNT.code]


def test_unusable_columns_are_named(tmp_path: Path) -> None:
    text = "size,free,ward,stage\n" + '"0,5","1,5",a,1\n7,2 kg,b,one\n'
    contract = declared(tmp_path, text)
    found = check_table(contract)
    (error,) = found.errors
    assert error.code == families.UNUSABLE_TABLE.code
    assert error.facts == {"source": contract.source, "columns": ("size", "free", "ward")}
    unusable, many = families.UNUSABLE_COLUMNS.code, families.MANY_CELLS.code
    assert notices(found) == [
        *(unusable, unusable, many, many, many),
        families.LEVELS_WITHOUT_CELLS.code,
    ]


def test_an_empty_table_is_unusable(tmp_path: Path) -> None:
    found = check_table(declared(tmp_path, "size,free,ward,stage\n"))
    assert errors(found) == [families.UNUSABLE_TABLE.code]
    assert [column.verdict for column in found.columns] == ["unusable"] * 4


def test_at_most_ten_unusable_columns_are_named(tmp_path: Path) -> None:
    columns = {f"c{k}": {} for k in range(12)}
    contract = declared(tmp_path, ",".join(columns) + "\n" + "," * 11 + "\n", columns=columns)
    (error,) = check_table(contract).errors
    assert error.facts["columns"] == (*list(columns)[:10], "and 2 more")


def test_persons_are_counted(tmp_path: Path) -> None:
    persons = {"privacy_unit": "who", "persons": 3}
    found = check_table(declared(tmp_path, **persons))
    assert (found.persons, found.rows_without_person) == (3, 1)
    assert [column.missing for column in found.columns] == [3, 4, 2, 3]
    assert families.PERSON_IDS.code not in notices(found)
    found = check_table(declared(tmp_path, **persons | {"persons": 4}))
    assert families.PERSON_IDS.code in notices(found)
    assert not errors(found)
    # The number is unknown before all rows are read.
    partly = check_table(declared(tmp_path, **persons | {"persons": 4}), rows=2)
    assert families.PERSON_IDS.code not in notices(partly)


@pytest.mark.parametrize(
    ("ids", "alike"),
    [
        ("p1 p2 p3", 0),
        ("p1 p1 +7 7.0", 0),  # one spelling each
        ("p1 P1 p2", 2),
        ("p1 P1 p_1 p2 P2 p3", 5),
        ("Émil émil Emil", 2),
        ("7 007 7a 7A", 2),
    ],
)
def test_ids_that_differ_in_case_or_blanks_are_counted(
    ids: str, alike: int, tmp_path: Path
) -> None:
    lines = [f"0,0,A,1,{name.replace('_', ' ')}\n" for name in ids.split(" ")]
    text = "size,free,ward,stage,who\n" + "".join(lines)
    found = check_table(declared(tmp_path, text, privacy_unit="who", persons=3))
    assert found.ids_alike == alike
    warned = [each.facts for each in found.notices if "count" in each.facts]
    assert [(each["count"], each["persons"]) for each in warned] == (
        [(alike, found.persons)] if alike else []
    )


def test_wrong_columns_are_refused_before_rows_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "cell_batches", None)  # would fail if it was called
    with raises(families.TABLE_COLUMNS, columns=("size",)):
        check_table(declared(tmp_path, NASTY.replace("size", "length")))


def test_private_counts_are_not_in_representations(tmp_path: Path) -> None:
    found = check_table(declared(tmp_path))
    for each in (found, *found.columns):
        assert type(each).__repr__ is object.__repr__


def test_check_of_a_period_counts_its_rows_and_rows_without_date(tmp_path: Path) -> None:
    text = (
        "size,seen\n0,2026-11-01\n9,2026-11-02\n,2026-10-31\n0,\n0,1.11.2026\nbroken\n,2026-11-30\n"
    )
    contract = declared(
        tmp_path,
        text,
        columns={"size": COLUMNS["size"]},
        budget={"epsilon": 1.0, "delta": 1e-6, "per": "month"},
        period={"column": "seen"},
    )
    check = check_table(contract.for_version("2026-11"))
    (size,) = check.columns
    assert (size.rows, size.missing, size.clamped) == (3, 1, 1)
    assert (check.lines, check.malformed, check.rows_without_date) == (4, 1, 2)
    assert families.UNUSABLE_LINES.code in notices(check)
    (tmp_path / "t.csv").write_text("size\n0\n")
    with raises(families.TABLE_COLUMNS, columns=("seen",)):
        check_table(contract.for_version("2026-11"))


@pytest.mark.parametrize(
    ("per", "version", "cells"),
    [("month", "2026-11", [202611]), ("year", "2026", [True]), ("day", "2026-11-23", [1.5])],
)
def test_column_that_can_have_no_dates_is_refused(
    tmp_path: Path, per: str, version: str, cells: list[Any]
) -> None:
    path = tmp_path / "t.parquet"
    pd.DataFrame({"size": [0.0], "seen": cells}).to_parquet(path)
    facts = {"budget": {"epsilon": 1.0, "delta": 1e-6, "per": per}, "period": {"column": "seen"}}
    columns = {"columns": {"size": COLUMNS["size"]}, "neighbours": "add-remove"}
    contract = Contract.model_validate(contract_facts(path) | columns | facts)
    with raises(families.TABLE_COLUMNS, column="seen"):
        check_table(contract.for_version(version))
