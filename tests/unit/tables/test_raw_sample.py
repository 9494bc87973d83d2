"""Rows as they are stored: of the beginning, the middle and the end, in any format."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from gramercy.schemas import families
from gramercy.schemas.database import DatabaseTable
from gramercy.schemas.source import Files
from gramercy.tables.formats.raw_sample import MOST_FILES, RawSample, raw_samples
from gramercy.tables.formats.source import open_source
from tests.support.problems import raises

COLUMNS = ["number", "word"]


def samples(source: Any, columns: list[str] = COLUMNS, rows: int = 30) -> list[RawSample]:
    return list(raw_samples(open_source(source), columns, rows))


def write_csv(path: Path, rows: int, encoding: str = "utf-8", ending: str = "\n") -> None:
    lines = [f"{k},,ä{k % 7}" for k in range(rows)]
    path.write_bytes(ending.join(["number,other,word", *lines, ""]).encode(encoding))


@pytest.mark.parametrize(("rows", "complete"), [(30, True), (31, False), (1_200_000, False)])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_csv_files_show_all_three_parts(
    rows: int, complete: bool, encoding: Any, tmp_path: Path
) -> None:
    write_csv(tmp_path / "a.csv", rows, encoding, "\r\n")
    (sample,) = samples(Files(path=str(tmp_path / "a.csv"), encoding=encoding))
    numbers = np.array(sample.cells["number"].to_pylist(), float)
    assert sample.cells.num_rows == 30
    assert set(sample.cells["word"].to_pylist()) <= {f"ä{k}" for k in range(7)}
    assert (sample.complete, sample.has_last) == (complete, True)
    assert (numbers[0], numbers[-1]) == (0, rows - 1)
    assert np.abs(numbers - rows / 2).min() < rows / 5
    assert len(set(numbers)) == 30


def test_no_row_of_a_csv_file_is_there_twice(tmp_path: Path) -> None:
    """Nor of a large file with fewer rows than a sample may have."""
    lines = [f"{k},{'z' * 5000},a\n" for k in range(2400)]
    (tmp_path / "a.csv").write_text("".join(["number,other,word\n", *lines]))
    (sample,) = samples(str(tmp_path / "a.csv"), rows=10_000)
    numbers = sample.cells["number"].to_pylist()
    assert (numbers[0], numbers[-1]) == ("0", "2399")
    assert len(set(numbers)) == len(numbers) > 1200


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.csv.gz", "utf-16.csv"])
def test_what_is_read_in_order_shows_its_beginning(name: str, tmp_path: Path) -> None:
    write_csv(tmp_path / "plain", 1_000_000, "utf-16" if "16" in name else "utf-8")
    data = (tmp_path / "plain").read_bytes()
    (tmp_path / name).write_bytes(gzip.compress(data, 1) if name.endswith("gz") else data)
    encoding: Any = "utf-16" if "16" in name else "utf-8"
    (sample,) = samples(Files(path=str(tmp_path / name), encoding=encoding))
    assert not (sample.complete)
    assert not (sample.has_last)
    assert sample.cells["number"].to_pylist() == [str(k) for k in range(30)]


def test_malformed_lines_and_missing_cells_of_csv(tmp_path: Path) -> None:
    text = 'number,word\n1,"a\nb"\n2,x\n3\n\nNA,\xff\n4,' + "z" * 2000
    (tmp_path / "a.csv").write_bytes(text.encode("latin-1"))
    (sample,) = samples(str(tmp_path / "a.csv"))
    assert sample.cells["number"].to_pylist() == ["2", None, "4"]
    assert sample.cells["word"].to_pylist() == ["x", "\x1a", None]


@pytest.mark.parametrize("groups", [7, 1000])
@pytest.mark.parametrize("encoded", [True, False])
def test_parquet_files_show_all_three_parts(groups: int, encoded: bool, tmp_path: Path) -> None:
    table = pa.table({"number": range(1000), "word": [f"w{k % 5}" for k in range(1000)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=groups, use_dictionary=encoded)
    (sample,) = samples(str(tmp_path / "a.parquet"))
    numbers = sample.cells["number"].to_pylist()
    assert sample.cells.schema.types == [pa.int64(), pa.string()]
    assert (numbers[0], numbers[-1]) == (0, 999)
    assert len(set(numbers)) == len(numbers) <= 30
    assert (sample.complete, sample.has_last) == (False, True)
    (whole,) = samples(str(tmp_path / "a.parquet"), rows=1000)
    assert whole.complete
    assert whole.cells["number"].to_pylist() == list(range(1000))


def test_long_texts_of_parquet_are_missing(tmp_path: Path) -> None:
    words = pa.array(["a", "z" * 5000] * 10).dictionary_encode()
    pq.write_table(pa.table({"number": range(20), "word": words}), tmp_path / "a.parquet")
    (sample,) = samples(str(tmp_path / "a.parquet"))
    assert sample.cells["word"].to_pylist() == ["a", None] * 10


def test_folders_give_columns_and_many_files_are_thinned(tmp_path: Path) -> None:
    for k in range(100):
        folder = tmp_path / f"word=a%20{k}"
        folder.mkdir()
        pq.write_table(pa.table({"number": [k]}), folder / "x.parquet")
    found = samples(str(tmp_path))
    numbers = [sample.cells["number"][0].as_py() for sample in found]
    assert len(found) == MOST_FILES
    assert (numbers[0], sorted(numbers)[-1]) == (0, 99)
    assert [s.cells["word"].to_pylist() for s in found] == [[f"a {k}"] for k in numbers]


def test_a_database_shows_cells_as_they_are_stored(tmp_path: Path) -> None:
    engine = sa.create_engine(f"sqlite:///{tmp_path}/a.db")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE visits (number REAL, word TEXT, fee TEXT)")
        connection.exec_driver_sql(
            "WITH RECURSIVE n(k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM n WHERE k < 99)"
            " INSERT INTO visits SELECT k, 'w' || k, '1,' || (100 + k) FROM n"
        )
    source = DatabaseTable(url=f"sqlite:///{tmp_path}/a.db", table="visits")
    (sample,) = samples(source, [*COLUMNS, "fee"])
    assert sample.cells.num_rows == 30
    assert sample.cells["number"].type == pa.float64()
    assert sample.cells["fee"][0].as_py() == "1,100"
    assert not sample.complete
    assert samples(source, rows=100)[0].complete


def test_a_delta_table_shows_its_files(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    for k in range(4):
        table = pa.table({"number": range(100 * k, 100 * k + 100), "word": ["a"] * 100})
        deltalake.write_deltalake(str(tmp_path / "t"), table, mode="append", partition_by=["word"])
    (sample,) = samples(str(tmp_path / "t"))
    assert len({number // 100 for number in sample.cells["number"].to_pylist()}) == 3
    assert set(sample.cells["word"].to_pylist()) == {"a"}


def test_errors_name_the_file_alone(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"private")
    with raises(families.FILE, file=str(tmp_path / "a.parquet")):
        samples(str(tmp_path / "a.parquet"))
