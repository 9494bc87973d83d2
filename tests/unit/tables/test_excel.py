"""Sheets of Excel: the same integers as Parquet; no cell refuses or moves another row."""

from __future__ import annotations

import contextlib
import re
import tempfile
import tracemalloc
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramercy.application.table_header import check_table_header
from gramercy.schemas.errors import TableError
from gramercy.schemas.problem import Problem
from gramercy.schemas.problems import source as problems
from gramercy.schemas.problems.table import column_repeated, file_not_readable, header_missing
from gramercy.schemas.source import Sheet
from gramercy.tables.column_types import schema_of
from gramercy.tables.copies import columns as copied_columns
from gramercy.tables.copies.columns import CopiedColumns
from gramercy.tables.copies.copying import copy_rows
from gramercy.tables.excel import strings as shared
from gramercy.tables.source import needs_copy, open_source
from tests.support.database_tables import cells, copied
from tests.support.one_table import contract, frame, gram
from tests.support.problems import raises
from tests.support.workbooks import MAIN, cell, row, sheet, workbook, written_rows

NAN = float("nan")
HEADER = '<row r="1"><c r="A1" t="inlineStr"><is><t>x</t></is></c></row>'


def record(number: int | None, *values: Any) -> str:
    """The XML of a row, in which None is an empty cell."""
    place = "" if number is None else str(number)
    cells = zip("ABCDEFGH", values, strict=False)
    return row(number, *(cell(f"{letter}{place}", value) for letter, value in cells))


def read(path: Path, rows: int | None = None, name: str = "x") -> list[float]:
    """The numbers of a column; `rows` is the declared number, if it is public."""
    copy = path.parent / f"copy-{path.stem}-{rows}"
    copy.unlink(missing_ok=True)
    source = copy_rows(str(path), CopiedColumns({name: None}, rows=rows), copy)
    return [numbers[0] for numbers in cells(source, {name: None})]


