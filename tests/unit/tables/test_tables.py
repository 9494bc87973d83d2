"""Reading: every cell is parsed independently of the others, and errors show no values."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tracemalloc
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramercy.common.lattice import Lattice
from gramercy.schemas.column import Column, Levels
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import TableError
from gramercy.schemas.normalisation import Clip, Unit
from gramercy.tables.column_types import column_types
from gramercy.tables.csv_reader import Malformed
from gramercy.tables.lines import BLOCK, RecordLines
from gramercy.tables.normalise import normalise
from gramercy.tables.parquet_guard import memory
from gramercy.tables.read import cells
from gramercy.tables.repair import Repairs, repair
from gramercy.tables.source import open_source
from gramercy.tables.streaming import Accumulated, accumulate
from gramercy.tables.sums import Sum
from gramercy.tables.values import _parsed
from tests.support.factories import at_scale, contract_facts

NAN = float("nan")


def read(path: Path, *names: str) -> tuple[list[list[float]], int]:
    source, malformed = open_source(str(path)), Malformed()
    batches = list(cells(source, dict.fromkeys(names), malformed))
    rows = np.concatenate(batches, axis=1).T.tolist() if batches else []
    return rows, malformed.rows


@pytest.mark.parametrize(
    ("text", "rows", "malformed"),
    [
        (b"a,b\n1,2\n3,4", [[1, 2], [3, 4]], 0),
        (b"a,b\r\n1,2\r\n3, 4 \r\n", [[1, 2], [3, 4]], 0),
        (b"\xef\xbb\xbfa,b\n1,2\n", [[1, 2]], 0),
        (b'"a","b"\n"1","2"\n', [[1, 2]], 0),
        (b'a,x,b\n1,"foo, ""bar""",2\n3,un"quoted,4\n', [[1, 2], [3, 4]], 0),
        (b"a,b\n1,2\n3\n4,5,6\n7,8\n", [[1, 2], [7, 8]], 2),
        (b'a,b\n1,"2\n3,4\n5,6\n', [[3, 4], [5, 6]], 1),
        (b'a,b\n1,"2\n3",4\n5,6\n', [[NAN, 4], [5, 6]], 1),
        (b'a,b\n1,x"y,"z\n3,4\n', [[3, 4]], 1),
        (b"a,b\n1,2\r3,4\n5,6\n", [[5, 6]], 1),
        (b"a,b\n1,x\n,4\nNA,nan\n", [[1, NAN], [NAN, 4], [NAN, NAN]], 0),
        (b"a,b\n1,\xff\xfe\n3,4\n", [[1, NAN], [3, 4]], 0),
        (b"a,b\n1,2\x00\n", [[1, NAN]], 0),
        (b"a,b\n1e400,-1e400\n5e-324,1e308\n", [[np.inf, -np.inf], [5e-324, 1e308]], 0),
        ("a,b\n１,2\n1_0,0x10\n".encode(), [[NAN, 2], [NAN, NAN]], 0),
        (b"a,b\nTrue,1\n", [[NAN, 1]], 0),
        (b"a,b\n", [], 0),
        (b"a,b\n1,2\n\n3,4\n\n", [[1, 2], [3, 4]], 2),
        (b"a,b\r\n\r\n1,2\r\n", [[1, 2]], 1),
        (b"a,b\n1,2,3\n4,\xff\xfe,6\n5,6\n", [[5, 6]], 2),
    ],
    ids=str,
)
def test_csv_cells_and_malformed_lines(
    tmp_path: Path, text: bytes, rows: Any, malformed: int
) -> None:
    (tmp_path / "t.csv").write_bytes(text)
    found, dropped = read(tmp_path / "t.csv", "a", "b")
    np.testing.assert_array_equal(np.array(found).reshape(-1, 2), np.array(rows).reshape(-1, 2))
    assert dropped == malformed
    with gzip.open(tmp_path / "t.csv.gz", "wb") as stream:
        stream.write(text)
    again, _ = read(tmp_path / "t.csv.gz", "a", "b")
    np.testing.assert_array_equal(np.array(again), np.array(found))


