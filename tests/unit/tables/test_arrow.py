"""Arrow IPC files: the same integers as Parquet, in bounded memory."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramercy.common.lattice import Lattice
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import TableError
from gramercy.schemas.normalisation import Unit
from gramercy.schemas.problems import source as problems
from gramercy.schemas.problems.table import column_repeated, file_not_readable
from gramercy.tables import arrow_reader
from gramercy.tables.arrow_footer import MemoryLimitError, buffers_of, memory_needed
from gramercy.tables.column_types import column_types
from gramercy.tables.csv_reader import MalformedLines
from gramercy.tables.reader import cell_batches, partitions
from gramercy.tables.source import open_source
from gramercy.tables.streaming import accumulate
from tests.support.factories import contract_facts
from tests.support.problems import raises
from tests.support.table_reading import read

CODECS = [None, "lz4", "zstd"]
COLUMNS: dict[str, Any] = {
    "x": {"lower": -9.0, "upper": 9.0},
    "n": {"lower": -1e18, "upper": 1e18},
    "ward": {"levels": ["A", "B"]},
    "kind": {"levels": ["A", "B"]},
    "flag": {"levels": [0, 1]},
}


def table(rows: int = 500) -> pa.Table:
    rng = np.random.default_rng(3)
    wards = rng.choice(["A", "B", "x"], rows)
    return pa.table(
        {
            "other": [None] * rows,
            "flag": pa.array(rng.random(rows) < 0.5, mask=rng.random(rows) < 0.1),
            "x": pa.array(rng.normal(size=rows) * 9, mask=rng.random(rows) < 0.1),
            "n": rng.integers(-(2**62), 2**62, rows),
            "ward": pa.array(wards, pa.large_string(), mask=rng.random(rows) < 0.1),
            "kind": pa.array(wards).dictionary_encode(),
        }
    )


def write(path: Path, data: pa.Table, codec: str | None = None, rows: int = 70) -> Path:
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_file(str(path), data.schema, options=options) as writer:
        writer.write_table(data, max_chunksize=rows)
    return path


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("ending", ["feather", "arrow", "ipc"])
def test_integers_equal_those_of_parquet(ending: str, codec: str | None, tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "t.parquet")
    path = write(tmp_path / f"t.{ending}", table(), codec)
    grams = []
    for source in (tmp_path / "t.parquet", path):
        facts = {"source": str(source), "rows": 500, "columns": COLUMNS}
        contract = Contract.model_validate(contract_facts() | facts)
        opened = open_source(contract.source)
        assert [len(part.files) for part in partitions(opened, 1)]
        grams.append(accumulate(opened, contract, Unit(), Lattice.fitting(8, 500, 1.0)).gram)
    np.testing.assert_array_equal(*grams)
    assert column_types(*open_source(str(path)).files) == {
        **{"other": "any", "flag": "double", "x": "double", "n": "whole"},
        **{"ward": "text", "kind": "text"},
    }


@pytest.mark.slow
def test_a_batch_that_is_too_large_is_refused_before_it_is_decompressed(tmp_path: Path) -> None:
    """400 MB of zeros in a small file; the same rows in smaller batches are read."""
    zeros = pa.table({"x": np.zeros(50_000_000)})
    path = write(tmp_path / "t.feather", zeros, "zstd", rows=50_000_000)
    assert path.stat().st_size < 1_000_000
    with raises(problems.batch_too_large, file=str(path)):
        read(path, "x")
    write(path, zeros.slice(0, 300_000), "zstd", rows=100_000)
    assert len(read(path, "x")[0]) == 300_000


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("columns", [["x"], ["ward", "flag"], ["kind"], ["other"], []])
def test_memory_is_that_of_dictionaries_and_declared_columns(
    codec: str | None, columns: list[str], tmp_path: Path
) -> None:
    path = write(tmp_path / "t.arrow", table(1000), codec, rows=600)
    with pa.OSFile(str(path)) as stream, pa.ipc.open_file(str(path)) as opened:
        needed = memory_needed(stream, buffers_of(opened.schema, columns))
        batch = opened.get_batch(0)
    in_memory = sum(batch.column(name).nbytes for name in columns if name != "kind")
    in_memory += batch.column("kind").dictionary.nbytes
    in_memory += batch.column("kind").indices.nbytes * ("kind" in columns)
    assert in_memory <= needed <= 3 * in_memory + 1000


def test_positions_of_buffers_are_those_of_every_type() -> None:
    """Each column's buffers are found behind columns of any other type."""
    fixed = [pa.null(), pa.bool_(), pa.decimal128(9), pa.binary(3), pa.date32(), pa.float16()]
    texts = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]
    nested = [pa.list_(kind) for kind in (pa.string(), pa.null(), pa.int8())] + [
        pa.list_(pa.string(), 2),
        pa.large_list(pa.float64()),
        pa.map_(pa.string(), pa.struct([("a", pa.int8()), ("b", pa.list_(pa.date64()))])),
        pa.struct([]),
        pa.month_day_nano_interval(),
        pa.dictionary(pa.int8(), pa.list_(pa.string())),
        pa.uuid(),
    ]
    for kind in [*fixed, *texts, *nested]:
        schema = pa.schema([("a", kind), ("x", pa.float64())])
        data = pa.table([pa.nulls(1000, kind), pa.array(np.ones(1000))], schema=schema)
        stream = io.BytesIO()
        with pa.ipc.new_file(stream, schema) as writer:
            writer.write_table(data)
        outer = buffers_of(schema, ["a"])
        inner = buffers_of(schema, ["x"])
        assert outer is not None
        assert inner is not None
        assert sorted(outer | inner) == list(range(len(outer) + 2))
        dictionaries = memory_needed(stream, ())
        assert 8000 <= memory_needed(stream, inner) - dictionaries <= 8200
        assert memory_needed(stream, outer | inner) == memory_needed(stream)
    for kind in (pa.string_view(), pa.run_end_encoded(pa.int32(), pa.int8())):
        assert buffers_of(pa.schema([("a", kind), ("x", pa.float64())]), ["x"]) is None