def test_integers_equal_those_of_the_same_table_in_parquet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of persons, under both relations, and where cells are missing."""
    table = frame(200)
    table.loc[7, ["x", "price", "ward"]] = None
    table.to_parquet(tmp_path / "t.parquet")
    path = str(workbook(tmp_path / "t.xlsx", written_rows(table)))
    monkeypatch.setattr(copied_columns, "_BATCH_CELLS", 500)
    persons: dict[str, Any] = {"privacy_unit": "patient", "persons": 100}
    relations: list[dict[str, Any]] = [{}, {"neighbours": "add-remove"}, persons]
    for k, facts in enumerate(relations):
        declared = contract(path, 200, **facts)
        check_table_header(declared)
        rows = 200 if declared.checks_rows else None
        copy = copied(path, declared, tmp_path / f"copy-{k}", rows=rows)
        in_parquet = contract(str(tmp_path / "t.parquet"), 200, **facts)
        np.testing.assert_array_equal(gram(in_parquet), gram(contract(copy, 200, **facts)))


def test_a_row_that_becomes_empty_changes_one_record(tmp_path: Path) -> None:
    """Programs leave out rows whose cells are all empty, or write them without cells."""
    values: list[float | None] = [10, 11, 12, 13]
    last = [record(k + 2, value) for k, value in enumerate(values[:3])]
    middle = [record(2, 10), record(4, 12), record(5, 13)]
    written = [record(2, 10), record(3), record(4, 12), record(5, 13), record(6), record(99, None)]
    full = [*last, record(5, 13)]
    after = [*full, record(9, 14)]
    blank = [record(2, 10), '<row r="3"><c r="A3" s="1"/></row>', record(4, 12), record(5, "")]
    cases = {
        "full": (full, [10, 11, 12, 13], [10, 11, 12, 13]),
        "last": (last, [10, 11, 12], [10, 11, 12, NAN]),
        "middle": (middle, [10, 12, 13], [10, NAN, 12, 13]),
        "written": (written, [10, 12, 13], [10, NAN, 12, 13]),
        "after": (after, [10, 11, 12, 13, 14], [10, 11, 12, 13, 14]),  # one too many
        "blank": (blank, [10, 12], [10, NAN, 12, NAN]),
        "none": ([], [], [NAN] * 4),
    }
    for name, (rows, add_remove, replace_one) in cases.items():
        path = workbook(tmp_path / f"{name}.xlsx", [HEADER, *rows])
        assert read(path) == add_remove, name
        np.testing.assert_array_equal(read(path, 4), replace_one, name)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_neighbours_differ_in_one_record(present: list[bool], data: st.DataObject) -> None:
    """Whichever empty rows a program leaves out."""
    changed = data.draw(st.integers(0, len(present) - 1))
    left_out = data.draw(st.lists(st.booleans(), min_size=len(present), max_size=len(present)))

    def rows(full: Sequence[bool]) -> list[str]:
        each = enumerate(zip(full, left_out, strict=True), start=2)
        return [record(k, k if x else None) for k, (x, out) in each if x or not out]

    neighbour = [not x if k == changed else x for k, x in enumerate(present)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copied_columns, "_BATCH_CELLS", 3)
        found = []
        for full in (present, neighbour):
            with tempfile.TemporaryDirectory() as folder:
                path = workbook(Path(folder, "t.xlsx"), [HEADER, *rows(full)])
                found.append((read(path), read(path, len(present))))
    (first, placed), (second, other) = found
    assert set(first) ^ set(second) == {changed + 2.0}
    assert len(placed) == len(other) == len(present)
    differs = ~np.isclose(placed, other, rtol=0, atol=0, equal_nan=True)
    assert np.flatnonzero(differs).tolist() == [changed]


T, B = ' t="str"', ' t="b"'
EMPTY = {"<v/>", "<f>1+1</f>", "<is><t>3</t></is>"}  # of a cell that is not an inline text


@pytest.mark.parametrize(
    ("kind", "content", "number", "level", "name", "date"),
    [
        ("", "<v>2</v>", 2, "2", "2", "2"),
        ("", "<v>2.0</v>", 2, "2", "2", "2"),
        ("", "<v>2E3</v>", 2000, "2000", "2000", "2000"),
        ("", "<v>-0</v>", -0.0, "0", "0", "0"),
        ("", "<v>0.1</v>", 0.1, "0.1", None, None),
        ("", "<v>0.30000000000000004</v>", 0.1 + 0.2, "0.30000000000000004", None, None),
        ("", "<v>12345678901234567</v>", 12345678901234568, "1.2345678901234568e+16", None, None),
        ("", "<v>1e999</v>", np.inf, None, None, None),
        ("", f"<v>{'1' * 2000}</v>", NAN, None, None, None),
        ("", "<v>1_000</v>", NAN, None, None, None),
        ("", "<v>nan</v>", NAN, None, None, None),
        ("", "<v>\u0663</v>", NAN, None, None, None),
        ("", "<v>abc</v>", NAN, None, None, None),
        ("", "<v/>", NAN, None, None, None),
        ("", "<f>1+1</f>", NAN, None, None, None),
        ("", "<f>1+1</f><v>2</v>", 2, "2", "2", "2"),
        ("", "<is><t>3</t></is>", NAN, None, None, None),
        (' t="n"', "<v> 7 </v>", 7, "7", "7", "7"),
        (' s="1"', "<v>46347</v>", 46347, "2026-11-21", "46347", "2026-11-21"),
        (' s="3"', "<v>46347.5</v>", 46347.5, "2026-11-21T12:00:00.000", None, "noon"),
        (' s="5"', "<v>1</v>", 1, "1900-01-01", "1", "1900-01-01"),
        (' s="1"', "<v>60</v>", 60, None, "60", None),
        (' s="1"', "<v>61</v>", 61, "1900-03-01", "61", "1900-03-01"),
        (' s="1"', "<v>2958465</v>", 2958465, "9999-12-31", "2958465", "9999-12-31"),
        (' s="1"', "<v>2958466</v>", 2958466, None, "2958466", None),
        (' s="1"', "<v>2958465.9999999999</v>", 2958466, None, "2958466", None),
        (' s="1"', "<v>-1</v>", -1, None, "-1", None),
        (' s="1"', "<v>1e300</v>", 1e300, None, None, None),
        (' s="4"', "<v>3</v>", 3, "3", "3", "3"),
        (' s="2"', "<v>3</v>", 3, "3", "3", "3"),
        (' s="x"', "<v>3</v>", 3, "3", "3", "3"),
        (' t="d"', "<v>2026-11-21</v>", NAN, "2026-11-21", "2026-11-21", "2026-11-21"),
        (B, "<v>1</v>", 1, "TRUE", None, None),
        (B, "<v>0</v>", 0, "FALSE", None, None),
        (B, "<v>yes</v>", NAN, None, None, None),
        (' t="e"', "<v>#N/A</v>", NAN, None, None, None),
        (' t="zz"', "<v>7</v>", NAN, None, None, None),
        (T, "<v> 2 </v>", 2, " 2 ", " 2 ", " 2 "),
        (T, "<v>1,5</v>", NAN, "1,5", "1,5", "1,5"),
        (T, "<v>a_x000D__x005F_x_xD83D__xDE00_</v>", NAN, *["a\r_x\U0001f600"] * 3),
        (T, "<v>_xD83D_</v>", NAN, *["\ufffd"] * 3),
        (' t="inlineStr"', "<is><t>a</t><rPh><t>z</t></rPh><r><t>b</t></r></is>", NAN, *["ab"] * 3),
        (' t="inlineStr"', "<v>7</v><is><t>8</t></is>", 8, "8", "8", "8"),
        (' t="s"', "<v>0</v>", NAN, "Ä", "Ä", "Ä"),
        (' t="s"', "<v>1</v>", 7, "7", "7", "7"),
        (' t="s"', "<v>2</v>", NAN, "", "", ""),
        (' t="s"', "<v>3</v>", NAN, None, None, None),
        (' t="s"', "<v>-1</v>", NAN, None, None, None),
        (' t="s"', f"<v>{'9' * 30}</v>", NAN, None, None, None),
        (' t="s"', "<v>x</v>", NAN, None, None, None),
        (T, f"<v>{'y' * 40_000}</v>", NAN, None, None, None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_cell_is_read_as_the_file_states_it(
    kind: str,
    content: str,
    number: float,
    level: str | None,
    name: str | None,
    date: str | None,
    tmp_path: Path,
) -> None:
    """As a number, a level, a person's name and a date; no cell refuses, nor changes others."""
    names = ["number", "level", "name", "date"]
    hostile = "".join(f'<c r="{letter}2"{kind}>{content}</c>' for letter in "ABCD")
    strings = "<si><t>Ä</t></si><si><r><t>7</t></r><rPh><t>z</t></rPh></si><si><t/></si>"
    body = [record(1, *names), row(2, hostile), record(3, 1.5, "A", "p", "2026-11-21")]
    path = str(workbook(tmp_path / "t.xlsx", body, strings=strings))
    columns = CopiedColumns({"number": None, "level": ("A", "Ä")}, ["name", "date"], dates="date")
    copy_rows(path, columns, tmp_path / "copy")
    *found, other = pq.read_table(tmp_path / "copy").to_pylist()
    assert other == {"number": 1.5, "level": "A", "name": "p", "date": "2026-11-21"}
    if content in EMPTY or level == "":  # an empty row is not a record
        assert found == []
        return
    expected = [number, level, name, "2026-11-21T12:00:00.000" if date == "noon" else date]
    np.testing.assert_equal(found, [dict(zip(names, expected, strict=True))])


