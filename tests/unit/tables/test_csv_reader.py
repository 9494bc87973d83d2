"""CSV: every line and cell is parsed independently of the others, compressed or not."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import threading
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramercy.common.lattice import Lattice
from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from gramercy.schemas.normalisation import Unit
from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats.lines import BLOCK, Records
from gramercy.tables.formats.reader import cell_batches
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums.streaming import accumulate
from tests.support.factories import contract_facts
from tests.support.problems import raises
from tests.support.source_tables import read, records_of

NAN = float("nan")


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
    cells, dropped = read(tmp_path / "t.csv", "a", "b")
    np.testing.assert_array_equal(np.array(cells).reshape(-1, 2), np.array(rows).reshape(-1, 2))
    assert dropped == malformed
    with gzip.open(tmp_path / "t.csv.gz", "wb") as stream:
        stream.write(text)
    again, _ = read(tmp_path / "t.csv.gz", "a", "b")
    np.testing.assert_array_equal(np.array(again), np.array(cells))


LINE = st.text(alphabet='12."x,\r \xff', max_size=12).map(lambda text: text.encode("latin-1"))


@pytest.mark.slow
@given(before=st.lists(LINE, max_size=4), first=LINE, second=LINE, after=st.lists(LINE, max_size=4))
def test_csv_line_never_affects_other_lines(
    before: list[bytes], first: bytes, second: bytes, after: list[bytes]
) -> None:
    """Other lines are read the same with and without it."""

    def kept(lines: list[bytes]) -> list[bytes]:
        stream = io.BytesIO(b"\n".join(lines) + b"\n")
        return records_of(Records(), stream)

    def alone(line: bytes) -> list[bytes]:
        return kept([line])

    for middle in (first, second):
        lines = [*before, middle, *after]
        assert kept(lines) == [line for other in lines for line in alone(other)]


@pytest.mark.slow
@given(lines=st.lists(LINE, min_size=1, max_size=8))
def test_each_csv_line_gives_at_most_one_row(
    lines: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Rows read plus rows dropped is the number of lines, so no cell can change the count."""
    file = tmp_path_factory.mktemp("t") / "t.csv"

    def read_lines(lines: list[bytes]) -> tuple[list[list[float]], int]:
        file.write_bytes(b"a,b\n" + b"".join(line + b"\n" for line in lines))
        return read(file, "a", "b")

    rows, dropped = read_lines(lines)
    assert len(rows) + dropped == len(lines)
    # Each line gives the same rows as in a file that has no other line.
    alone = [read_lines([line]) for line in lines]
    np.testing.assert_array_equal(rows, [row for cells, _ in alone for row in cells])
    assert dropped == sum(count for _, count in alone)


