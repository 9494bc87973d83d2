"""Sources: files, folders and partitions; errors name the file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramercy.schemas import families
from gramercy.schemas.problem import Family
from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats import reader
from gramercy.tables.formats.reader import cell_batches, column_types, count_rows
from gramercy.tables.formats.source import open_source
from tests.support.problems import raises
from tests.support.source_tables import read

NAN = float("nan")


def test_files_are_read_in_name_order(tmp_path: Path) -> None:
    for i in (2, 0, 1):
        pq.write_table(pa.table({"b": [float(i)], "a": [i]}), tmp_path / f"part-{i}.parquet")
    assert read(tmp_path / "part-*.parquet", "a", "b")[0] == [[0, 0], [1, 1], [2, 2]]


@pytest.mark.parametrize(
    ("name", "content", "problem", "facts"),
    [
        ("t.csv", b"", families.HEADER, {}),
        ("t.csv", b"\n1,2\n", families.HEADER, {}),
        ("t.csv", "a,b\n1,2\n".encode("utf-16"), families.FILE, {"format": "CSV"}),
        ("t.csv", b"a,a\n1,2\n", families.TABLE_COLUMNS, {"first": 1, "second": 2}),
        ("t.csv.gz", b"not gzip", families.FILE, {"format": "CSV"}),
        ("t.parquet", b"not parquet", families.FILE, {"format": "Parquet"}),
        ("t.xlsx", b"", families.SOURCE, {}),
    ],
)
def test_unusable_file_is_refused_by_name(
    tmp_path: Path,
    name: str,
    content: bytes,
    problem: Family[Any],
    facts: dict[str, Any],
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with raises(problem, file=str(path), **facts) as caught:
        column_types(*open_source(str(path)).files)
    assert caught.value.__context__ is None  # parsers' errors quote cells


def test_missing_source_is_refused(tmp_path: Path) -> None:
    for url in (tmp_path / "no.csv", tmp_path / "*.parquet", tmp_path, "nowhere://x/t.csv"):
        with raises(families.SOURCE, source=str(url)):
            open_source(str(url))


def test_brackets_in_an_existing_path_are_literal(tmp_path: Path) -> None:
    folder = tmp_path / "data[1]"
    folder.mkdir()
    (folder / "t.csv").write_text("a\n1\n")
    assert read(folder / "t.csv", "a")[0] == [[1]]


def test_non_utf8_partition_names_are_ordinary_cells(tmp_path: Path) -> None:
    for name in (b"g=A", b"g=\xff", b"g=%FF"):
        folder = tmp_path / os.fsdecode(name)
        folder.mkdir()
        (folder / "t.csv").write_text("b\n1\n")
    source = open_source(str(tmp_path))
    batches = list(cell_batches(source, {"g": ("A",), "b": None}, MalformedLines()))
    found = np.concatenate(batches, axis=1)
    np.testing.assert_array_equal(np.sort(found[0]), [0, NAN, NAN])
    np.testing.assert_array_equal(found[1], [1, 1, 1])


def test_folder_source_reads_all_tables_below_it(tmp_path: Path) -> None:
    """As written by Spark and Hive: columns in folder names, and files that are not tables."""
    for year, region, cell in ((2024, "north sea", 1), (2025, "__HIVE_DEFAULT_PARTITION__", 2)):
        folder = tmp_path / f"year={year}" / f"region={region.replace(' ', '%20')}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"a": [cell, None], "z": ["x", "y"]}), folder / "part-0.parquet")
        (folder / "part-1.csv").write_text(f"z,a\nx,{cell + 10}\n")
        (folder / "_SUCCESS").write_text("")
        (folder / ".part-0.parquet.crc").write_text("")
        (folder / "_delta.parquet").write_text("no table")
        (folder / "notes.txt").write_text("nothing")
    (tmp_path / "_old").mkdir()
    (tmp_path / "_old" / "x.csv").write_text("a\n99\n")
    source = open_source(str(tmp_path))
    assert [Path(file.path).name for file in source.files] == ["part-0.parquet", "part-1.csv"] * 2
    assert column_types(source.files[0]) == {
        "a": "whole",
        "z": "text",
        "year": "any",
        "region": "any",
    }
    columns = {"region": ["north sea", "south"], "a": None, "year": None}
    batches = list(cell_batches(source, columns, MalformedLines()))
    np.testing.assert_array_equal(
        np.concatenate(batches, axis=1),
        [[0, 0, 0, NAN, NAN, NAN], [1, NAN, 11, 2, NAN, 12], [2024] * 3 + [2025] * 3],
    )
    with raises(families.TABLE_COLUMNS, file=source.files[0].display_name):
        list(cell_batches(source, {"year": None}, MalformedLines()))
    (tmp_path / "none").mkdir()
    with raises(families.SOURCE, source=str(tmp_path / "none")):
        open_source(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("Delta", "below/_delta_log/00000000000000000000.json"),
        ("Iceberg", "metadata/00000-1.metadata.json"),
        ("Hudi", ".hoodie/hoodie.properties"),
    ],
)
def test_folder_with_versions_of_rows_is_refused(kind: str, file: str, tmp_path: Path) -> None:
    """A changed row is in two of its files."""
    for name in ("part-0", "part-1"):
        pq.write_table(pa.table({"a": [1.0]}), tmp_path / f"{name}.parquet")
    assert len(open_source(str(tmp_path)).files) == 2
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("{}")
    with raises(families.SOURCE, source=str(tmp_path), kind=kind):
        open_source(str(tmp_path))


def test_rows_of_all_files_are_counted_with_malformed_lines(tmp_path: Path) -> None:
    folder = tmp_path / "ward=A"
    folder.mkdir()
    (folder / "a.csv").write_text('x,"y z"\n1,2\n3,4,5\n\n"6,7\n8,\n')
    pd.DataFrame({"y z": range(70), "x": range(70)}).to_parquet(folder / "b.parquet")
    assert count_rows(open_source(str(tmp_path))) == 75


def test_large_files_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    source = open_source(str(tmp_path / "a.csv"))
    assert count_rows(source) == 2
    monkeypatch.setattr(reader, "_MOST_BYTES", 5)
    assert count_rows(source) is None
    pd.DataFrame({"x": range(70)}).to_parquet(tmp_path / "b.parquet")
    assert count_rows(open_source(str(tmp_path / "b.parquet"))) == 70
