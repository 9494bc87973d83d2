"""Sources: files, folders and partitions, and what is refused by its name."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramercy.schemas.errors import TableError
from gramercy.tables.column_types import column_types
from gramercy.tables.csv_reader import Malformed
from gramercy.tables.read import cells
from gramercy.tables.source import open_source
from tests.support.table_reading import read

NAN = float("nan")


def test_files_are_read_in_name_order(tmp_path: Path) -> None:
    for i in (2, 0, 1):
        pq.write_table(pa.table({"b": [float(i)], "a": [i]}), tmp_path / f"part-{i}.parquet")
    assert read(tmp_path / "part-*.parquet", "a", "b")[0] == [[0, 0], [1, 1], [2, 2]]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"\n1,2\n", "is empty"),
        ("t.csv", "a,b\n1,2\n".encode("utf-16"), "not UTF-8"),
        ("t.csv", b"a,a\n1,2\n", "columns 1 and 2 have the same name"),
        ("t.csv.gz", b"not gzip", "cannot be read"),
        ("t.parquet", b"not parquet", "cannot be read as Parquet"),
        ("t.xlsx", b"", "is not .csv"),
    ],
)
def test_unusable_file_is_refused_by_name(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=words) as caught:
        column_types(*open_source(str(tmp_path / name)).files)
    assert name in str(caught.value)


def test_missing_source_is_refused(tmp_path: Path) -> None:
    for url, words in (
        (tmp_path / "no.csv", "no such file"),
        (tmp_path / "*.parquet", "no such file"),
        (tmp_path, "is a folder without CSV or Parquet files"),
        ("nowhere://x/t.csv", "cannot be opened"),
    ):
        with pytest.raises(TableError, match=words):
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
    batches = list(cells(source, {"g": ("A",), "b": None}, Malformed()))
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
    batches = list(cells(source, columns, Malformed()))
    np.testing.assert_array_equal(
        np.concatenate(batches, axis=1),
        [[0, 0, 0, NAN, NAN, NAN], [1, NAN, 11, 2, NAN, 12], [2024] * 3 + [2025] * 3],
    )
    with pytest.raises(TableError, match="all declared columns are names of folders"):
        list(cells(source, {"year": None}, Malformed()))
    (tmp_path / "none").mkdir()
    with pytest.raises(TableError, match="is a folder without CSV or Parquet files"):
        open_source(str(tmp_path / "none"))
