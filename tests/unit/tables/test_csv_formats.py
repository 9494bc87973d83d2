"""Separators, decimal marks and encodings of CSV: the same integers, and lines stay apart."""

from __future__ import annotations

import gzip
import io
import itertools
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gramercy.schemas import families
from gramercy.schemas.source import CsvFormat, Encoding, Files
from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats.byte_streams import as_utf8
from gramercy.tables.formats.first_lines import detect_format
from gramercy.tables.formats.lines import BLOCK, Records
from gramercy.tables.formats.reader import cell_batches, schema_of
from gramercy.tables.formats.source import open_source
from tests.support.problems import raises
from tests.support.source_tables import records_of

NAN = float("nan")
ENCODINGS = get_args(Encoding)
FORMAT: dict[str, Any] = {"separator": ";"}


def read(
    path: Path, columns: Any, *, keep_malformed: bool = False, **keys: str
) -> tuple[list[list[float]], int]:
    """The rows of a file, and the number of malformed lines."""
    source = open_source(Files.model_validate({"path": str(path), **keys}))
    malformed = MalformedLines()
    batches = cell_batches(source, columns, malformed, keep_malformed=keep_malformed)
    rows = np.concatenate([np.empty((len(columns), 0)), *batches], axis=1).T
    return rows.tolist(), malformed.dropped + malformed.kept


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_rows_equal_those_of_parquet_in_every_format(encoding: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    wards = ["A", "Ö", "x"] if encoding != "cp1251" else ["A", "Б", "x"]
    name = "größe" if encoding != "cp1251" else "рост"
    table = pd.DataFrame({name: rng.normal(size=60), "ward": rng.choice(wards, 60)})
    table.loc[5, name] = None
    table.to_parquet(tmp_path / "t.parquet")
    columns = {name: None, "ward": tuple(wards[:2])}
    expected, _ = read(tmp_path / "t.parquet", columns)
    for separator, decimal in itertools.product(";\t|,", ".,"):
        if separator == decimal:
            continue
        text = table.to_csv(index=False, sep=separator, decimal=decimal, lineterminator="\r\n")
        keys = {"separator": separator, "decimal": decimal, "encoding": encoding}
        for file, data in (
            ("t.csv", text.encode(encoding)),
            ("t.csv.gz", gzip.compress(text.encode(encoding))),
        ):
            (tmp_path / file).write_bytes(data)
            for keep in (False, True):
                rows, malformed = read(tmp_path / file, columns, keep_malformed=keep, **keys)
                np.testing.assert_array_equal(rows, expected)
                assert malformed == 0


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        *(("1,5", 1.5), ("-0,25", -0.25), (" 2 ", 2), (",5", 0.5), ("1,5e3", 1500), ("", NAN)),
        *(("1.5", NAN), ("1.500,25", NAN), ("1,2,3", NAN), ("1 000", NAN), ("NA", NAN)),
    ],
)
def test_decimal_commas(cell: str, number: float, tmp_path: Path) -> None:
    """A point might separate thousands, so a cell with one is not a number."""
    (tmp_path / "t.csv").write_text(f"x;w\n{cell};1,5\n")
    rows, malformed = read(
        tmp_path / "t.csv", {"x": None, "w": ("1,5",)}, separator=";", decimal=","
    )
    np.testing.assert_array_equal(rows, [[number, 0]])
    assert malformed == 0


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_lines_that_are_not_records_count_as_malformed(separator: str, tmp_path: Path) -> None:
    lines = ["1;2", '"1";2', "1", "1;2;3", '1;"2', "1,2", "", "a\r;b", '"a;b";3', '"1"";";4']
    text = "\n".join(["x;y", *lines, "5;6"]).replace(";", separator)
    (tmp_path / "t.csv").write_bytes(text.encode())
    rows, malformed = read(tmp_path / "t.csv", {"x": None, "y": None}, separator=separator)
    good = [[1, 2], [1, 2], [NAN, 3], [NAN, 4], [5, 6]]
    np.testing.assert_array_equal(rows, good)
    assert malformed == 6
    rows, malformed = read(
        tmp_path / "t.csv", {"x": None, "y": None}, separator=separator, keep_malformed=True
    )
    assert (len(rows), malformed) == (11, 6)


LINE = st.text(alphabet='12.";,x\rä\ud800\udc00\u0a0d\u0d0a€', max_size=8)


@pytest.mark.slow
@given(lines=st.lists(LINE, min_size=1, max_size=5), size=st.integers(1, 9))
@example(lines=["\ud800", "1;2"], size=1)
@example(lines=["1;\ud83d", "\udc00;2"], size=3)
def test_utf16_line_never_affects_other_lines(lines: list[str], size: int) -> None:
    """Half a surrogate pair takes no line end with it, wherever the stream is cut."""

    def kept(lines: list[str]) -> list[bytes]:
        data = "".join(line + "\n" for line in lines).encode("utf-16-le", "surrogatepass")
        decoded = as_utf8(_Slowly(b"\xff\xfe" + data, size), "utf-16")  # type: ignore[arg-type]
        return records_of(Records(separator=b";"), decoded)

    assert kept(lines) == [line for each in lines for line in kept([each])]