def compressed(text: bytes) -> dict[str, bytes]:
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
    for ending, packed in compressed(f"a,b\n{lines}".encode()).items():
        file = tmp_path / f"t.csv.{ending}"
        file.write_bytes(packed)
        rows, dropped = read(file, "a", "b")
        assert (len(rows), dropped, rows[-1]) == (60_000, 0, [59_999, -59_999])
        file.write_bytes(packed[: len(packed) // 2])
        with raises(families.FILE, file=str(file), format="CSV"):
            read(file, "a", "b")


def test_zip_must_hold_exactly_one_readable_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.zip"
    for names, method in (
        ([], zipfile.ZIP_STORED),
        (["a.csv", "b.csv"], zipfile.ZIP_STORED),
        (["a.csv"], zipfile.ZIP_LZMA),
    ):
        with zipfile.ZipFile(path, "w", method) as packed:
            for name in names:
                packed.writestr(name, "a\n1\n")
        with raises(families.FILE, file=str(path)):
            read(path, "a")


def test_blank_line_of_single_column_csv_counts_as_malformed(tmp_path: Path) -> None:
    """A missing value alone on its line still counts as a row."""
    (tmp_path / "t.csv").write_text("a\n1\n\n3\n")
    assert read(tmp_path / "t.csv", "a") == ([[1], [3]], 1)


@pytest.mark.slow
@pytest.mark.parametrize("length", [BLOCK - 2, BLOCK, 3 * BLOCK, 70 << 20])
@pytest.mark.parametrize("ended", [True, False])
def test_lines_over_4_mib_are_dropped_in_bounded_memory(
    tmp_path: Path, length: int, ended: bool
) -> None:
    """A line of up to 4 MiB is read; a longer one is dropped, in bounded memory."""
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


@pytest.mark.parametrize("keep_malformed", [False, True])
def test_byte_order_mark_before_quoted_header_name(tmp_path: Path, keep_malformed: bool) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(b'\xef\xbb\xbf"c0","c,1",c2\n1,2,3\n')
    columns = {name: {"lower": -5.0, "upper": 5.0} for name in ("c0", "c,1", "c2")}
    facts = contract_facts(file, rows=1) | {"columns": columns}
    facts["budget"] = {"epsilon": 1.0, "delta": 1e-6}
    contract = Contract.model_validate(facts)
    sums = accumulate(
        open_source(str(file)), contract, Unit(), Lattice(3, 10), keep_malformed=keep_malformed
    )
    assert (sums.rows, sums.malformed) == (1, 0)


@pytest.mark.slow
@pytest.mark.parametrize("batches", [1, pytest.param(100, marks=pytest.mark.slow)])
def test_threads_end_with_the_reading(batches: int, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n3\n" * 1_000_000)
    before = threading.active_count()
    reading = cell_batches(open_source(str(path)), {"a": None}, MalformedLines())
    for _ in zip(range(batches), reading, strict=False):
        pass
    reading.close()
    assert threading.active_count() == before


CELL = st.one_of(
    st.floats(width=64).map(repr),
    st.floats(width=64).map("{:.25g}".format),
    st.from_regex(
        r"[ \t]{0,2}[+-]?[0-9]{0,25}\.?[0-9]{0,25}([eE][+-]?[0-9]{1,4})?[ \t\x0b]?", fullmatch=True
    ),
    st.sampled_from(
        ["nan", "NaN", "-inf", "Infinity", "nan(12)", "NA", "", " ", "0x1p3", "1_0", "1e"]
    ),
)


@pytest.mark.slow
@given(cells=st.lists(CELL, min_size=1, max_size=5), quoted=st.booleans())
def test_a_cell_that_is_not_a_number_changes_no_other_cell(
    cells: list[str], quoted: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With it, the block is read as text: every other cell must become the same number."""
    file = tmp_path_factory.mktemp("t") / "t.csv"
    lines = [f'"{cell}",1' if quoted else f"{cell},1" for cell in cells]
    found = []
    for last in ("2,2", "x,2"):
        file.write_text("\n".join(["a,b", *lines, last]) + "\n")
        source, columns = open_source(str(file)), {"a": None, "b": None}
        batches = cell_batches(source, columns, MalformedLines(), keep_malformed=True)
        found.append(np.concatenate(list(batches), axis=1)[:, :-1])
    np.testing.assert_array_equal(found[0].view(np.int64), found[1].view(np.int64))


@pytest.mark.parametrize("keep_malformed", [False, True])
@pytest.mark.parametrize("before", [0, 1, 5, 6, 7, 40])
@pytest.mark.parametrize("cell", ['"x', "5", '"5"', "", '\ufeff"x'])
def test_byte_order_mark_in_a_cell_changes_no_other_row(
    cell: str, before: int, keep_malformed: bool, tmp_path: Path
) -> None:
    """Wherever the row is: first in the file, in a block, or after a malformed line."""
    path = tmp_path / "t.csv"

    def rows(line: str) -> list[list[float]]:
        lines = ["a,b", *before * ["1,2"], line, "3,4", "5", '"7",8', "9,9"]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        malformed, columns = MalformedLines(), {"a": None, "b": None}
        source = open_source(str(path))
        with (
            patch("gramercy.tables.formats.lines.BLOCK", 16),
            patch("gramercy.tables.formats.csv_format.BLOCK", 16),
        ):
            batches = list(cell_batches(source, columns, malformed, keep_malformed=keep_malformed))
        assert malformed.dropped + malformed.kept == 1
        return np.concatenate(batches, axis=1).T.tolist()  # type: ignore[no-any-return]

    plain = rows("6,6")
    found = rows(f"\ufeff{cell},1")
    plain[before] = found[before] = []
    np.testing.assert_equal(found, plain)
