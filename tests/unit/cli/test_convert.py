"""Files of other programs become Parquet; errors name the place and show no cell."""

from __future__ import annotations

import datetime
import gzip
import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

from gramercy.schemas import families
from gramercy.schemas.problem import Family
from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats.reader import cell_batches
from gramercy.tables.formats.source import open_source
from tests.support.factories import run_command

CANARY = "canary-cell"
TABLE = pd.DataFrame(
    {
        "id": [3, 1, 2],
        "x": [1.5, None, -2.25],
        "ward": ["A", "Ä", None],
        "day": pd.to_datetime(["2026-11-23", None, "1969-02-01"]),
    }
)
EXPECTED = {
    "id": [3, 1, 2],
    "x": [1.5, None, -2.25],
    "ward": ["A", "Ä", None],
    "day": ["2026-11-23", None, "1969-02-01"],
}


def write_json(path: Path, lines: bool) -> None:
    text = TABLE.to_json(orient="records", lines=lines, date_format="iso", date_unit="s")
    text = text.replace("T00:00:00", "").replace("Z", "")
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


WRITERS: dict[str, Callable[[Path], object]] = {
    "t.xlsx": lambda path: TABLE.to_excel(path, index=False),
    "t.ods": lambda path: TABLE.to_excel(path, index=False, engine="odf"),
    "t.sav": lambda path: pyreadstat.write_sav(TABLE, path),
    "t.zsav": lambda path: pyreadstat.write_sav(TABLE, path, compress=True),
    "t.por": lambda path: pyreadstat.write_por(
        TABLE.rename(columns=str.upper).replace("Ä", "B").assign(DAY=EXPECTED["day"]), path
    ),
    "t.dta": lambda path: pyreadstat.write_dta(TABLE, path),
    "t.xpt": lambda path: pyreadstat.write_xport(TABLE, path),
    "t.json": lambda path: write_json(path, lines=False),
    "t.jsonl": lambda path: write_json(path, lines=True),
    "t.ndjson.gz": lambda path: write_json(path, lines=True),
    "t.feather": TABLE.to_feather,
    "t.tsv": lambda path: TABLE.to_csv(path, sep="\t", index=False),
    "t.csv.gz": lambda path: TABLE.to_csv(path, sep=";", index=False),
}


@pytest.fixture
def convert(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[dict[str, list[Any]], dict[str, Any]]]:
    """Converts a file to ``made.parquet``; gives the columns and what was printed."""
    monkeypatch.chdir(tmp_path)

    def converted(*words: str) -> tuple[dict[str, list[Any]], dict[str, Any]]:
        Path("made.parquet").unlink(missing_ok=True)
        code, out, err = run_command("convert", *words, "made.parquet", "--json", capsys=capsys)
        assert code == 0, err
        return pq.read_table("made.parquet").to_pydict(), json.loads(out)

    return converted


