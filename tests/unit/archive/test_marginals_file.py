"""marginals.parquet: written and read, and refused if its archive is hostile."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramercy.archive.bundles.number_files import MARGINALS, read_histograms, write_histograms
from gramercy.schemas import families
from gramercy.schemas.evidence import ROW_LENGTHS, Histogram, last_stage
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from tests.support.problems import raises

NAN = np.nan
COLUMNS = (
    ColumnFacts(name="x", lower=0.0, upper=2.0, centre=1.0, scale=1.0),
    LevelsFacts(name="ward", levels=(1.0, 2.5)),
)
STAGES = 2
MIB = 1 << 20


def published() -> list[Histogram]:
    """Two stages of histograms of two columns, and those of row lengths."""
    histograms = []
    for stage in (1, 2):
        numbers = Histogram(
            stage,
            "x",
            np.array([0.0, 1.0, NAN]),
            np.array([1.0, 2.0, NAN]),
            (None,) * 3,
            np.array([12, -3, 4]),
            5.5,
        )
        levels = replace(numbers, column="ward", lower=np.full(3, NAN), upper=np.full(3, NAN))
        histograms += [numbers, replace(levels, level=("1", "2.5", None))]
    lengths = np.array([1.0, 1.5, NAN])
    return [
        *histograms,
        Histogram(3, ROW_LENGTHS, lengths[:2], lengths[1:], (None, None), np.array([1, 9]), 2.0),
    ]


def assert_equal(read: tuple[Histogram, ...], written: list[Histogram]) -> None:
    assert len(read) == len(written)
    for one, other in zip(read, written, strict=True):
        assert (one.stage, one.column, one.level) == (other.stage, other.column, other.level)
        for name in ("lower", "upper", "count", "sd"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert one.count.dtype == np.int64


def test_histograms_are_read_as_written(tmp_path: Path) -> None:
    write_histograms(tmp_path, published())
    read = read_histograms(tmp_path, COLUMNS, STAGES)
    assert_equal(read, published())
    assert_equal(last_stage(read), published()[2:4])
    assert last_stage(()) == ()


def test_column_may_have_the_name_of_row_lengths(tmp_path: Path) -> None:
    named = [replace(h, column=ROW_LENGTHS) if h.column == "x" else h for h in published()]
    write_histograms(tmp_path, named)
    columns = (COLUMNS[0].model_copy(update={"name": ROW_LENGTHS}), COLUMNS[1])
    assert_equal(read_histograms(tmp_path, columns, STAGES), named)


def change(place: int, **facts: Any) -> Callable[[list[Histogram]], list[Histogram]]:
    """Change one of the histograms."""

    def changed(histograms: list[Histogram]) -> list[Histogram]:
        histograms[place] = replace(histograms[place], **facts)
        return histograms

    return changed


def bins(lower: list[float], upper: list[float]) -> Callable[[list[Histogram]], list[Histogram]]:
    return change(0, lower=np.array(lower), upper=np.array(upper))


HOSTILE: dict[str, Callable[[list[Histogram]], list[Histogram]]] = {
    "another column": change(0, column="\x1b]0;owned\x07"),
    "another level": change(1, level=("1", "\x1b[2J", None)),
    "a level of a number": change(0, level=("1", None, None)),
    "a stage less": lambda all_: all_[2:],
    "a negative stage": change(0, stage=-1),
    "a stage more": lambda all_: [*all_[:4], *[replace(h, stage=3) for h in all_[2:4]], *all_[4:]],
    "columns in another order": lambda all_: [all_[1], all_[0], *all_[2:]],
    "no row lengths": lambda all_: all_[:-1],
    "no noise": change(0, sd=0.0),
    "negative noise": change(0, sd=-1.0),
    "unknown noise": change(0, sd=NAN),
    "infinite noise": change(0, sd=np.inf),
    "a huge count": change(0, count=np.array([1 << 60, 0, 0])),
    "decreasing edges": bins([1.0, 0.0, NAN], [0.0, 2.0, NAN]),
    "equal edges": bins([1.0, 1.0, NAN], [1.0, 2.0, NAN]),
    "a gap": bins([0.0, 1.5, NAN], [1.0, 2.0, NAN]),
    "an infinite edge": bins([0.0, 1.0, NAN], [1.0, np.inf, NAN]),
    "an unknown edge": bins([NAN, 1.0, NAN], [1.0, 2.0, NAN]),
    "no bin of missing cells": bins([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]),
    "bounds of levels": change(1, lower=np.zeros(3)),
    "limited row lengths": change(4, upper=np.array([1.5, 2.0])),
    "row lengths of two stages": change(4, stage=2),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_other_histograms_are_refused(name: str, tmp_path: Path) -> None:
    write_histograms(tmp_path, HOSTILE[name](published()))
    with raises(families.CONTENT):
        read_histograms(tmp_path, COLUMNS, STAGES)


def rewritten(folder: Path, change: Callable[[pa.Table], pa.Table], **options: Any) -> None:
    """Write the file again as another program would."""
    write_histograms(folder, published())
    table = change(pq.read_table(folder / MARGINALS))
    options = {"compression": "none", "store_schema": False} | options
    pq.write_table(table, folder / MARGINALS, **options)


def repeated(table: pa.Table, rows: int = 2_000_000) -> pa.Table:
    """The first row many times, which takes a few bytes in the file."""
    return table.take(pa.array(np.zeros(rows, np.int64)))


def long_texts(table: pa.Table) -> pa.Table:
    """A long text that is stored once and used in every row."""
    text = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(table.num_rows, np.int32)), pa.array(["x" * (MIB // 2)])
    )
    return table.set_column(1, "column", text)


OTHER_FILES: dict[str, tuple[Callable[[pa.Table], pa.Table], dict[str, Any]]] = {
    "compressed texts": (long_texts, {"compression": "zstd", "use_dictionary": False}),
    "a column less": (lambda table: table.drop_columns(["sd"]), {}),
    "a column more": (lambda table: table.append_column("more", table["sd"]), {}),
    "another type": (lambda table: table.cast(_as_float(table.schema)), {}),
    "missing counts": (lambda table: table.set_column(5, "count", _nulls(table)), {}),
    "differing noise": (lambda table: table.set_column(6, "sd", _growing(table)), {}),
    "very many rows": (repeated, {}),
    "very many row groups": (lambda table: repeated(table, 500), {"row_group_size": 1}),
    "long texts": (long_texts, {}),
    "differences of texts": (
        long_texts,
        {"use_dictionary": False, "column_encoding": {"column": "DELTA_BYTE_ARRAY"}},
    ),
}


def _as_float(schema: pa.Schema) -> pa.Schema:
    return schema.set(5, pa.field("count", pa.float64()))


def _nulls(table: pa.Table) -> pa.Array:
    return pa.array([None] * table.num_rows, pa.int64())


def _growing(table: pa.Table) -> pa.Array:
    return pa.array(np.arange(1.0, table.num_rows + 1))


@pytest.mark.parametrize("name", OTHER_FILES)
def test_other_files_are_refused_in_little_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, options = OTHER_FILES[name]
    rewritten(tmp_path, change, **options)
    assert (tmp_path / MARGINALS).stat().st_size < MIB
    pool = pa.default_memory_pool()
    before, largest = pool.bytes_allocated(), []
    real = pq.ParquetFile.read

    def read(file: pq.ParquetFile, **keys: Any) -> pa.Table:
        table = real(file, **keys)
        largest.append(pool.bytes_allocated() - before)
        return table

    monkeypatch.setattr(pq.ParquetFile, "read", read)
    with raises(families.CONTENT):
        read_histograms(tmp_path, COLUMNS, STAGES)
    assert sum(largest) < 4 * MIB


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    pd.DataFrame({"a": [1]}).to_parquet(stream)
    for content in (b"", b"PAR1", stream.getvalue()[:-9], b"x" * (2 * MIB)):
        (tmp_path / MARGINALS).write_bytes(content)
        with raises(families.CONTENT, path=str(tmp_path / MARGINALS)):
            read_histograms(tmp_path, COLUMNS, STAGES)
    (tmp_path / MARGINALS).unlink()
    with raises(families.CONTENT):
        read_histograms(tmp_path, COLUMNS, STAGES)