class _Slowly(io.BytesIO):
    """A stream that returns a few bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self._size = size

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self._size)


@pytest.mark.parametrize("encoding", [each for each in ENCODINGS if each != "utf-8"])
def test_every_byte_is_one_character_of_its_line(encoding: Encoding) -> None:
    """Also those that the encoding does not define."""
    if encoding == "utf-16":
        return
    data = bytes(range(256)) * 3
    lines = as_utf8(io.BytesIO(data), encoding).read().decode().split("\n")
    assert [len(line) for line in lines] == [10, 255, 255, 245]


def test_line_limit_holds_after_decoding(tmp_path: Path) -> None:
    """A byte of cp1252 may become three: the longest line is measured in UTF-8."""
    long = b"\x80" * (BLOCK // 3 + 1)
    short = b"\x80" * (BLOCK // 3 - 100)
    (tmp_path / "t.csv").write_bytes(b"x;y\n1;" + long + b"\n2;" + short + b"\n3;4\n")
    rows, malformed = read(tmp_path / "t.csv", {"x": None}, separator=";", encoding="cp1252")
    assert (rows, malformed) == ([[2], [3]], 1)


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("x;y\n".encode("utf-16-le")[:-1], "utf-16"),
        (b"\xff\xfe" + "\udc00;y\n".encode("utf-16-le", "surrogatepass"), "utf-16"),
        (b"x\x81;y\n", "cp1252"),
    ],
)
def test_header_must_be_in_the_encoding(data: bytes, encoding: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(data)
    with raises(families.HEADER, encoding=encoding):
        schema_of(
            open_source(Files(path=str(tmp_path / "t.csv"), **FORMAT | {"encoding": encoding}))
        )


def test_header_must_be_one_record(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('x;"y\n1;2\n')
    with raises(families.HEADER):
        schema_of(open_source(Files(path=str(tmp_path / "t.csv"), **FORMAT)))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_with_and_without_byte_order_mark(encoding: str, tmp_path: Path) -> None:
    text = "x;y\n1;2\n" if encoding != "utf-16-be" else "\ufeffx;y\n1;2\n"
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    rows, _ = read(tmp_path / "t.csv", {"x": None, "y": None}, **FORMAT, encoding="utf-16")
    assert rows == [[1, 2]]


@pytest.mark.parametrize(
    ("header", "encoding", "written"),
    [
        ("a,b", "utf-8", None),
        ("a", "utf-8", None),
        ("a,größe", "utf-8-sig", None),
        ("a;b", "utf-8", CsvFormat(separator=";")),
        ('"age (years, months)";weight;height', "utf-8", CsvFormat(separator=";")),
        ("a (b, c);d;e", "utf-8", CsvFormat(separator=";")),
        ("a\tb,c\td", "utf-8", CsvFormat(separator="\t")),
        ("a|b", "utf-8", CsvFormat(separator="|")),
        ("größe;b", "cp1252", CsvFormat(separator=";", encoding="cp1252")),
        ("gr\x81ße,b", "latin-1", CsvFormat(encoding="latin-1")),
        ("größe\tb", "utf-16", CsvFormat(separator="\t", encoding="utf-16")),
        ("\u0a0d,b", "utf-16", CsvFormat(encoding="utf-16")),
    ],
)
def test_format_is_detected_from_the_header(
    header: str, encoding: str, written: CsvFormat | None, tmp_path: Path
) -> None:
    """Lines below with fewer fields have no influence."""
    (tmp_path / "t.csv").write_bytes(f"{header}\n1.5 ß\n".encode(encoding))
    source, detected, _ = detect_format(str(tmp_path / "t.csv"))
    assert detected == written
    assert list(schema_of(source))[-1] in {"a", "b", "c", "d", "e", "größe", "height"}


def test_format_of_other_files_is_detected(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("a\tb\n")
    (tmp_path / "t.txt").write_text("a,b\n")
    (tmp_path / "t.parquet").write_bytes(b"")
    assert detect_format(str(tmp_path / "t.tsv"))[1] == CsvFormat(separator="\t")
    assert detect_format(str(tmp_path / "t.txt"))[1] == CsvFormat()
    assert detect_format(str(tmp_path / "t.parquet"))[1] is None


@pytest.mark.parametrize("name", ["t.tsv", "t.tab", "t.psv", "t.txt", "t.dat.gz"])
def test_text_files_with_other_names_need_a_separator(name: str, tmp_path: Path) -> None:
    data = b"x\ty\n1\t2\n"
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    rows, _ = read(tmp_path / name, {"x": None, "y": None}, separator="\t")
    assert rows == [[1, 2]]
    folder = Files(path=str(tmp_path), separator="\t")
    assert list(schema_of(open_source(folder))) == ["x", "y"]
    with raises(families.SOURCE):
        open_source(Files(path=str(tmp_path / name)))
    with raises(families.SOURCE):
        open_source(str(tmp_path / name))