@pytest.fixture
def refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Converts a file that is refused; gives the message."""
    monkeypatch.chdir(tmp_path)

    def refused(problem: Family[Any], *words: str) -> str:
        before = Path("out.parquet").exists()
        code, out, err = run_command("convert", *words, "out.parquet", capsys=capsys)
        assert (code, out) == (2, "")
        assert problem.code in err
        assert CANARY not in err
        assert Path("out.parquet").exists() == before
        return err

    return refused


def sheet(path: str, *rows: list[Any], title: str = "visits") -> None:
    book = openpyxl.Workbook()
    book.active.title = title
    for row in rows:
        book.active.append(row)
    book.save(path)


@pytest.mark.parametrize("name", WRITERS)
def test_every_kind_of_file_gives_the_same_columns(name: str, convert: Any) -> None:
    WRITERS[name](Path(name))
    columns, facts = convert(name)
    expected = EXPECTED
    if name == "t.por":  # has neither small letters in names nor other characters than ASCII
        expected = {key.upper(): cells for key, cells in EXPECTED.items()} | {
            "WARD": ["A", "B", None]
        }
    assert columns == expected
    types = {"id": "whole", "x": "double", "ward": "text", "day": "text"}
    assert facts["columns"] == dict(zip(expected, types.values(), strict=True))
    assert (facts["rows"], facts["left_out"], facts["cleared"]) == (3, {}, {})
    assert facts["next"] == "gramercy new made.parquet"
    assert stat.S_IMODE(Path("made.parquet").stat().st_mode) == 0o600


def test_output_for_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sheet("t.xlsx", ["x", None, "ward"], [1, 2, CANARY], ["<5", 4, "B"])
    code, out, _ = run_command("convert", "t.xlsx", "o.pq", "--numbers", "x", capsys=capsys)
    assert code == 0
    words = " ".join(out.split())
    assert "Written: o.pq (2 rows) x whole numbers ward text" in words
    assert "Left out: column 2 (it has no name)" in words
    assert "--numbers: 1 cells of x are not numbers" in words
    assert CANARY not in out


def test_title_above_the_header_is_refused_with_the_row_that_has_the_names(
    convert: Any, refuse: Any
) -> None:
    sheet("t.xlsx", ["Episodes 2026"], [None], ["n", "t", CANARY], [1, 2, 3], [4, 5, 6])
    error = refuse(families.FILE, "t.xlsx")
    assert "--header 3" in error
    assert CANARY not in error
    assert list(convert("t.xlsx", "--header", "3")[0]) == ["n", "t", CANARY]


def test_sheet_header_and_names(convert: Any, refuse: Any) -> None:
    book = openpyxl.Workbook()
    book.active.title, book.active.sheet_state = "hidden", "hidden"
    book.active.append(["h"])
    book.active.append([7])
    shown = book.create_sheet("shown")
    for row in (["Report of 2026"], [], ["n", "t"], [1, CANARY], [], [2, "#N/A"]):
        shown.append(row)
    shown["B6"].data_type = "e"
    book.save("t.xlsx")
    assert convert("t.xlsx", "--header", "3")[0] == {"n": [1, 2], "t": [CANARY, None]}
    assert convert("t.xlsx", "--header", "3", "--names", "a,b")[0] == {
        "a": [1, 2],
        "b": [CANARY, None],
    }
    assert convert("t.xlsx", "--sheet", "hidden")[0] == {"h": [7]}
    assert "'hidden', 'shown'" in refuse(families.FILE, "t.xlsx", "--sheet", "absent")
    assert "sheet 'shown': row 2 is empty" in refuse(families.FILE, "t.xlsx", "--header", "2")
    assert "row 99" in refuse(families.FILE, "t.xlsx", "--header", "99")
    assert list(convert("t.xlsx", "--header", "1")[1]["left_out"]) == ["column 2"]


@pytest.mark.parametrize("row", ["63.1234,Anna", "Anna,1970-03-05", "NA,Anna"])
def test_a_header_that_looks_like_data_is_not_shown(row: str, refuse: Any, convert: Any) -> None:
    Path("t.csv").write_text(f"{row}\n1,{CANARY}\n")
    sheet("t.xlsx", row.split(","))
    for name in ("t.csv", "t.xlsx"):
        message = refuse(families.FILE, name)
        assert "--names" in message
        assert not any(cell in message for cell in row.split(","))
    assert convert("t.csv", "--names", "a,b")[1]["rows"] == 2


def test_types_follow_from_all_cells_of_a_column(convert: Any) -> None:
    rows = [
        ["whole", "mixed", "zero", "large", "truth", "spelt", "time", "empty"],
        [1.0, 2.0, "007", "9" * 5000, True, "1", datetime.datetime(2026, 1, 2, 3, 4), None],
        [-2, "b", "8", "1", False, "2.5", datetime.datetime(2026, 1, 2), "n/a"],
        [None, datetime.date(2026, 1, 2), "", None, None, 3, None, "-"],
    ]
    sheet("t.xlsx", *rows)
    columns, facts = convert("t.xlsx")
    assert columns == {
        "whole": [1, -2, None],
        "mixed": ["2", "b", "2026-01-02"],
        "zero": ["007", "8", None],
        "large": ["9" * 5000, "1", None],
        "truth": [True, False, None],
        "spelt": [1, 2.5, 3],
        "time": ["2026-01-02T03:04:00", "2026-01-02", None],
        "empty": [None] * 3,
    }
    assert facts["columns"]["empty"] == "any"
    forced, facts = convert("t.xlsx", "--numbers", "mixed,zero,large,truth")
    assert forced["mixed"] == [2, None, None]
    assert forced["zero"] == [7, 8, None]
    assert forced["large"] == [None, 1, None]
    assert forced["truth"] == [1, 0, None]
    assert facts["cleared"] == {"mixed": 2, "zero": 0, "large": 1, "truth": 0}


@pytest.mark.parametrize(
    ("options", "cells", "numbers"),
    [
        ((), ["1.5", " -2 ", ".5", "+1e3"], [1.5, -2, 0.5, 1000]),
        ((), ["1,5", "2"], None),
        (("--decimal", ","), ["1,5", "-2"], [1.5, -2]),
        (("--decimal", ","), ["1.5", "2"], None),
        (("--thousands", ","), ["1,234,567.5", "12"], [1234567.5, 12]),
        (("--thousands", ","), ["1,5", "2"], None),
        (("--thousands", ".", "--decimal", ","), ["1.234,5", "1234,5"], [1234.5, 1234.5]),
    ],
)
def test_marks_in_numbers(
    options: tuple[str, ...], cells: list[str], numbers: list[float] | None, convert: Any
) -> None:
    Path("t.tsv").write_text("\n".join(["t\tx", *(f"t\t{cell}" for cell in cells)]))
    sheet("t.xlsx", ["t", "x"], *(["t", cell] for cell in cells))
    for name in ("t.tsv", "t.xlsx"):
        assert convert(name, *options)[0]["x"] == (numbers or cells)


def test_fixed_widths_and_encodings(convert: Any, refuse: Any) -> None:
    Path("t.dat").write_bytes("007 1.5Ärzte\n008    B\n".encode("cp1252"))
    words = ("t.dat", "--widths", "3,4,5", "--names", "id,x,ward")
    expected = {"id": ["007", "008"], "x": [1.5, None], "ward": ["Ärzte", "B"]}
    assert convert(*words, "--encoding", "cp1252")[0] == expected
    assert "--encoding cp1252" in refuse(families.FILE, *words)
    pyreadstat.write_xport(pd.DataFrame({"a": ["Qa"], "b": ["x"]}), "t.xpt")
    Path("t.xpt").write_bytes(Path("t.xpt").read_bytes().replace(b"Qa", b"\xc4a"))
    assert convert("t.xpt", "--encoding", "cp1252")[0] == {"a": ["Äa"], "b": ["x"]}
    assert "--encoding cp1252" in refuse(families.FILE, "t.xpt")
    assert "no encoding" in refuse(families.USAGE, *words, "--encoding", "none")
    refuse(families.USAGE, "t.dat", "--widths", "3,x")
    Path("t.csv").write_bytes("a;b\n1;Ä\n".encode("utf-16"))
    assert convert("t.csv")[0] == {"a": [1], "b": ["Ä"]}


@pytest.mark.parametrize("name", ["t.sav", "t.dta"])
def test_labels_and_missing_values(name: str, convert: Any) -> None:
    """A column becomes labels only if all its values have one."""
    table = pd.DataFrame({"sex": [1.0, 2.0, 9.0], "scale": [1.0, 2.0, 5.0]})
    labels = {"sex": {1: "m", 2: "f", 9: "no answer"}, "scale": {1: "never", 5: "always"}}
    if name == "t.sav":
        pyreadstat.write_sav(table, name, variable_value_labels=labels, missing_ranges={"sex": [9]})
    else:
        pyreadstat.write_dta(table, name, variable_value_labels=labels)
    sex = ["m", "f", None if name == "t.sav" else "no answer"]
    assert convert(name)[0] == {"sex": sex, "scale": [1, 2, 5]}
    codes = [1, 2, None if name == "t.sav" else 9]
    assert convert(name, "--codes")[0] == {"sex": codes, "scale": [1, 2, 5]}


def test_arrow_types(convert: Any) -> None:
    table = pa.table(
        {
            "kind": pa.array(["a", "b"]).dictionary_encode(),
            "flag": [True, None],
            "when": pa.array([datetime.datetime(2026, 1, 2, 3), None], pa.timestamp("ns", "UTC")),
            "list": [[1], [2]],
            "large": pa.array([2**64 - 1, 0], pa.uint64()),
        }
    )
    with pa.OSFile("t.arrow", "wb") as stream, pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    columns, facts = convert("t.arrow")
    assert columns == {
        "kind": ["a", "b"],
        "flag": [True, None],
        "when": ["2026-01-02T03:00:00+00:00", None],
        "large": [2**64 - 1, 0],
    }
    assert list(facts["left_out"]) == ["list"]


@pytest.mark.slow
def test_long_texts_fit_into_the_pages_that_a_release_reads(convert: Any) -> None:
    Path("t.jsonl").write_text("\n".join(json.dumps({"t": f"{k}" * 400_000}) for k in range(1, 60)))
    convert("t.jsonl")
    batches = cell_batches(open_source("made.parquet"), {"t": ("a",)}, MalformedLines())
    assert sum(batch.shape[1] for batch in batches) == 59


def test_rows_of_json_may_differ(convert: Any) -> None:
    rows = [{"a": 1, "n": {"b": 1}}, {"a": 10**400, "c": "7", "d": 2**63}, {"c": "\ud800"}]
    Path("t.json").write_text(json.dumps(rows))
    columns, facts = convert("t.json")
    assert columns == {
        "a": ["1", f"1{'0' * 400}", None],
        "c": [None, "7", "?"],
        "d": [None, str(2**63), None],
    }
    assert list(facts["left_out"]) == ["n"]


@pytest.mark.parametrize(
    "name", [*(each for each in WRITERS if ".csv" not in each and ".tsv" not in each), "t.sas7bdat"]
)
def test_damaged_files_are_refused_without_their_content(name: str, refuse: Any) -> None:
    Path(name).write_bytes(b'{"x": "' + CANARY.encode())
    assert name in refuse(families.FILE, name)


def test_what_cannot_be_converted(refuse: Any) -> None:
    Path("t.csv").write_text(f'a,b\n1,"{CANARY}\n')
    assert "t.csv" in refuse(families.FILE, "t.csv")
    Path("t.csv").write_text(f"a,b\n1,2\n1,2,{CANARY}\n")
    assert "row 3 has more cells" in refuse(families.FILE, "t.csv")
    Path("t.csv").write_text("a,b,a\n1,2,3\n")
    refuse(families.TABLE_COLUMNS, "t.csv")
    Path("t.json").write_text("[]")
    refuse(families.FILE, "t.json")
    assert "no such file" in refuse(families.FILE, "absent.csv")
    Path("table").write_text("")
    assert ".sav" in refuse(families.FILE, "table")
    Path("t.csv").write_text("a,b\n1,2\n")
    assert "The columns are: a, b" in refuse(families.USAGE, "t.csv", "--numbers", "c")
    for option in (("--sheet", "x"), ("--codes",)):
        assert option[0] in refuse(families.USAGE, "t.csv", *option)
    Path("out.parquet").write_text("kept")
    assert "already exists" in refuse(families.USAGE, "t.csv")
    assert Path("out.parquet").read_text() == "kept"


def test_target_is_parquet_in_an_existing_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a\n1\n")
    for target in ("t2.csv", "absent/t.parquet"):
        assert run_command("convert", file, tmp_path / target, capsys=capsys)[0] == 2


@pytest.mark.parametrize("name", ["t.xlsx", "t.sav"])
def test_missing_package_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    WRITERS[name](tmp_path / name)
    for package in ("pyreadstat", "python_calamine"):
        monkeypatch.setitem(sys.modules, package, None)
    code, _, err = run_command("convert", tmp_path / name, tmp_path / "o.parquet", capsys=capsys)
    assert code == 1
    assert families.MISSING_PACKAGES.code in err
    assert "pip install 'gramercy[convert]'" in err


def test_ids_in_one_spelling(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = ["P 07", "p07", " P07 ", None]
    pd.DataFrame({"pid": ids, "x": range(4)}).to_csv(tmp_path / "t.csv", index=False)
    target = tmp_path / "ids.parquet"
    words = (tmp_path / "t.csv", target, "--ids")
    code, _, err = run_command("convert", *words, "none", capsys=capsys)
    assert (code, families.USAGE.code in err) == (2, True)
    assert run_command("convert", *words, "pid", capsys=capsys)[0] == 0
    assert pq.read_table(target)["pid"].to_pylist() == ["P07", "P07", "P07", None]