def test_dates_are_counted_from_1904_where_the_workbook_says_so(tmp_path: Path) -> None:
    book = '<workbookPr date1904="1"/>'
    body = [record(1, "x"), '<row r="2"><c r="A2" s="1"><v>0</v></c></row>']
    path = workbook(tmp_path / "t.xlsx", body, book=book)
    copy_rows(str(path), CopiedColumns({}, ["x"], dates="x"), tmp_path / "copy")
    assert pq.read_table(tmp_path / "copy")["x"].to_pylist() == ["1904-01-01"]


def test_cells_without_a_place_follow_the_one_before(tmp_path: Path) -> None:
    """Also where a writer uses a prefix for its names, and a cell is beyond the last column."""
    body = [
        row(None, *('<c t="str"><v>y</v></c>', '<c t="str"><v>x</v></c>')),
        row(None, "<c><v>0</v></c><c><v>1</v></c>"),
        row(5, '<c r="B7"><v>2</v></c><c r="A?"><v>9</v></c><c r="ZZZ5"><v>8</v></c>'),
        row(1 << 20, '<c r="XFD1048576"><v>7</v></c><c r="B1048576"><v>3</v></c>'),
    ]
    plain = workbook(tmp_path / "t.xlsx", body)
    assert read(plain) == [1, 2, 3]
    np.testing.assert_array_equal(read(plain, 5), [1, NAN, NAN, 2, NAN, 3])
    prefixed = re.sub(r"<(/?)(\w)", r"<\1m:\2", sheet("".join(body))).replace("xmlns", "xmlns:m")
    other = workbook(tmp_path / "m.xlsx", [], parts={"xl/worksheets/sheet0.xml": prefixed})
    assert read(other) == [1, 2, 3]


