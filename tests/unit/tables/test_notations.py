"""Numbers that are text in the notation of a source, and what stands above and between rows."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from gramercy.pipeline.plan.checking import check_table_header
from gramercy.schemas import families
from gramercy.schemas.cells import DAYS, DayCells
from gramercy.schemas.contract import Contract
from gramercy.schemas.database import DatabaseTable
from gramercy.schemas.errors import ContractError
from gramercy.schemas.model import parse
from gramercy.schemas.notation import NumberNotation
from gramercy.schemas.source import AnySource, CopiedFiles, Files, original
from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats.reader import cell_batches, column_types, schema_of
from gramercy.tables.formats.source import open_source
from tests.support.databases import KINDS
from tests.support.factories import contract_facts
from tests.support.problems import raises
from tests.support.source_tables import copy_of, execute, new_url

NAN = float("nan")
THIN, NARROW, FIXED = "\u2009", "\u202f", "\u00a0"

# Keys of a source, cells, and their numbers.
SPELLINGS: list[tuple[dict[str, Any], dict[str, float]]] = [
    (
        {"thousands": ","},
        {
            **{"1,234": 1234, "12,34,567": 1234567, "-1,234,567.5": -1234567.5, "1234.5": 1234.5},
            **{"1,234.": 1234, " 7 ": 7, "1e3": 1000, ".5": 0.5, "−1,234": -1234, "- 5": -5},
            **{"1,5": NAN, "1,23": NAN, "1,2345": NAN, "0,123": NAN, ",123": NAN, "1,,234": NAN},
            **{"(5)": NAN, "5-": NAN, "5 %": NAN, "inf": NAN, "1e400": NAN, "1.234,5": NAN},
        },
    ),
    (
        {"thousands": ".", "decimal": ","},
        {"1.234,50": 1234.5, "1.5": NAN, "1.500": 1500, "1234,5": 1234.5, ",5": 0.5, "1,5e3": 1500},
    ),
    ({"decimal": ","}, {"1,5": 1.5, "1.500": NAN, "1 500": NAN, "1,5,0": NAN, f"{FIXED}2": 2}),
    (
        {"thousands": " "},
        {f"1{FIXED}234": 1234, f"1{NARROW}234{THIN}567.5": 1234567.5, "1 23": NAN, "1  234": NAN},
    ),
    ({"thousands": "'"}, {"1'234.50": 1234.5, "1’234’567": 1234567, "1''234": NAN}),
    (
        {"percent": True},
        {"12 %": 0.12, "12": 12, "12.5%": 0.125, f"-.7{NARROW}%": -0.007, "1e3%": NAN, "%": NAN},
    ),
    (
        {"units": ["€", "kg", "kg/m²", "%", "in"], "decimal": ",", "thousands": "."},
        {
            **{"€ 1.234,50": 1234.5, "12,5 kg": 12.5, "-€5": -5, "€-5": -5, "1.234 €": 1234},
            **{"24 kg/m²": 24, "12 %": 12, "5in": 5, "inf": NAN, "kg": NAN, "5 kgs": NAN},
            **{"--5": NAN, "-€-5": NAN, "5 kg kg": NAN, "5 Kg": NAN},
        },
    ),
    (
        {"accounting": True, "thousands": ",", "units": ["$"], "percent": True},
        {
            **{"(1,234.5)": -1234.5, "5-": -5, "$ (5)": -5, "($5)": -5, "5 $-": -5, "5- $": -5},
            **{"12%-": -0.12, "-(5)": NAN, "(5": NAN, "(5)-": NAN, "-5-": NAN, "-5": -5, "-": NAN},
        },
    ),
]


def read(source: AnySource, *, keep: bool = False, **columns: Any) -> tuple[Any, int]:
    """The rows of a table, and its number of malformed lines."""
    malformed, columns = MalformedLines(), columns or {"x": None}
    batches = cell_batches(open_source(source), columns, malformed, keep_malformed=keep)
    rows = np.concatenate([np.empty((len(columns), 0)), *batches], axis=1).T
    return rows, malformed.dropped + malformed.kept


def as_csv(
    folder: Path, cells: Sequence[Any], keys: dict[str, Any], declared: Any = None
) -> AnySource:
    quoted = ['"' + (cell or "").replace('"', '""') + '"' for cell in cells]
    (folder / "t.csv").write_text("\n".join(["x;y", *(f"{each};1" for each in quoted)]) + "\n")
    return Files.model_validate({"path": str(folder / "t.csv"), "separator": ";", **keys})


def as_parquet(
    folder: Path, cells: Sequence[Any], keys: dict[str, Any], declared: Any = None
) -> AnySource:
    table = pa.table({"x": pa.array(cells, pa.string())})
    pq.write_table(table, folder / "t.parquet", row_group_size=max(1, len(cells) // 2))
    return Files.model_validate({"path": str(folder / "t.parquet"), **keys})


def as_large_text(
    folder: Path, cells: Sequence[Any], keys: dict[str, Any], declared: Any = None
) -> AnySource:
    table = pa.table({"x": pa.array(cells, pa.large_string())})
    pq.write_table(table, folder / "l.parquet", use_dictionary=False)
    return Files.model_validate({"path": str(folder / "l.parquet"), **keys})


def as_delta(
    folder: Path, cells: Sequence[Any], keys: dict[str, Any], declared: Any = None
) -> AnySource:
    write_deltalake(str(folder / "lake"), pa.table({"x": pa.array(cells, pa.string())}))
    source = Files.model_validate({"path": str(folder / "lake"), **keys})
    copy = copy_of(source, {"x": declared}, (), folder / "copy-delta")
    assert isinstance(copy, CopiedFiles)
    assert original(copy) == source
    return copy


def as_database(kind: str) -> Callable[..., AnySource]:
    def made(
        folder: Path, cells: Sequence[Any], keys: dict[str, Any], declared: Any = None
    ) -> AnySource:
        url = new_url(kind, folder)
        rows = [{"x": cell} for cell in cells]
        insert = "INSERT INTO t VALUES (:x)"
        execute(url, "DROP TABLE IF EXISTS t", "CREATE TABLE t (x TEXT)", insert, rows=rows)
        table = DatabaseTable.model_validate({"url": "env:CLINIC_DB", "table": "t", **keys})
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CLINIC_DB", url)
            copy = copy_of(table, {"x": declared}, (), folder / f"copy-{kind}")
        assert original(copy) == table
        return copy

    return made


KINDS_OF_TABLES: dict[str, Callable[..., AnySource]] = {
    "csv": as_csv,
    "parquet": as_parquet,
    "large-text": as_large_text,
    "delta": as_delta,
    **{kind: as_database(kind) for kind in KINDS},
}


@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
@pytest.mark.parametrize(("keys", "numbers"), SPELLINGS, ids=[str(x) for x, _ in SPELLINGS])
def test_cells_are_the_same_numbers_in_every_format(
    kind: str, keys: dict[str, Any], numbers: dict[str, float], tmp_path: Path
) -> None:
    rows, malformed = read(KINDS_OF_TABLES[kind](tmp_path, [*numbers, None], keys))
    np.testing.assert_array_equal(rows[:, 0], [*numbers.values(), NAN])
    assert malformed == 0


# How dates are written, cells, and their days since 1970-01-01.
DATES: dict[str, dict[str, float]] = {
    "day.month.year": {
        **{"31.12.2026": 20818, "1.2.2026": 20485, " 01.02.2026 ": 20485, "2026-12-31": 20818},
        **{"31.12.2026 23:30": 20818, "31.12.26": NAN, "12.31.2026": NAN, "31/12/2026": NAN},
        **{"31.02.2026": NAN, "20818": NAN, "31.12.12026": NAN},
    },
    "month/day/year": {"12/31/2026": 20818, "2/1/2026": 20485, "31/12/2026": NAN},
    "day-month-year": {
        **{"31-Dec-2026": 20818, "31-DECEMBER-2026": 20818, "1-sept-2026": 20697},
        **{"31-12-2026": 20818, "31-Dez-2026": NAN, "1-Se-2026": NAN, "2026-12-31": 20818},
    },
    "daymonthyear": {"31DEC2026": 20818, "31122026": 20818, "1DEC2026": NAN},
    "yearmonthday": {"20261231": 20818, "20261301": NAN, "2026": NAN, "20261231.5": NAN},
    "days since 1899-12-30": {
        **{"45000": 19431, "45000.75": 19431, "-1": -25570, "+2": -25567, "1e9": NAN},
        **{"999999999999": NAN, "inf": NAN, "x": NAN, "2026-12-31": 20818},
    },
    "seconds since 1970-01-01": {"1700000000": 19675, "-1": -1, "86399.9": 0},
    "milliseconds since 1960-01-01": {"0": -3653, "-1": -3654, "86400000": -3652},
}


@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
@pytest.mark.parametrize("dates", DATES)
def test_dates_are_the_same_days_in_every_format(kind: str, dates: str, tmp_path: Path) -> None:
    cells, keys = [*DATES[dates], None, "", "\u0661.1.2026"], {"dates": dates}
    source = KINDS_OF_TABLES[kind](tmp_path, cells, keys, DayCells())
    rows, malformed = read(source, x=DayCells())
    np.testing.assert_array_equal(rows[:, 0], [*DATES[dates].values(), NAN, NAN, NAN])
    assert malformed == 0


@pytest.mark.parametrize(
    ("dates", "cells", "days"),
    [
        ("yearmonthday", [20261231, 5, None], [20818, NAN, NAN]),
        ("yearmonthday", [20261231.0, 0.5, NAN], [20818, NAN, NAN]),
        ("days since 1899-12-30", [45000.75, float("inf"), -1e300], [19431, NAN, NAN]),
        ("seconds since 1970-01-01", [-1, 2**62, 86400], [-1, NAN, 1]),
        ("day.month.year", [20261231], [NAN]),
        (None, [45000], [NAN]),
    ],
)
def test_numbers_are_dates_only_where_it_is_stated(
    dates: str | None, cells: list[Any], days: list[float], tmp_path: Path
) -> None:
    source = Files(path=str(tmp_path / "t.parquet"), dates=dates)
    pq.write_table(pa.table({"x": cells}), tmp_path / "t.parquet")
    rows, _ = read(source, x=DayCells())
    np.testing.assert_array_equal(rows[:, 0], days)
    contract = Contract.model_validate(
        contract_facts() | {"source": source, "columns": {"x": {"unit": DAYS}}}
    )
    if dates in {None, "day.month.year"}:
        with raises(families.TABLE_COLUMNS) as caught:
            check_table_header(contract)
        assert "dates: days since 1899-12-30" in str(caught.value)
    else:
        check_table_header(contract)


@pytest.mark.parametrize(
    "dates",
    [
        *("", "dd.mm.yyyy", "day.month", "day.day.year", "day.month/year", "year.day.month"),
        *("days since 2026", "weeks since 1970-01-01", "days since 1970-02-30"),
    ],
)
def test_notations_of_dates_that_are_refused(dates: str) -> None:
    with pytest.raises(ContractError):
        parse(NumberNotation, {"dates": dates}, "contract.yaml", ContractError)


def test_how_the_dates_of_a_period_are_written_is_a_term_of_the_data_set() -> None:
    """Read in another way, a row could belong to two periods, each with a budget of its own."""
    facts = contract_facts() | {"period": {"column": "d"}, "neighbours": "add-remove"}
    facts["budget"] = {**facts["budget"], "per": "month"}
    terms = [
        Contract.model_validate(facts | {"source": source}).terms()
        for source in ("t.csv", {"path": "t.csv", "dates": "day/month/year"})
    ]
    assert terms[1] == terms[0] | {"source": {"dates": "day/month/year"}}
    assert "source" not in terms[0]


PIECES = [*"0123456789" * 2, *".,'’-−+()%eE€ \t\"#;", FIXED, THIN, NARROW, "kg", "inf", "nan"]
PIECES += ["1,234", "1.234,5", "\u0301", "\x00"]


@pytest.fixture(scope="module")
def read_alone(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, Any, dict[str, float]]]:
    """Notations, and cells with the number of each next to plain cells alone."""
    folder, draw = tmp_path_factory.mktemp("alone"), random.Random("cells")
    of_dates: list[dict[str, Any]] = [{"dates": each} for each in [*DATES][:2]]
    found = []
    for keys in [*(keys for keys, _ in SPELLINGS), *of_dates]:
        declared = DayCells() if keys in of_dates else None
        cells = ["".join(draw.choices(PIECES, k=draw.randint(1, 7))) for _ in range(40)]
        cells += draw.choices([*DATES.get(str(keys.get("dates")), ())] or cells, k=10)
        alone = {
            cell: read(as_parquet(folder, [cell, "12", None], keys), x=declared)[0][0, 0]
            for cell in cells
        }
        found.append((keys, declared, alone))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
def test_a_cell_is_read_independently_of_all_others(
    kind: str, read_alone: list[tuple[Any, Any, dict[str, float]]], tmp_path: Path
) -> None:
    """The same number in any company, in any format, and next to plain cells alone."""
    for turn, (keys, declared, alone) in enumerate(read_alone):
        cells = [cell for cell in alone if "\x00" not in cell or kind != "postgresql"]
        folder = tmp_path / str(turn)
        folder.mkdir()
        together, malformed = read(KINDS_OF_TABLES[kind](folder, cells, keys, declared), x=declared)
        assert malformed == 0
        expected = [alone[cell] for cell in cells]
        np.testing.assert_array_equal(together[:, 0], expected, err_msg=str(keys))


def test_numbers_are_rounded_correctly(tmp_path: Path) -> None:
    """A percentage is scaled in its text: 12.3 / 100 is another double than .123."""
    draw = random.Random(3)
    exact = [Fraction(draw.randrange(10**k), 10**4) for k in range(5, 25) for _ in range(25)]
    texts = [f"{int(x):,}.{int(x % 1 * 10**4):04}" for x in exact]
    percents = [f"{text} %" for text in texts]
    source = as_parquet(tmp_path, texts + percents, {"thousands": ",", "percent": True})
    rows, _ = read(source)
    expected = [float(x) for x in exact] + [float(x / 100) for x in exact]
    np.testing.assert_array_equal(rows[:, 0], expected)
    assert any(float(x) / 100 != float(x / 100) for x in exact)


def test_levels_and_columns_in_names_of_folders_have_the_notation(tmp_path: Path) -> None:
    for name in ("1,5", "2,5", "1.5"):
        (tmp_path / f"size={name}").mkdir()
        (tmp_path / f"size={name}" / "t.csv").write_text("dose;who\n2,5;1,5\n")
    source = Files(path=str(tmp_path), separator=";", decimal=",")
    columns: dict[str, Any] = {"dose": (1.5, 2.5), "size": None, "who": ("1,5",)}
    rows, _ = read(source, **columns)
    np.testing.assert_array_equal(rows, [[1, 1.5, 0], [1, NAN, 0], [1, 2.5, 0]])


def test_numbers_in_the_log_of_a_delta_table_have_no_notation(tmp_path: Path) -> None:
    table = pa.table({"x": ["1,5", "2,5"], "size": [0.5, 1e-7]})
    write_deltalake(str(tmp_path / "lake"), table, partition_by=["size"])
    source = Files(path=str(tmp_path / "lake"), decimal=",", separator=";")
    columns = {"x": None, "size": None}
    rows, _ = read(copy_of(source, columns, (), tmp_path / "copy"), **columns)
    assert sorted(map(tuple, rows.tolist())) == [(1.5, 0.5), (2.5, 1e-7)]


def contract_of(source: Any) -> Contract:
    facts = {"source": source, "columns": {"x": {"lower": 0, "upper": 1e6}}}
    return Contract.model_validate(contract_facts() | facts)


def test_text_is_a_column_of_numbers_only_where_a_notation_is_stated(tmp_path: Path) -> None:
    source = as_parquet(tmp_path, ["1,234"], {"thousands": ","})
    check_table_header(contract_of(source))
    plain = as_parquet(tmp_path, ["1234.5"], {"decimal": "."})  # as a computer writes them
    check_table_header(contract_of(plain))
    with raises(families.TABLE_COLUMNS, columns=("x (text)",)) as caught:
        check_table_header(contract_of(str(tmp_path / "t.parquet")))
    assert "thousands: ','" in str(caught.value)
    pq.write_table(pa.table({"x": pa.array([1], pa.timestamp("us"))}), tmp_path / "t.parquet")
    with raises(families.TABLE_COLUMNS) as caught:
        check_table_header(contract_of(source))
    assert "thousands" not in str(caught.value)


@pytest.mark.parametrize(
    "keys",
    [
        {"thousands": "."},
        {"thousands": "_"},
        {"percent": True, "units": ["%"]},
        {"percent": "yes"},
        *({"units": [unit]} for unit in ("", " ", "e", "m2", "kg ", "-", ".-", "a\nb")),
    ],
)
def test_ambiguous_notations_are_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ContractError):
        parse(NumberNotation, keys, "contract.yaml", ContractError)


# Lines above the header, comments and malformed lines.

PREAMBLE = 'A "title, with a quote\n\n# a comment; x;y\n;;;;\n#\nx;y\n'
BELOW = ["1;2", "# 3;4", "5;6", '"#7";8', "#", " #9;10", "11;12"]
READ = [[1, 2], [5, 6], [NAN, 8], [NAN, 10], [11, 12]]
KEYS: dict[str, Any] = {"separator": ";", "header": 4, "comment": "#"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
@pytest.mark.parametrize(
    ("suffix", "packed"),
    [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_above_the_header_and_comments(
    encoding: str, suffix: str, packed: Any, end: str, tmp_path: Path
) -> None:
    text = (PREAMBLE + "\n".join(BELOW) + "\n").replace("\n", end)
    (tmp_path / f"t.csv{suffix}").write_bytes(packed(text.encode(encoding)))
    source = Files(path=str(tmp_path / f"t.csv{suffix}"), encoding=encoding, **KEYS)
    assert list(schema_of(open_source(source))) == ["x", "y"]
    rows, malformed = read(source, x=None, y=None)
    np.testing.assert_array_equal(rows, READ)
    assert malformed == 2
    rows, malformed = read(source, keep=True, x=None, y=None)
    kept = [*READ[:1], [NAN, NAN], *READ[1:3], [NAN, NAN], *READ[3:]]
    np.testing.assert_array_equal(rows, kept)
    assert malformed == 2


def test_a_preamble_may_be_longer_than_what_is_read_at_once(tmp_path: Path) -> None:
    long = b"x" * (5 << 20)
    (tmp_path / "t.csv").write_bytes(
        b"\xef\xbb\xbf#" + long + b"\n" + long + b"\n" + b"#\n" * 5000 + b"x;y\n1;2\n"
    )
    # A line beyond the limit is a blank line, also where it starts as a comment.
    source = Files(path=str(tmp_path / "t.csv"), separator=";", header=3, comment="#")
    np.testing.assert_array_equal(read(source, y=None)[0], [[2]])


@pytest.mark.parametrize("header", [3, 4, 1000])
def test_headers_that_are_blank_or_beyond_the_file(header: int, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\nx;y\n\n")
    source = Files(path=str(tmp_path / "t.csv"), separator=";", header=header)
    with raises(families.HEADER, line=header):
        column_types(*open_source(source).files)


@pytest.mark.slow
@pytest.mark.parametrize("keep", [False, True])
def test_random_lines_are_read_as_if_alone(keep: bool, tmp_path: Path) -> None:
    """With a header on any line, comments, and every notation: a line is one row, or malformed."""
    draw = random.Random(11)
    path = tmp_path / "t.csv"
    pieces = [*PIECES, "\r", "\ufeff", "\x1a", ";", ";", ";", "#", '"']
    for turn in range(40):
        keys = SPELLINGS[turn % len(SPELLINGS)][0] | {"separator": ";", "comment": "#"}
        header = draw.randint(1, 3)

        def lines(count: int) -> list[str]:
            return ["".join(draw.choices(pieces, k=draw.randint(0, 8))) for _ in range(count)]

        above = [line.lstrip("\ufeff").lstrip("#") for line in lines(header - 1)]
        comments = ["#" + line for line in lines(draw.randint(0, 2))]
        below = lines(draw.randint(1, 12))
        source = Files.model_validate({"path": str(path), "header": header, **keys})

        head = [*above, *comments, "x;y"]

        def rows_of(
            lines: list[str], head: list[str] = head, source: Files = source
        ) -> tuple[Any, int]:
            path.write_text("\n".join([*head, *lines, ""]), newline="\n")
            return read(source, keep=keep, x=None, y=None)

        rows, malformed = rows_of(below)
        assert len(rows) + (0 if keep else malformed) == len(below)
        alone = [rows_of([line]) for line in below]
        np.testing.assert_array_equal(rows, np.concatenate([each for each, _ in alone]))
        assert malformed == sum(count for _, count in alone)
