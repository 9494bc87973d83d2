"""Delta tables: the rows of the present version, from any layout of files; else refused."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from gramercy.pipeline.plan.checking import check_table_header
from gramercy.schemas import families
from gramercy.schemas.problem import Family
from gramercy.tables.formats.reader import schema_of
from gramercy.tables.formats.source import copy_rows, open_source
from gramercy.tables.formats.table_format import CopiedColumns
from tests.support.problems import raises
from tests.support.source_tables import WIDE, cells, contract, copied, frame, gram


def written(folder: Path, table: pa.Table, **options: Any) -> str:
    """The path of a Delta table."""
    write_deltalake(str(folder), table, **options)
    return str(folder)


def log(folder: Path, version: int = 0) -> tuple[Path, list[dict[str, Any]]]:
    """A file of the log, and its actions."""
    path = folder / "_delta_log" / f"{version:020d}.json"
    return path, [json.loads(line) for line in path.read_text().splitlines()]


def changed(folder: Path, kind: str, **keys: Any) -> None:
    """Change what the log says."""
    path, actions = log(folder)
    for action in actions:
        if kind in action:
            action[kind] |= keys
    path.write_text("\n".join(map(json.dumps, actions)))


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [None, ["ward"], ["flag", "n"]])
def test_integers_equal_those_of_the_same_table_in_parquet(
    partitions: list[str] | None, tmp_path: Path
) -> None:
    """Of the present version; earlier rows are in other files of the folder."""
    table = frame(60)
    table.loc[7, ["x", "price", "ward"]] = None
    table["n"] = table["n"] % 3
    table.to_parquet(tmp_path / "t.parquet")
    rows = pa.Table.from_pandas(table, preserve_index=False)
    path = written(tmp_path / "d", rows.slice(0, 40), partition_by=partitions)
    written(tmp_path / "d", rows, mode="overwrite")
    written(tmp_path / "d", rows.slice(0, 20), mode="append")
    DeltaTable(path).delete("true")
    for start in (30, 0):
        written(tmp_path / "d", rows.slice(start, 30), mode="append")
    persons = {"privacy_unit": "patient", "persons": 30}
    for k, facts in enumerate(({}, persons)):
        declared = contract(path, 60, **facts)
        check_table_header(declared)
        copy = copied(path, declared, tmp_path / f"copy-{k}")
        in_parquet = contract(str(tmp_path / "t.parquet"), 60, **facts)
        np.testing.assert_array_equal(gram(in_parquet), gram(contract(copy, 60, **facts)))
    files = list((tmp_path / "copy-0").iterdir())
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "copy-0").stat().st_mode) == 0o700


def test_partitions_of_any_name_and_columns_that_were_added(tmp_path: Path) -> None:
    """Files that were written before a column was added lack it."""
    wards = ["a b", "ä/=%25", "y" * 150, None, "NA"]
    table = pa.table({"x": pa.array(range(5), pa.float64()), "ward": wards})
    path = written(tmp_path / "d", table, partition_by=["ward"])
    more = table.append_column("new", pa.array([1.5] * 5))
    written(tmp_path / "d", more, mode="append", schema_mode="merge")
    assert schema_of(open_source(path)) == {"x": "double", "ward": "text", "new": "double"}
    levels = (*map(str, wards[:3]), "NA")
    columns: dict[str, Any] = {"x": None, "ward": levels, "new": None}
    copy = copy_rows(path, CopiedColumns(columns), tmp_path / "copy")
    found = np.array(cells(copy, columns))
    nan = float("nan")
    codes = [0, 1, 2, nan, 3]
    expected = [[x, codes[x], new] for x in range(5) for new in (1.5, nan)]
    np.testing.assert_array_equal(found[np.lexsort((found[:, 2], found[:, 0]))], expected)


def test_a_version_stays_as_it_was_while_the_table_changes(tmp_path: Path) -> None:
    path = written(tmp_path / "d", pa.table({"x": [1.0, 2.0]}))
    copy = copy_rows(path, CopiedColumns({"x": None}), tmp_path / "copy")
    written(tmp_path / "d", pa.table({"x": [3.0]}), mode="overwrite")
    for file in (tmp_path / "d").glob("*.parquet"):
        file.unlink()
    assert cells(copy, {"x": None}) == [[1], [2]]
    with raises(families.FILE, format="Delta"):
        copy_rows(path, CopiedColumns({"x": None}), tmp_path / "again")


def test_header_is_compared_with_the_contract(tmp_path: Path) -> None:
    path = written(tmp_path / "d", pa.table({"x": ["1"], "y": [1.0]}))
    with raises(families.TABLE_COLUMNS, file=path):
        check_table_header(contract(path, columns={"x": WIDE}))
    with raises(families.TABLE_COLUMNS, file=path):
        check_table_header(contract(path, columns={"z": WIDE}))


READER = {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": []}
VECTOR = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}


@pytest.mark.parametrize(
    ("kind", "keys", "problem"),
    [
        (
            "protocol",
            READER | {"readerFeatures": ["typeWidening"], "writerFeatures": ["typeWidening"]},
            families.DELTA_TABLE,
        ),
        ("add", {"path": "../other.parquet"}, families.DELTA_TABLE),
        ("add", {"path": "file:///etc/passwd"}, families.FILE),
        ("add", {"path": "link.parquet"}, families.DELTA_TABLE),
        ("add", {"path": "broken.parquet"}, families.FILE),
        ("metaData", {"schemaString": "{"}, families.FILE),
        (
            "metaData",
            {"configuration": {"delta.columnMapping.mode": "name"}},
            families.DELTA_TABLE,
        ),
    ],
)
def test_what_would_change_the_rows_is_refused(
    kind: str, keys: dict[str, Any], problem: Family[Any], tmp_path: Path
) -> None:
    path = written(tmp_path / "d", pa.table({"x": [1.0, 2.0]}))
    pq.write_table(pa.table({"x": [9.0]}), tmp_path / "other.parquet")
    (tmp_path / "d" / "link.parquet").symlink_to(tmp_path / "other.parquet")
    (tmp_path / "d" / "broken.parquet").write_bytes(b"PAR1")
    changed(tmp_path / "d", kind, **keys)
    with raises(problem) as caught:
        copy_rows(path, CopiedColumns({"x": None}), tmp_path / "copy")
    assert caught.value.__context__ is None
    shutil.rmtree(tmp_path / "d" / "_delta_log")
    (tmp_path / "d" / "_delta_log").mkdir()
    with raises(families.FILE, file=path, format="Delta"):
        schema_of(open_source(path))


def test_rows_that_are_marked_as_deleted_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "d", pa.table({"x": [1.0, 2.0]}))
    marked = pa.record_batch({"filepath": ["f"], "selection_vector": [[True, False]]})
    monkeypatch.setattr(DeltaTable, "deletion_vectors", lambda _: iter([marked]))
    with raises(families.DELTA_TABLE, feature="deletion vectors"):
        schema_of(open_source(path))


def test_the_reader_of_logs_is_optional(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "d", pa.table({"x": [1.0]}))
    monkeypatch.setattr("gramercy.tables.formats.delta_format.is_installed", lambda _: False)
    with raises(families.DELTA_TABLE, source=path):
        schema_of(open_source(path))


def test_log_that_would_not_fit_into_memory(tmp_path: Path) -> None:
    path = written(tmp_path / "d", pa.table({"x": [0.5]}))
    (tmp_path / "d/_delta_log/_sidecars").mkdir()
    with (tmp_path / "d/_delta_log/_sidecars/part.parquet").open("wb") as stream:
        stream.truncate(1 << 40)
    with raises(families.DELTA_TABLE, source=path, mebibytes=(1 << 20) + 1, most=128):
        check_table_header(contract(path, 1))