LINE = st.text(alphabet='12."x,\r \xff', max_size=12).map(lambda text: text.encode("latin-1"))


@settings(max_examples=200, deadline=None)
@given(before=st.lists(LINE, max_size=4), one=LINE, other=LINE, after=st.lists(LINE, max_size=4))
def test_csv_line_never_affects_other_lines(
    before: list[bytes], one: bytes, other: bytes, after: list[bytes]
) -> None:
    """Other lines are read as they are without it."""

    def kept(lines: list[bytes]) -> list[bytes]:
        stream = io.BytesIO(b"\n".join(lines) + b"\n")
        return RecordLines(stream, lambda _: None).read().split(b"\n")[:-1]

    def alone(line: bytes) -> list[bytes]:
        return kept([line])

    for middle in (one, other):
        lines = [*before, middle, *after]
        assert kept(lines) == [line for each in lines for line in alone(each)]


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(LINE, min_size=1, max_size=8))
def test_each_csv_line_gives_at_most_one_row(
    lines: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Rows read plus rows dropped is the number of lines, so no cell can change the count."""
    file = tmp_path_factory.mktemp("t") / "t.csv"

    def of(some: list[bytes]) -> tuple[list[list[float]], int]:
        file.write_bytes(b"a,b\n" + b"".join(line + b"\n" for line in some))
        return read(file, "a", "b")

    rows, dropped = of(lines)
    assert len(rows) + dropped == len(lines)
    # Each is read as it would be alone.
    alone = [of([line]) for line in lines]
    np.testing.assert_array_equal(rows, [row for found, _ in alone for row in found])
    assert dropped == sum(count for _, count in alone)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, None, 3]), [1, NAN, 3]),
        (pa.array([2**53 + 1, 2**62, None], pa.int64()), [2.0**53, 2.0**62, NAN]),
        (pa.array([True, False, None]), [1, 0, NAN]),
        (pa.array([Decimal("1.25"), None, Decimal("-3.50")]), [1.25, NAN, -3.5]),
        (pa.array([1.5, 1.5, None]).dictionary_encode(), [1.5, 1.5, NAN]),
        (pa.array([1.5, np.inf, None], pa.float32()), [1.5, np.inf, NAN]),
        (pa.nulls(3), [NAN, NAN, NAN]),
    ],
    ids=lambda x: str(getattr(x, "type", "")),
)
def test_parquet_types_become_floats(tmp_path: Path, column: Any, expected: Any) -> None:
    table = pa.table({"z": ["x", "y", "z"], "a": column})
    pq.write_table(table, tmp_path / "t.parquet")
    rows, _ = read(tmp_path / "t.parquet", "a")
    np.testing.assert_array_equal(np.array(rows)[:, 0], np.array(expected))


WORDS = ("a", "b c", "ä", "long " * 20)


def some_texts(rows: int, *, missing: bool) -> list[str | None]:
    rng = np.random.default_rng(5)
    others = ["", "A", " a ", "b c\t", "x" * 5000, " " * 2000 + "a", "long " * 300, "1"]
    pool = [*WORDS, *others, *([None, None] if missing else [])]
    # Runs and single cells, so that every way of packing is used.
    picked = [pool[k] for k in rng.integers(len(pool), size=rows)]
    return [cell for cell in picked for _ in range(int(rng.choice([1, 1, 9])))][:rows]


@pytest.mark.slow
@pytest.mark.parametrize(
    "encoding", ["dictionary", "PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]
)
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("missing", [True, False])
def test_parquet_text_is_independent_of_encoding_and_codec(
    encoding: str, codec: str, version: str, missing: bool, tmp_path: Path
) -> None:
    texts = some_texts(1500, missing=missing)
    schema = pa.schema([pa.field("g", pa.string(), missing), ("k", pa.float64())])
    table = pa.table({"g": texts, "k": np.arange(1500.0)}, schema=schema)
    pq.write_table(
        table,
        tmp_path / "t.parquet",
        compression=codec,
        use_dictionary=encoding == "dictionary",
        column_encoding=None if encoding == "dictionary" else {"g": encoding, "k": "PLAIN"},
        data_page_version=version,
        data_page_size=4096,
        row_group_size=700,
    )
    place = {word: float(k) for k, word in enumerate(WORDS)} | {" a ": 0.0, "b c\t": 1.0}
    # The last level's blanks are no part of it, and a contract takes none that has them.
    levels = {"k": None, "g": tuple(word.strip() for word in WORDS)}
    expected = [place.get(text or "", NAN) for text in texts]
    source = open_source(str(tmp_path / "t.parquet"))
    found = np.concatenate(list(cells(source, levels, Malformed())), axis=1)
    np.testing.assert_array_equal(found, [np.arange(1500.0), expected])


@pytest.mark.parametrize(("name", "limit"), [("g", "_TEXTS"), ("k", "_PAGE")])
def test_oversized_parquet_pages_are_refused(
    name: str, limit: str, tmp_path: Path, monkeypatch: Any
) -> None:
    table = pa.table({"g": ["a" * 50] * 99, "k": np.arange(99.0)})
    pq.write_table(table, tmp_path / "t.parquet", compression="none", use_dictionary=False)
    monkeypatch.setattr(memory, limit, 500)
    with pytest.raises(TableError, match=f"column '{name}' lies in pages of more than"):
        list(cells(open_source(str(tmp_path / "t.parquet")), {"k": None, "g": ("a",)}, Malformed()))


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 999, at_scale(8_000, 40_000)])
@pytest.mark.parametrize("group", [7, 10_000, 1 << 20])
@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"parquet_guard.memory._PAGES": 1, "parquet._SOME": 1},
        {"parquet_guard.memory._BATCH": 1},
    ],
)
def test_columns_read_one_at_a_time_equal_the_table(
    rows: int, group: int, limits: dict[str, int], tmp_path: Path, monkeypatch: Any
) -> None:
    rng = np.random.default_rng(3)
    numbers, texts = rng.normal(size=(5, rows)), rng.choice(["a", "b", "c"], rows)
    table = pa.table({f"c{i}": numbers[i] for i in range(5)}).add_column(2, "g", pa.array(texts))
    if rows == 40_000 and group == 7:
        table = table.slice(0, 100)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=group, data_page_size=1000)
    for name, limit in (limits | {"parquet._BLOCK": 8 * 6 * 3000}).items():
        monkeypatch.setattr(f"gramercy.tables.{name}", limit)
    columns = {"c1": None, "g": ("a", "b"), "c0": None, "c4": None, "c2": None, "c3": None}
    batches = list(cells(open_source(str(tmp_path / "t.parquet")), columns, Malformed()))
    places = np.select([texts == "a", texts == "b"], [0.0, 1.0], NAN)
    expected = np.stack([numbers[1], places, *numbers[[0, 4, 2, 3]]])[:, : table.num_rows]
    np.testing.assert_array_equal(np.concatenate(batches, axis=1), expected)


def packings(text: bytes) -> dict[str, bytes]:
    members = io.BytesIO()
    with zipfile.ZipFile(members, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("t.csv", text)
    half = len(text) // 2
    return {
        "gz": gzip.compress(text),
        "bz2": bz2.compress(text),
        "xz": lzma.compress(text[:half]) + bytes(8) + lzma.compress(text[half:], preset=9),
        "lzma": lzma.compress(text, lzma.FORMAT_ALONE),
        "zip": members.getvalue(),
    }


@pytest.mark.slow
def test_compressed_csv_is_read_and_truncation_refused(tmp_path: Path) -> None:
    lines = "".join(f"{i},{-i}\n" for i in range(60_000))
    for ending, packed in packings(f"a,b\n{lines}".encode()).items():
        file = tmp_path / f"t.csv.{ending}"
        file.write_bytes(packed)
        rows, dropped = read(file, "a", "b")
        assert (len(rows), dropped, rows[-1]) == (60_000, 0, [59_999, -59_999])
        file.write_bytes(packed[: len(packed) // 2])
        with pytest.raises(TableError, match=rf"t\.csv\.{ending}: "):
            read(file, "a", "b")


def test_zip_must_hold_exactly_one_readable_file(tmp_path: Path) -> None:
    for held in ([], ["a.csv", "b.csv"]):
        with zipfile.ZipFile(tmp_path / "t.csv.zip", "w") as packed:
            for name in held:
                packed.writestr(name, "a\n1\n")
        with pytest.raises(TableError, match=r"t\.csv\.zip: is not packed in a way"):
            read(tmp_path / "t.csv.zip", "a")
    with zipfile.ZipFile(tmp_path / "t.csv.zip", "w", zipfile.ZIP_LZMA) as packed:
        packed.writestr("a.csv", "a\n1\n")
    with pytest.raises(TableError, match=r"t\.csv\.zip: is not packed in a way"):
        read(tmp_path / "t.csv.zip", "a")


def test_large_parquet_footer_is_read(tmp_path: Path) -> None:
    table = pa.table({f"column {i}": [float(i)] * 40 for i in range(400)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1)
    file = str(tmp_path / "t.parquet")
    assert len(column_types(open_source(file), file)) == 400
    assert len(read(tmp_path / "t.parquet", "column 0", "column 399")[0]) == 40


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
        column_types(open_source(str(tmp_path / name)), str(tmp_path / name))
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


def test_blank_line_of_single_column_csv_counts_as_malformed(tmp_path: Path) -> None:
    """A missing value alone on its line still counts as a row."""
    (tmp_path / "t.csv").write_text("a\n1\n\n3\n")
    assert read(tmp_path / "t.csv", "a") == ([[1], [3]], 1)


def test_truncated_gzip_error_names_the_file_and_no_value(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "t.csv.gz", "wb") as stream:
        stream.write(b"a,b\n" + b"123.456,2\n" * 100_000)
    whole = (tmp_path / "t.csv.gz").read_bytes()
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TableError, match=r"t\.csv\.gz: cannot be read") as caught:
        read(tmp_path / "t.csv.gz", "a", "b")
    assert "123" not in str(caught.value)


@pytest.mark.parametrize("length", [BLOCK - 2, BLOCK, 3 * BLOCK, 70 << 20])
@pytest.mark.parametrize("ended", [True, False])
def test_lines_over_4_mib_are_dropped_in_bounded_memory(
    tmp_path: Path, length: int, ended: bool
) -> None:
    """A line is read whole up to 4 MiB, and dropped beyond, in bounded memory."""
    with (tmp_path / "t.csv").open("wb") as stream:
        stream.write(b"a,b\n5,6\n" + b"0" * (length - 2) + b",2" + (b"\n3,4\n" if ended else b""))
    tracemalloc.start()
    rows, dropped = read(tmp_path / "t.csv", "a", "b")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    fits = length <= BLOCK
    assert rows == [[5, 6]] + [[0, 2]] * fits + [[3, 4]] * ended
    assert dropped == (not fits)
    assert peak < 12 * BLOCK


def test_many_levels_in_bounded_memory(tmp_path: Path) -> None:
    """A narrow column that becomes a wide matrix is expanded in small batches."""
    (tmp_path / "t.csv").write_text("k\n" + "7\n" * 300_000)
    facts = contract_facts(tmp_path / "t.csv", rows=300_000)
    facts |= {"columns": {"k": {"levels": list(range(100))}}}
    contract = Contract.model_validate(facts | {"budget": {"epsilon": 1.0, "delta": 1e-9}})
    tracemalloc.start()
    sums = accumulate(open_source(contract.source), contract, Unit(), Lattice(100, 12))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sums.rows == 300_000
    assert abs(sums.gram[7, 7] / Lattice(100, 12).divisor - 300_000) < 300
    assert peak < 120 << 20  # all rows at once would be 240 MB, several times over


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_row_count_is_checked_only_under_replace_one(tmp_path: Path, rows: int) -> None:
    file = tmp_path / "t.csv"
    file.write_text("c0,c1,c2\n" + "1,2,3\n" * rows)
    facts = contract_facts(file, rows=1) | {"budget": {"epsilon": 1.0, "delta": 1e-6}}
    contract = Contract.model_validate(facts)
    lattice = Lattice(3, 10)
    source = open_source(str(file))
    if rows == 1:
        assert accumulate(source, contract, Unit(), lattice).rows == 1
    else:
        with pytest.raises(TableError, match=f"has {rows} rows"):
            accumulate(source, contract, Unit(), lattice)
    hidden = contract.model_copy(update={"neighbours": "add-remove"})
    assert accumulate(source, hidden, Unit(), lattice).rows == rows


def test_malformed_rows_count_as_zero_rows(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("c0,c1,c2\n1,2,3\n4,5\n")
    contract = Contract.model_validate(contract_facts(file, rows=2))
    sums = accumulate(open_source(str(file)), contract, Unit(), Lattice(3, 10))
    assert (sums.rows, sums.malformed) == (2, 1)
    assert abs(np.trace(sums.gram) / Lattice(3, 10).divisor - 1) < 0.01


@pytest.mark.parametrize("in_place", [False, True])
def test_byte_order_mark_before_quoted_header_name(tmp_path: Path, in_place: bool) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(b'\xef\xbb\xbf"c0","c,1",c2\n1,2,3\n')
    columns = {name: {"lower": -5.0, "upper": 5.0} for name in ("c0", "c,1", "c2")}
    facts = contract_facts(file, rows=1) | {"columns": columns}
    facts["budget"] = {"epsilon": 1.0, "delta": 1e-6}
    contract = Contract.model_validate(facts)
    sums = accumulate(open_source(str(file)), contract, Unit(), Lattice(3, 10), in_place=in_place)
    assert (sums.rows, sums.malformed) == (1, 0)


def test_sums_of_parts_are_exact_beyond_64_bits() -> None:
    big = Sum(np.array([[1 << 61]], dtype=np.int64), 1)
    beyond = Sum(np.array([[1 << 70]], dtype=object), 1)
    for parts, expected in (((big, big), 1 << 62), ((big, beyond), (1 << 61) + (1 << 70))):
        sums = Accumulated(parts, Repairs.none(1), 0, 2)
        assert sums.gram is not None
        assert int(sums.gram[0, 0]) == expected
    small = Sum(np.array([[5]], dtype=np.int64), 2)
    assert Accumulated((small, small), Repairs.none(1), 0, 4).gram.dtype == np.int64


def test_repair_uses_public_constants() -> None:
    columns = [Column(lower=0, upper=10, centre=4, scale=2), Column(lower=-1, upper=3)]
    repairs = Repairs.none(2)
    cells_ = np.array([[1.0, NAN, np.inf, 99.0], [-5.0, 1.0, 3.0, -np.inf]])
    scaled = repair(cells_, columns, repairs)
    np.testing.assert_array_equal(scaled, [[-1.5, 0, 0, 3], [-1, 0, 1, 0]])
    assert repairs.filled.tolist() == [2, 1]
    assert repairs.clamped.tolist() == [1, 1]


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789+-.eEinfatyNxX_() ", max_size=8))
def test_cell_is_parsed_independently_of_other_cells(cell: str) -> None:
    alone = _parsed(pa.array([cell]))
    assert alone.equals(_parsed(pa.array([cell, "junk"])).slice(0, 1)) or np.isnan(alone[0].as_py())


def test_levels_and_intercept_become_columns(tmp_path: Path) -> None:
    columns = [Levels(levels=("M", "F")), Column(lower=0, upper=4, scale=1), Levels(levels=(0, 2))]
    repairs = Repairs.none(3)
    cells_ = np.array([[1.0, NAN, 0.0], [4.0, 2.0, 0.0], [0.0, 1.0, NAN]])
    spread = repair(cells_, columns, repairs, intercept=True)
    expected = [[1, 1, 1], [0, 0, 1], [1, 0, 0], [2, 0, -2], [1, 0, 0], [0, 1, 0]]
    np.testing.assert_array_equal(spread, expected)
    assert repairs.filled.tolist() == [1, 0, 1]


TEXT_LEVELS = {"s": ("M", "F"), "k": None}
NUMBER_LEVELS = {"s": (0.0, 2.5), "k": None}


@pytest.mark.parametrize(
    ("values", "levels", "places"),
    [
        (["F", " M ", "f", "", None, "M"], TEXT_LEVELS, [1, 0, NAN, NAN, NAN, 0]),
        (pa.array(["F", "M", "x"]).dictionary_encode(), TEXT_LEVELS, [1, 0, NAN]),
        (pa.array(["F", "M"], pa.large_string()), TEXT_LEVELS, [1, 0]),
        ([0, 2, None], NUMBER_LEVELS, [0, NAN, NAN]),
        ([2.5, NAN, 0.0], NUMBER_LEVELS, [1, NAN, 0]),
        ([True, False], NUMBER_LEVELS, [NAN, 0]),
        (["2.50", "0", "zero"], NUMBER_LEVELS, [1, 0, NAN]),
    ],
    ids=str,
)
def test_level_cells_become_level_indices(
    tmp_path: Path, values: Any, levels: Any, places: list[float]
) -> None:
    array = values if isinstance(values, pa.Array) else pa.array(values)
    table = pa.table({"k": pa.nulls(len(array), pa.float64()), "s": array})
    pq.write_table(table, tmp_path / "t.parquet")
    table.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    for name in ("t.parquet", "t.csv"):
        if name == "t.csv" and array.type == pa.bool_():
            continue  # a CSV says True, which is no number
        batches = list(cells(open_source(str(tmp_path / name)), levels, Malformed()))
        np.testing.assert_array_equal(np.concatenate(batches, axis=1)[0], places)


@pytest.mark.parametrize("size", [5e-324, 1e-170, 1.0, 1e200, 1e308])
def test_normalisation_is_accurate_at_every_magnitude(size: float) -> None:
    x = np.array([[1.0], [-1.0], [0.0], [1.0]]) * size
    unit = normalise(x, Unit())
    np.testing.assert_allclose(unit[:, 0], np.array([1, -1, 0, 1]) / np.sqrt(3), rtol=1e-15)
    clipped = normalise(x, Clip(kind="clip", radius=2.0))
    expected = unit if size * np.sqrt(3) > 2 else x / 2
    np.testing.assert_allclose(clipped, expected, rtol=1e-15)


def test_zero_rows_stay_zero() -> None:
    for how in (Unit(), Clip(kind="clip", radius=1.0)):
        assert (normalise(np.zeros((3, 2)), how) == 0).all()
        assert normalise(np.zeros((3, 0)), how).shape == (3, 0)


@pytest.mark.parametrize("rows", [1, 10**4, 10**9, 10**12])
@pytest.mark.parametrize("p", [1, 30, 5000])
@pytest.mark.parametrize("scale", [0.05, 6.0, 1e5])
def test_fitted_lattice_adds_little_error_and_cannot_overflow(
    rows: int, p: int, scale: float
) -> None:
    lattice = Lattice.fitting(p, rows, scale)
    assert 10 <= lattice.bits <= 20
    assert rows * lattice.ball < 1 << 62
    assert scale * lattice.ball < 2.0**56
    finest = lattice.bits == 20 or rows * lattice.ball * 4 >= 1 << 62
    assert finest or rows / 12 / lattice.ball <= scale / 1000
    slow = scale * lattice.ball * 4 >= 2.0**32
    assert finest or slow or 1 / lattice.shrink**2 - 1 <= 1.1e-3
    assert 1 / lattice.shrink**2 - 1 <= 5e-3 or rows * lattice.ball * 4 >= 1 << 62 or scale > 1e3
    # Rounding moves a row of length c 2^K by sqrt(p)/2 at most: it stays in the ball.
    assert lattice.cell + np.sqrt(p) / 2 <= 2.0**lattice.bits


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
    assert [Path(file).name for file in source.files] == ["part-0.parquet", "part-1.csv"] * 2
    assert column_types(source, source.files[0]) == {
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