def test_only_columns_with_a_name_are_part_of_the_table(tmp_path: Path) -> None:
    body = [record(1, "x", None, " ", "y"), record(2, None, 1, 2), record(3, None, None, None, 4)]
    path = workbook(tmp_path / "t.xlsx", body)
    assert list(schema_of(open_source(str(path)))) == ["x", "y"]
    np.testing.assert_array_equal(read(path), [NAN])


def test_the_first_visible_sheet_is_read_or_the_one_that_is_named(tmp_path: Path) -> None:
    sheets = {k: [HEADER, record(2, k)] for k in ("11", "22", "33")}
    path = workbook(tmp_path / "t.xlsx", sheets, states={"11": "hidden"})
    assert read(path) == [22]
    for name in sheets:
        source = Sheet(path=str(path), sheet=name)
        copy = copy_rows(source, CopiedColumns({"x": None}), tmp_path / f"copy-{name}")
        assert cells(copy, {"x": None}) == [[float(name)]]
    with raises(problems.sheet_not_found, file=str(path), sheet="44"):
        schema_of(open_source(Sheet(path=str(path), sheet="44")))


def test_a_workbook_is_the_only_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        workbook(tmp_path / f"{name}.xlsx", [HEADER])
    (tmp_path / "t.csv").write_text("x\n1\n")
    with raises(problems.several_workbooks, source=str(tmp_path / "*.xlsx"), count=2):
        open_source(str(tmp_path / "*.xlsx"))
    assert len(open_source(str(tmp_path / "a*.xlsx")).files) == 1
    assert {file.format for file in open_source(str(tmp_path)).files} == {"csv"}
    with raises(problems.workbook_not_supported, file=str(tmp_path / "t.csv")):
        open_source(Sheet(path=str(tmp_path / "t.csv"), sheet="x"))
    assert needs_copy(str(tmp_path / "*.XLSX"))


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ([], header_missing),
        ([record(1, None, " ")], header_missing),
        ([record(2, "x")], header_missing),
        ([record(1, "x", "y", "x")], column_repeated),
    ],
)
def test_first_row_must_name_the_columns(
    header: list[str], problem: Problem[..., Any], tmp_path: Path
) -> None:
    path = str(workbook(tmp_path / "t.xlsx", [*header, record(9, "secret")]))
    with raises(problem, file=path):
        schema_of(open_source(path))


