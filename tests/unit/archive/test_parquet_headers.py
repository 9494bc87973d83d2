"""Footers and page headers of strangers' Parquet files: what would need much memory is refused."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramercy.archive.bundles import parquet_limits
from gramercy.archive.bundles.parquet_limits import check_footer, pages
from tests.acceptance.hostile.parquet_builder import (
    Writer,
    i32,
    i64,
    plain,
    schema,
    structs,
    text,
    thrift,
)

COLUMNS = [plain("c0", [2.0]), plain("c1", [5.0])]


def written() -> Writer:
    writer = Writer()
    writer.group(COLUMNS, 1)
    return writer


def many_row_groups() -> bytes:
    writer = written()
    groups = structs([thrift(writer.groups[0])] * 20_000)
    return writer.footer(schema(COLUMNS), fields={4: groups})


def columns_of_three_bytes() -> bytes:
    """Chunks of three bytes each, and of nearly a kilobyte in memory."""
    group = thrift({1: structs([thrift({2: i64(0)})] * 4000), 2: i64(1), 3: i64(1)})
    return written().footer(schema(COLUMNS), fields={4: structs([group] * 120)})


def columns_in_columns() -> bytes:
    root: dict[int, Any] = {4: text("schema"), 5: i32(3)}
    nested = thrift({3: i32(0), 4: text("n"), 5: i32(1)})
    leaf: dict[int, Any] = {1: i32(5), 3: i32(0), 4: text("x")}
    return written().footer([root, *schema(COLUMNS)[1:], *[nested] * 100_000, leaf])


def many_fields() -> bytes:
    fields = {number: i32(0) for number in range(1, 100_000)}
    return written().footer([*schema(COLUMNS), thrift(fields)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [many_row_groups, columns_of_three_bytes, columns_in_columns, many_fields],
)
def test_footers_that_need_much_memory_are_refused(
    make: Callable[[], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_limits, "_FOOTER", 32 << 20)
    with pytest.raises(ValueError) as refused:  # noqa: PT011  without a text
        check_footer(io.BytesIO(make()))
    assert not str(refused.value)


@pytest.mark.slow
def test_footers_of_many_columns_and_row_groups_are_accepted(tmp_path: Path) -> None:
    table = pa.table({f"column {i}": [float(i)] * 10 for i in range(400)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1)
    with (tmp_path / "t.parquet").open("rb") as stream:
        check_footer(stream)
        stream.seek(0)
        assert pq.read_metadata(stream).serialized_size > 1 << 17


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
def test_page_headers_state_what_was_written(version: str, codec: str, tmp_path: Path) -> None:
    options = {"compression": codec, "data_page_version": version, "data_page_size": 4096}
    table = pa.table({"x": np.arange(5000.0)})
    pq.write_table(table, tmp_path / "t.parquet", use_dictionary=False, **options)
    chunk = pq.read_metadata(tmp_path / "t.parquet").row_group(0).column(0)
    with (tmp_path / "t.parquet").open("rb") as stream:
        found = list(pages(stream, chunk))
    assert len(found) > 1
    assert sum(page.values for page in found) == 5000
    assert {page.encoding for page in found} == {0}
    headers = chunk.total_uncompressed_size - sum(page.size for page in found)
    assert chunk.total_compressed_size - sum(page.compressed_size for page in found) == headers
    assert 0 < headers < 200 * len(found)
