"""Tables and contracts that are refused, with the expected problem and its facts."""

from __future__ import annotations

import datetime
import gzip
import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gramercy.schemas import families
from gramercy.schemas.problem import Family
from tests.acceptance.hostile.table_cases import (
    CELLS,
    COLUMNS,
    OTHER,
    PLAIN,
    SECRET,
    WORD,
    Refused,
    zipped,
)


def refused(
    name: str, text: str | bytes, problem: Family[Any], /, facts: Any = None, **changes: Any
) -> Refused:
    data = text.encode() if isinstance(text, str) else text
    return Refused(name, {"t.csv": data}, problem, facts or {}, changes=changes)


def without_columns(name: str, text: str | bytes, *columns: str, **changes: Any) -> Refused:
    """A CSV file without some of the contract's columns."""
    return refused(name, text, families.TABLE_COLUMNS, {"columns": columns}, **changes)


def wrong_type(name: str, values: pa.Array | list[Any], stated: str, **changes: Any) -> Refused:
    """A Parquet column that is refused for its type."""
    files = {"t.parquet": pa.table({"c0": values, "c1": [OTHER] * len(values)})}
    facts = {"columns": (f"c0 ({stated})",)}
    return Refused(name, files, families.TABLE_COLUMNS, facts, changes=changes)