def sheet_of(*content: str) -> dict[str, str]:
    return {"xl/worksheets/sheet0.xml": sheet("".join(content))}


@pytest.mark.parametrize(
    "parts",
    [
        sheet_of(HEADER, record(3), record(3)),
        sheet_of(HEADER, record(3), record(2)),
        sheet_of(HEADER, '<row r="x"/>'),
        sheet_of(HEADER, f'<row r="{(1 << 20) + 1}"/>'),
        sheet_of(HEADER, "<row>"),
        sheet_of(HEADER, '<row r="2"><c r="A2"><v>\x01</v></c></row>'),
        sheet_of(HEADER, f'<row r="2" s="{" " * (2 << 20)}"/>'),
        sheet_of(HEADER, "<a>" * 200 + "</a>" * 200),
        sheet_of(HEADER, *(f"<a{k}/>" for k in range(11_000))),
        sheet_of(HEADER, *(f'<a b{k}="1"/>' for k in range(11_000))),
        sheet_of(HEADER, *(f'<a xmlns:p{k}="u"/>' for k in range(11_000))),
        {"xl/worksheets/sheet0.xml": "<!DOCTYPE a [<!ENTITY b 'c'>]>" + sheet(HEADER)},
        {"xl/sharedStrings.xml": "<sst>"},
        {"xl/styles.xml": " " * (40 << 20)},
        {"xl/workbook.xml": f'<workbook xmlns="{MAIN}"><sheet name="a"/></workbook>'},
        {"_rels/.rels": "<a/>"},
    ],
    ids=lambda parts: next(iter(parts.values()))[60:100],
)
def test_structure_that_is_not_that_of_a_sheet_is_refused(
    parts: dict[str, str], tmp_path: Path
) -> None:
    path = workbook(tmp_path / "t.xlsx", [HEADER], strings="", parts=parts)
    with raises(file_not_readable, file=str(path), format="Excel") as caught:
        read(path)
    assert caught.value.__context__ is None


def test_files_that_are_not_workbooks_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    path.write_bytes(b"\xd0\xcf\x11\xe0" + b"\0" * 600)  # as Excel encrypts a workbook
    with raises(problems.workbook_not_supported, file=str(path)):
        schema_of(open_source(str(path)))
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(20_000):
            archive.writestr(f"{number:060d}", b"")
    with raises(problems.workbook_not_supported, file=str(path)):
        schema_of(open_source(str(path)))
    declared = workbook(path, [HEADER])
    with raises(problems.more_rows_than_sheet, most=(1 << 20) - 1):
        read(declared, 1 << 20)
    assert len(read(declared, 4)) == 4


@pytest.mark.slow
def test_memory_is_bounded_for_any_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a text that is too long to be a value, only the start is kept."""
    monkeypatch.setattr(shared, "_MAX_STRINGS", 20 << 20)
    long = "y" * (16 << 20)
    body = [record(1, "x", "other"), row(2, f'<c r="A2" t="str"><v>{long}</v></c>'), record(3, 1)]
    body += [record(k, k, long[:8000]) for k in range(4, 2000)]
    path = workbook(tmp_path / "t.xlsx", body, strings=f"<si><t>{long}</t></si>")
    del body
    tracemalloc.start()
    try:
        np.testing.assert_array_equal(read(path), [NAN, 1, *range(4, 2000)])
        assert tracemalloc.get_traced_memory()[1] < 6 << 20
    finally:
        tracemalloc.stop()
    monkeypatch.setattr(shared, "_MAX_STRINGS", 15 << 20)
    with raises(problems.strings_too_large, file=str(path), limit=15):
        read(path)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_workbook_is_read_or_refused(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = workbook(Path(folder, "t.xlsx"), [HEADER, record(2, 1.5)], strings="<si><t/></si>")
        damaged = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(damaged)
        with contextlib.suppress(TableError):
            read(path)
