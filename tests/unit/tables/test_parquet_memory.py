"""The rows that are read at once: their texts fit into memory, for any pages."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramercy.common.parquet.dictionary_pages import longest_text
from gramercy.common.parquet.page_headers import DICTIONARY, Page, pages
from gramercy.tables import parquet_memory, parquet_reader
from gramercy.tables.csv_reader import MalformedLines
from gramercy.tables.parquet_memory import StoredColumn, stored_columns
from gramercy.tables.persons import Persons
from gramercy.tables.reader import cell_batches
from gramercy.tables.source import open_source


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 40)), max_size=12))
def test_rows_touch_pages_of_bounded_size(stored: list[tuple[int, int]]) -> None:
    """Compared with all windows of rows, over pages of (rows, bytes)."""
    limit = 60
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_memory, "_BATCH", limit)
        text_rows = parquet_memory._TextRows()
        for page in stored:
            text_rows.add(*page)
    page_of_row = [k for k, (rows, _) in enumerate(stored) for _ in range(rows)]
    for rows in range(1, len(page_of_row) + 1):
        if rows <= text_rows.fewest:
            windows = (page_of_row[start:][:rows] for start in range(len(page_of_row) - rows + 1))
            assert all(sum(stored[k][1] for k in set(window)) <= limit for window in windows)
    assert text_rows.fewest >= 1


def dictionary_page(path: Path) -> tuple[io.BytesIO, Page]:
    stream = io.BytesIO(path.read_bytes())
    (page, *_) = pages(stream, pq.ParquetFile(path).metadata.row_group(0).column(0))
    assert page.kind == DICTIONARY
    return stream, page


@pytest.mark.parametrize("codec", ["UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "BROTLI", "LZ4"])
@pytest.mark.parametrize(
    "texts",
    [["a", "bcd", ""], ["é" * 500, "b"], [""], [None, "x"], ["ab", "cd", "ef"], ["a", "bc", "def"]],
)
def test_longest_text_of_a_dictionary(texts: list[str | None], codec: str, tmp_path: Path) -> None:
    table = pa.table({"g": texts * 3})
    pq.write_table(table, tmp_path / "t.parquet", compression=codec.replace("UNCOMPRESSED", "NONE"))
    stream, page = dictionary_page(tmp_path / "t.parquet")
    longest = max(len(text.encode()) for text in texts if text is not None)
    assert longest_text(stream, page, codec) == (page.size if codec == "LZ4" else longest)


def test_damaged_dictionary_counts_as_one_text(tmp_path: Path) -> None:
    for codec in ("NONE", "SNAPPY"):
        table = pa.table({"g": ["abc", "de"]})
        pq.write_table(table, tmp_path / "t.parquet", compression=codec)
        stream, page = dictionary_page(tmp_path / "t.parquet")
        stream.getbuffer()[page.offset : page.offset + 4] = b"\xff\xff\xff\x7f"
        assert longest_text(stream, page, codec.replace("NONE", "UNCOMPRESSED")) == page.size
    stream.truncate(page.offset)
    assert longest_text(stream, page, "UNCOMPRESSED") == page.size


def mixed(path: Path, rows: int = 3000) -> list[str]:
    """A column whose first names are in a dictionary, and the others are not."""
    names = [f"person-{k % 700}" for k in range(rows)]
    numbers = {f"c{k}": np.arange(rows) + k / 10 for k in range(3)}
    pq.write_table(
        pa.table({"who": names} | numbers),
        path,
        dictionary_pagesize_limit=2000,
        data_page_size=500,
        write_batch_size=50,
    )
    return names


def described(path: Path) -> StoredColumn:
    with path.open("rb") as stream:
        table = pq.ParquetFile(path)
        (column,) = stored_columns(stream, table, "t", {"who": Persons()}, [0])
    return column


def test_text_stays_encoded_only_where_a_dictionary_may_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed(tmp_path / "t.parquet")
    column = described(tmp_path / "t.parquet")
    assert (column.fully_encoded, column.longest_repeated) == (False, len("person-100"))
    assert not column.stays_encoded(1000)
    assert column.rows_at_once(1000) == 1000
    monkeypatch.setattr(parquet_memory, "_BATCH", 9999)
    assert column.stays_encoded(1000)
    pq.write_table(pa.table({"who": ["a", "b"]}), tmp_path / "t.parquet")
    assert described(tmp_path / "t.parquet").stays_encoded(1)
    pq.write_table(pa.table({"who": ["a", "b"]}), tmp_path / "t.parquet", use_dictionary=False)
    assert not described(tmp_path / "t.parquet").stays_encoded(1 << 40)


@pytest.mark.parametrize("limit", [1, 3000, 20_000, 64 << 20])
@pytest.mark.parametrize("first", [True, False])
def test_batches_have_bounded_texts_and_equal_the_table(
    first: bool, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small limits separate the names from the numbers, whose batches stay long."""
    names = mixed(tmp_path / "t.parquet")
    monkeypatch.setattr(parquet_memory, "_BATCH", limit)
    read: dict[str, set[int]] = {"who": set(), "c0": set()}
    to_floats = parquet_reader.to_floats

    def recorded(column: pa.Array, coding: Any) -> Any:
        read["c0" if coding is None else "who"].add(len(column))
        return to_floats(column, coding)

    monkeypatch.setattr(parquet_reader, "to_floats", recorded)
    monkeypatch.setattr(parquet_reader, "BATCH_CELLS", 4 * 1000)
    persons = Persons()
    numbers: dict[str, Any] = dict.fromkeys(["c0", "c1", "c2"])
    columns = {"who": persons} | numbers if first else numbers | {"who": persons}
    source = open_source(str(tmp_path / "t.parquet"))
    cells = np.concatenate(list(cell_batches(source, columns, MalformedLines())), axis=1)
    who = cells[0 if first else -1].astype(int)
    assert [persons.names[k] for k in who] == names
    np.testing.assert_array_equal(cells[1 if first else 0], np.arange(3000.0))
    assert read["c0"] == {1000}
    assert max(read["who"]) <= described(tmp_path / "t.parquet").rows_at_once(1000)
    assert persons.names == list(itertools.islice(dict.fromkeys(names), 700))