def test_cells_of_other_columns_do_not_refuse_a_table(tmp_path: Path, monkeypatch: Any) -> None:
    """Otherwise a long text in a column that is not published would decide about a release."""
    monkeypatch.setattr(arrow_reader, "_MAX_MEMORY", 1 << 20)
    path, notes = tmp_path / "t.arrow", ["y" * 5000] * 300
    write(path, pa.table({"note": notes, "x": np.arange(300.0)}), rows=300)
    assert len(read(path, "x")[0]) == 300
    with raises(problems.batch_too_large, file=str(path)):
        read(path, "note")


def test_the_sum_of_all_dictionaries_is_bounded(tmp_path: Path, monkeypatch: Any) -> None:
    """Arrow loads them together, also those of other columns."""
    monkeypatch.setattr(arrow_reader, "_MAX_MEMORY", 1 << 20)
    path = tmp_path / "t.arrow"
    levels = pa.array([f"{k:05}" + "y" * 5000 for k in range(50)]).dictionary_encode()
    for count in (3, 6):
        write(path, pa.table({"x": np.ones(50), **{str(k): levels for k in range(count)}}))
        if count == 3:
            assert len(read(path, "x")[0]) == 50
    with raises(problems.batch_too_large, file=str(path)):
        read(path, "x")


def test_texts_out_of_their_buffers_are_refused(tmp_path: Path) -> None:
    """Arrow trusts offsets, and would read foreign memory."""
    path = write(tmp_path / "t.arrow", pa.table({"ward": ["AAAAA", "BBB"]}))
    valid, stored = struct.pack("<3i", 0, 5, 8), path.read_bytes()
    assert stored.count(valid) == 1
    for offsets in ((0, 9999, 8), (0, 8, 5), (-5, 5, 8), (0, 5, 9999)):
        path.write_bytes(stored.replace(valid, struct.pack("<3i", *offsets)))
        source, levels = open_source(str(path)), {"ward": ("A", "B")}
        with raises(file_not_readable, format="Arrow IPC"):
            list(cell_batches(source, levels, MalformedLines()))


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_damaged_file_is_read_or_refused(data: st.DataObject) -> None:
    """Any byte may be wrong: the result is an error of the table, or rows."""
    stream = io.BytesIO()
    with pa.ipc.new_file(stream, table(40).schema) as writer:
        writer.write_table(table(40))
    damaged = bytearray(stream.getvalue())
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert memory_needed(io.BytesIO(bytes(damaged))) >= 0
    except Exception as error:
        assert isinstance(error, ARROW_ERRORS)


ARROW_ERRORS = (ValueError, struct.error, MemoryLimitError, IndexError, OSError)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "t.feather"
    twice = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], ["x", "x"])
    write(path, twice)
    with raises(column_repeated, first=1, second=2):
        column_types(*open_source(str(path)).files)
    with pytest.raises(TableError):
        read(path, "x")
    write(path, pa.table({"y": [1.0]}))
    with raises(file_not_readable):
        read(path, "x")
    whole = path.read_bytes()
    for content in (b"", b"ARROW1", whole[: len(whole) // 2], b"x" * 500):
        path.write_bytes(content)
        with raises(file_not_readable):
            read(path, "y")
        with raises(file_not_readable):
            column_types(*open_source(str(path)).files)