def truncated_gzip() -> bytes:
    rng = np.random.default_rng(21)  # incompressible, so that half of it holds whole lines
    lines = "".join(f"{SECRET},{x}\n" for x in rng.normal(size=20_000))
    complete = gzip.compress(f"c0,c1\n{lines}".encode())
    return complete[: len(complete) // 2]


def valid_parquet() -> bytes:
    stream = io.BytesIO()
    table = pa.table({"c0": [SECRET, OTHER], "c1": [OTHER, SECRET]})
    pq.write_table(table, stream, compression="none", use_dictionary=False)
    return stream.getvalue()


def damaged_parquet() -> bytes:
    """A valid footer over invalid pages."""
    complete = valid_parquet()
    footer = int.from_bytes(complete[-8:-4], "little") + 8
    return complete[:4] + b"\xff" * (len(complete) - footer - 4) + complete[-footer:]


REPEATED_COLUMN = pa.Table.from_arrays([pa.array([SECRET])] * 3, names=["c0", "c1", "c0"])
BOTH_COLUMNS = ("c0", "c1")


def repeated_at(first: int, second: int) -> dict[str, int]:
    return {"first": first, "second": second}


def counted(rows: int) -> dict[str, int]:
    return {"rows": rows, "declared": 2}


REFUSED_CSV = [
    refused("empty", b"", families.HEADER),
    refused("byte-order-mark-alone", b"\xef\xbb\xbf", families.HEADER),
    refused("newline-alone", b"\n", families.HEADER),
    refused("blank-first-line", b"\n" + PLAIN, families.HEADER),
    refused("commas-for-a-header", f",,\n{CELLS}", families.HEADER),
    refused("header-only", "c0,c1\n", families.ROW_COUNT, counted(0)),
    refused("too-many-rows", PLAIN + CELLS.encode(), families.ROW_COUNT, counted(4)),
    refused("too-few-rows", f"c0,c1\n{SECRET},1\n", families.ROW_COUNT, counted(1)),
    refused("blank-line-at-the-end", PLAIN + b"\n", families.ROW_COUNT, counted(3)),
    refused("utf-16", PLAIN.decode().encode("utf-16"), families.FILE),
    refused("utf-16-big", b"\xfe\xff" + PLAIN.decode().encode("utf-16-be"), families.FILE),
    refused("utf-16-no-mark", PLAIN.decode().encode("utf-16-le"), families.FILE),
    refused("utf-32", PLAIN.decode().encode("utf-32"), families.HEADER),
    refused("latin-1-header", f"größe,c0,c1\n{SECRET},1,1\n".encode("latin-1"), families.HEADER),
    without_columns("nul-in-the-header", b"c0\x00,c1\n" + CELLS.encode(), "c0"),
    without_columns("no-header", CELLS, *BOTH_COLUMNS),
    refused(
        "no-header-equal-cells", f"{SECRET},{SECRET}\n", families.TABLE_COLUMNS, repeated_at(1, 2)
    ),
    without_columns("no-header-text", f"{WORD},1\n", *BOTH_COLUMNS),
    refused("title-above-the-header", f"{WORD} {SECRET}\n".encode() + PLAIN, families.HEADER),
    refused("duplicate-columns", f"c0,c1,c0\n{CELLS}", families.TABLE_COLUMNS, repeated_at(1, 3)),
    refused(
        "duplicate-undeclared",
        f"c0,c1,{WORD},{WORD}\n1,2,3,4\n",
        families.TABLE_COLUMNS,
        repeated_at(3, 4),
    ),
    refused("two-trailing-commas", f"c0,c1,,\n{SECRET},1,,\n", families.ROW_COUNT, counted(1)),
    without_columns("missing-column", f"c0,x\n{CELLS}", "c1"),
    without_columns("other-case", f"C0,c1\n{CELLS}", "c0"),
    refused("semicolons", PLAIN.replace(b",", b";"), families.HEADER, {"separators": "semicolons"}),
    refused("tabs", PLAIN.replace(b",", b"\t"), families.HEADER, {"separators": "tabs"}),
    refused("lone-returns", PLAIN.replace(b"\n", b"\r"), families.HEADER),
    refused("return-in-the-header", f"c0,c1\r{SECRET},1\n{CELLS}", families.HEADER),
    refused("open-quote-in-the-header", f'c0,c1,"x\n{SECRET},1,1\n{WORD},1,1\n', families.HEADER),
    # A data line that looks like a header must not decide whether the table is readable.
    refused(
        "open-quote-in-the-header-and-a-second",
        f'c0,c1,"x\nc0,c1,x\n{SECRET},1,1\n',
        families.HEADER,
        neighbours="add-remove",
    ),
    refused(
        "long-header-and-a-second",
        f"c0,c1,{'x' * (5 << 20)}\nc0,c1,x\n{SECRET},1,1\n",
        families.HEADER,
        neighbours="add-remove",
    ),
    refused("newline-in-the-header", f'c0,c1,"x\ny"\n{SECRET},1,1\n{WORD},1,1\n', families.HEADER),
    refused("long-header", f"c0,c1,{'x' * (5 << 20)}\n{SECRET},1,1\n", families.HEADER),
]


def lacking(*columns: str) -> tuple[Family[Any], dict[str, Any]]:
    return families.TABLE_COLUMNS, {"columns": columns}


TEXT_IN_A_NUMBER = pa.table({"c0": [WORD], "c1": [SECRET]})
UNREADABLE_CSV = (families.FILE, {"format": "CSV"})
UNREADABLE_PARQUET = (families.FILE, {"format": "Parquet"})

REFUSED_FILES = [
    Refused("not-gzip", {"t.csv.gz": PLAIN}, *UNREADABLE_CSV),
    Refused("gzip-unnamed", {"t.csv": gzip.compress(PLAIN)}, families.FILE),
    Refused("empty-gzip", {"t.csv.gz": gzip.compress(b"")}, families.HEADER),
    Refused("truncated-gzip", {"t.csv.gz": truncated_gzip()}, *UNREADABLE_CSV),
    Refused("damaged-gzip", {"t.csv.gz": gzip.compress(PLAIN)[:-8] + b"12345678"}, *UNREADABLE_CSV),
    Refused(
        "gzip-with-trailing-bytes", {"t.csv.gz": gzip.compress(PLAIN) + PLAIN}, *UNREADABLE_CSV
    ),
    Refused("not-zip", {"t.csv.zip": PLAIN}, *UNREADABLE_CSV),
    Refused("not-xz", {"t.csv.xz": PLAIN}, *UNREADABLE_CSV),
    Refused(
        "two-files-in-a-zip", {"t.csv.zip": zipped(PLAIN.decode(), "a.csv", "b.csv")}, families.FILE
    ),
    Refused("nothing-in-a-zip", {"t.csv.zip": zipped("")}, families.FILE),
    Refused("excel", {"t.xlsx": zipped(PLAIN.decode(), "t.csv")}, families.SOURCE),
    Refused("text", {"t.txt": PLAIN}, families.SOURCE),
    Refused("no-suffix", {"table": PLAIN}, families.SOURCE),
    Refused("parquet-named-csv", {"t.csv": valid_parquet()}, families.FILE),
    Refused("missing", {}, families.SOURCE, source="absent.csv"),
    Refused("folder", {"data/t.txt": PLAIN}, families.SOURCE, source="data"),
    Refused("folder-like-a-file", {"data.csv/_t.csv": PLAIN}, families.SOURCE, source="data.csv"),
    Refused(
        "folder-that-is-a-cell",
        {f"data/c1={OTHER}/t.csv": b""},
        families.HEADER,
        source="data",
        named="data/c1=*/t.csv",
    ),
    Refused(
        "folder-of-a-cell-and-broken",
        {f"data/c1={OTHER}/t.pq": PLAIN},
        *UNREADABLE_PARQUET,
        source="data",
        named="data/c1=*/t.pq",
    ),
    Refused(
        "glob-of-folders-that-are-cells",
        {f"data/c1={OTHER}/t.csv": b""},
        families.HEADER,
        source="data/*/*",
        named="data/c1=*/t.csv",
    ),
    Refused(
        "glob-of-other-files-of-cells",
        {f"data/c1={OTHER}/t.txt": b""},
        families.SOURCE,
        source="data/*/*",
        named="data/c1=*/t.txt",
    ),
    Refused(
        "folder-of-a-broken-file",
        {"data/a/t.parquet": PLAIN},
        *UNREADABLE_PARQUET,
        source="data",
        named="data/a/t.parquet",
    ),
    Refused("glob-of-nothing", {"t.csv": PLAIN}, families.SOURCE, source="*.parquet"),
    Refused(
        "glob-of-other-things", {"t.csv": PLAIN}, families.SOURCE, source="*", named="contract.yaml"
    ),
    Refused("unknown-place", {}, families.SOURCE, source="nowhere://t.csv"),
    *(
        Refused(f"second-file-{name}", {"p1.csv": PLAIN, file: content}, *problem, "p*", file)
        for name, file, content, problem in (
            ("lacks-a-column", "p2.csv", b"c0,x\n1,2\n", lacking("c1")),
            ("utf-16", "p2.csv", PLAIN.decode().encode("utf-16"), (families.FILE, {})),
            ("empty", "p2.csv", b"", (families.HEADER, {})),
            ("text", "p2.parquet", TEXT_IN_A_NUMBER, lacking("c0 (text)")),
        )
    ),
]

TEXT_LEVELS: dict[str, Any] = {"columns": {"c0": {"levels": ["a", "b"]}}}
NUMBER_LEVELS: dict[str, Any] = {"columns": {"c0": {"levels": [0, 1]}}}

ENCRYPTED = valid_parquet()[:-4] + b"PARE"


def parquet_without_columns(name: str, content: pa.Table, *columns: str, **options: Any) -> Refused:
    return Refused(name, {"t.parquet": content}, *lacking(*columns), **options)


REFUSED_PARQUET = [
    Refused("parquet-empty-file", {"t.parquet": b""}, *UNREADABLE_PARQUET),
    Refused("parquet-truncated", {"t.parquet": valid_parquet()[:-1]}, *UNREADABLE_PARQUET),
    Refused("parquet-head-alone", {"t.parquet": valid_parquet()[:40]}, *UNREADABLE_PARQUET),
    Refused("parquet-encrypted", {"t.parquet": ENCRYPTED}, *UNREADABLE_PARQUET),
    Refused("parquet-damaged", {"t.parquet": damaged_parquet()}, *UNREADABLE_PARQUET),
    Refused("csv-named-parquet", {"t.parquet": PLAIN}, *UNREADABLE_PARQUET),
    parquet_without_columns("parquet-no-columns", pa.table({}), *BOTH_COLUMNS),
    parquet_without_columns("parquet-missing-column", pa.table({"c0": [SECRET], WORD: [1]}), "c1"),
    Refused(
        "parquet-duplicates",
        {"t.parquet": REPEATED_COLUMN},
        families.TABLE_COLUMNS,
        repeated_at(1, 3),
    ),
    Refused(
        "parquet-no-rows",
        {"t.parquet": pa.table({"c0": [SECRET], "c1": [OTHER]}).slice(0, 0)},
        families.ROW_COUNT,
        counted(0),
    ),
    parquet_without_columns(
        "parquet-inside-a-struct",
        pa.table({"c0": [{"x": SECRET}], "c1": [OTHER]}),
        "c0.x",
        changes={"columns": {"c0.x": COLUMNS["c0"], "c1": COLUMNS["c1"]}},
    ),
    wrong_type("parquet-string", [WORD], "text"),
    wrong_type("parquet-string-view", pa.array([WORD], pa.string_view()), "text"),
    wrong_type("parquet-number-strings", [str(SECRET)], "text"),
    wrong_type("parquet-large-string", pa.array([WORD], pa.large_string()), "text"),
    wrong_type("parquet-binary", [str(SECRET).encode()], "binary"),
    wrong_type("parquet-fixed-binary", pa.array([b"Rosalind"], pa.binary(8)), "fixed_size_binary"),
    wrong_type("parquet-timestamp", [datetime.datetime(2026, 11, 1)], "timestamp"),
    wrong_type(
        "parquet-zoned",
        pa.array([271828182845], pa.timestamp("us", "Europe/London")),
        "timestamp with time zone",
    ),
    wrong_type("parquet-date", [datetime.date(2026, 11, 1)], "date32"),
    wrong_type("parquet-time", [datetime.time(12)], "time64"),
    wrong_type("parquet-duration", pa.array([271828], pa.duration("us")), "duration"),
    wrong_type("parquet-list", [[SECRET, OTHER]], "list"),
    wrong_type(
        "parquet-fixed-list", pa.array([[SECRET]], pa.list_(pa.float64(), 1)), "fixed_size_list"
    ),
    wrong_type("parquet-struct", [{"x": SECRET}], "struct"),
    wrong_type(
        "parquet-map", pa.array([[(WORD, SECRET)]], pa.map_(pa.string(), pa.float64())), "map"
    ),
    wrong_type("parquet-dictionary", pa.array([WORD, WORD]).dictionary_encode(), "text"),
    wrong_type("parquet-empty-strings", pa.nulls(2, pa.string()), "text"),
    # pandas stores a column of dicts as a struct: keys of a cell become part of the type.
    wrong_type("parquet-keys-of-a-dict", [{WORD: 1.0}], "struct"),
]

REFUSED_LEVELS = [
    wrong_type(f"{name}-as-levels", values, stated, **changes)
    for name, values, stated, changes in (
        ("numbers", [SECRET, OTHER], "double", TEXT_LEVELS),
        ("booleans", [True, False], "bool", TEXT_LEVELS),
        ("timestamps", [datetime.datetime(2026, 11, 1)] * 2, "timestamp", TEXT_LEVELS),
        ("binary", [WORD.encode()] * 2, "binary", TEXT_LEVELS),
        ("number-dictionaries", pa.array([SECRET] * 2).dictionary_encode(), "double", TEXT_LEVELS),
        ("texts", [WORD, "1"], "text", NUMBER_LEVELS),
        ("text-dictionaries", pa.array([WORD, "1"]).dictionary_encode(), "text", NUMBER_LEVELS),
        ("structs", [{WORD: "a"}] * 2, "struct", TEXT_LEVELS),
    )
]

WRONG_LEVELS: list[tuple[str, Any, Family[Any], str]] = [
    ("levels-alike", {"levels": ["a", "a"]}, families.LEVELS, ""),
    ("levels-mixed", {"levels": ["a", 1]}, families.LEVELS, ""),
    ("levels-missing", {"levels": ["a", "NA"]}, families.LEVELS, ""),
    ("levels-true-twice", {"levels": [True, True]}, families.LEVELS, ""),
    ("levels-none", {"levels": []}, families.KEY, ".levels"),
    ("levels-and-bounds", {"levels": [0, 1], "lower": 0}, families.KEY, ""),
    ("no-facts", None, families.KEY, ""),
]
WRONG_COLUMNS: list[tuple[str, Any, Family[Any], str]] = [
    ("no-columns-declared", {}, families.KEY, "columns"),
    ("blanks-around-a-name", {" c0": COLUMNS["c0"]}, families.COLUMNS, ""),
    ("number-for-a-name", {2019: COLUMNS["c0"]}, families.VALUE, "columns.2019"),
    ("too-many-columns", {f"c{i}": COLUMNS["c1"] for i in range(5001)}, families.KEY, "columns"),
    ("list-of-columns", ["c0", "c1"], families.VALUE, "columns"),
    *(
        (name, {"c0": column}, problem, f"columns.c0{where}")
        for name, column, problem, where in WRONG_LEVELS
    ),
]
REFUSED_CONTRACTS = [
    Refused(name, {"t.csv": PLAIN}, problem, key=where, changes=changes)
    for name, changes, problem, where in (
        ("no-rows-declared", {"rows": 0}, families.VALUE, "rows"),
        ("list-of-sources", {"source": ["t.csv"]}, families.VALUE, "source"),
        *(
            (name, {"columns": columns}, problem, where)
            for name, columns, problem, where in WRONG_COLUMNS
        ),
    )
]

ALL_REFUSED = REFUSED_CSV + REFUSED_FILES + REFUSED_PARQUET + REFUSED_LEVELS + REFUSED_CONTRACTS
