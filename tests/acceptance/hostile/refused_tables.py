"""Tables and contracts that are refused, with the words of the error."""

from __future__ import annotations

import datetime
import gzip
import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gramercy.schemas.errors import ContractError
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


def refused(name: str, text: str | bytes, *words: str, **changes: Any) -> Refused:
    data = text.encode() if isinstance(text, str) else text
    return Refused(name, {"t.csv": data}, words, changes=changes)


def not_numbers(name: str, values: pa.Array | list[Any], *words: str) -> Refused:
    """A Parquet column that is refused for its type."""
    table = pa.table({"c0": values, "c1": [OTHER] * len(values)})
    return Refused(f"parquet-{name}", {"t.parquet": table}, ("'c0'", *words))


def truncated_gzip() -> bytes:
    rng = np.random.default_rng(21)  # incompressible, so that half of it holds whole lines
    lines = "".join(f"{SECRET},{x}\n" for x in rng.normal(size=20_000))
    whole = gzip.compress(f"c0,c1\n{lines}".encode())
    return whole[: len(whole) // 2]


def whole_parquet() -> bytes:
    made = io.BytesIO()
    table = pa.table({"c0": [SECRET, OTHER], "c1": [OTHER, SECRET]})
    pq.write_table(table, made, compression="none", use_dictionary=False)
    return made.getvalue()


def damaged_parquet() -> bytes:
    """A valid footer over invalid pages."""
    whole = whole_parquet()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    return whole[:4] + b"\xff" * (len(whole) - footer - 4) + whole[-footer:]


TWICE = pa.Table.from_arrays([pa.array([SECRET])] * 3, names=["c0", "c1", "c0"])

REFUSED_CSV = [
    refused("empty", b"", "is empty"),
    refused("byte-order-mark-alone", b"\xef\xbb\xbf", "is empty"),
    refused("newline-alone", b"\n", "is empty"),
    refused("blank-first-line", b"\n" + PLAIN, "first line must name the columns"),
    refused("commas-for-a-header", f",,\n{CELLS}"),
    refused("header-only", "c0,c1\n", "has 0 rows", "'rows' is 2"),
    refused("too-many-rows", PLAIN + CELLS.encode(), "has 4 rows", "'rows' is 2"),
    refused("too-few-rows", f"c0,c1\n{SECRET},1\n", "has 1 rows", "'rows' is 2"),
    refused("blank-line-at-the-end", PLAIN + b"\n", "has 3 rows", "blank lines count"),
    refused("utf-16", PLAIN.decode().encode("utf-16"), "UTF-8"),
    refused("utf-16-big", b"\xfe\xff" + PLAIN.decode().encode("utf-16-be"), "UTF-8"),
    refused("utf-16-no-mark", PLAIN.decode().encode("utf-16-le"), "'c0', 'c1'"),
    refused("utf-32", PLAIN.decode().encode("utf-32"), "UTF-8"),
    refused("latin-1-header", f"größe,c0,c1\n{SECRET},1,1\n".encode("latin-1"), "UTF-8"),
    refused("nul-in-the-header", b"c0\x00,c1\n" + CELLS.encode(), "'c0'"),
    refused("no-header", CELLS, "'c0', 'c1'", "with a header"),
    refused("no-header-equal-cells", f"{SECRET},{SECRET}\n", "columns 1 and 2"),
    refused("no-header-text", f"{WORD},1\n", "'c0', 'c1'"),
    refused("title-above-the-header", f"{WORD} {SECRET}\n".encode() + PLAIN, "'c0', 'c1'"),
    refused("duplicate-columns", f"c0,c1,c0\n{CELLS}", "columns 1 and 3"),
    refused("duplicate-undeclared", f"c0,c1,{WORD},{WORD}\n1,2,3,4\n", "columns 3 and 4"),
    refused("two-trailing-commas", f"c0,c1,,\n{SECRET},1,,\n", "columns 3 and 4"),
    refused("missing-column", f"c0,x\n{CELLS}", "'c1'"),
    refused("other-case", f"C0,c1\n{CELLS}", "'c0'"),
    refused("blanks-in-the-header", f"c0, c1\n{CELLS}", "'c1'"),
    refused(
        "decomposed-name",
        f"gro\u0308\u00dfe\n{SECRET}\n",
        "'größe'",
        columns={"größe": COLUMNS["c0"]},
    ),
    refused("semicolons", PLAIN.replace(b",", b";"), "'c0', 'c1'", "comma-separated"),
    refused("tabs", PLAIN.replace(b",", b"\t"), "'c0', 'c1'", "comma-separated"),
    refused("lone-returns", PLAIN.replace(b"\n", b"\r")),
    refused("return-in-the-header", f"c0,c1\r{SECRET},1\n{CELLS}"),
    refused("open-quote-in-the-header", f'c0,c1,"x\n{SECRET},1,1\n{WORD},1,1\n'),
    # A line that reads as a header must not decide whether the table can be read.
    refused(
        "open-quote-in-the-header-and-a-second",
        f'c0,c1,"x\nc0,c1,x\n{SECRET},1,1\n',
        neighbours="add-remove",
    ),
    refused(
        "long-header-and-a-second",
        f"c0,c1,{'x' * (5 << 20)}\nc0,c1,x\n{SECRET},1,1\n",
        neighbours="add-remove",
    ),
    refused("newline-in-the-header", f'c0,c1,"x\ny"\n{SECRET},1,1\n{WORD},1,1\n'),
    refused("long-header", f"c0,c1,{'x' * (5 << 20)}\n{SECRET},1,1\n"),
]

REFUSED_FILES = [
    Refused("no-gzip", {"t.csv.gz": PLAIN}, ("cannot be read",)),
    Refused("gzip-unnamed", {"t.csv": gzip.compress(PLAIN)}),
    Refused("empty-gzip", {"t.csv.gz": gzip.compress(b"")}, ("is empty",)),
    Refused("truncated-gzip", {"t.csv.gz": truncated_gzip()}, ("cannot be read",)),
    Refused("damaged-gzip", {"t.csv.gz": gzip.compress(PLAIN)[:-8] + b"12345678"}),
    Refused("gzip-and-rubbish", {"t.csv.gz": gzip.compress(PLAIN) + PLAIN}),
    Refused("no-zip", {"t.csv.zip": PLAIN}, ("cannot be read",)),
    Refused("no-xz", {"t.csv.xz": PLAIN}, ("cannot be read",)),
    Refused(
        "two-files-in-a-zip",
        {"t.csv.zip": zipped(PLAIN.decode(), "a.csv", "b.csv")},
        ("one CSV file alone",),
    ),
    Refused("nothing-in-a-zip", {"t.csv.zip": zipped("")}, ("one CSV file alone",)),
    Refused("excel", {"t.xlsx": zipped(PLAIN.decode(), "t.csv")}, ("is not .csv",)),
    Refused("text", {"t.txt": PLAIN}, ("is not .csv",)),
    Refused("no-suffix", {"table": PLAIN}, ("is not .csv",)),
    Refused("parquet-named-csv", {"t.csv": whole_parquet()}),
    Refused("missing", {}, ("no such file",), "absent.csv"),
    Refused("folder", {"data/t.txt": PLAIN}, ("is a folder without",), "data"),
    Refused("folder-like-a-file", {"data.csv/_t.csv": PLAIN}, ("is a folder without",), "data.csv"),
    Refused("folder-that-is-a-cell", {f"data/c1={OTHER}/t.csv": b""}, ("c1=*/t.csv",), "data"),
    Refused(
        "folder-of-a-cell-and-broken", {f"data/c1={OTHER}/t.pq": PLAIN}, ("c1=*/t.pq",), "data"
    ),
    Refused(
        "glob-of-folders-that-are-cells",
        {f"data/c1={OTHER}/t.csv": b""},
        ("c1=*/t.csv",),
        "data/*/*",
    ),
    Refused(
        "glob-of-other-files-of-cells", {f"data/c1={OTHER}/t.txt": b""}, ("c1=*/t.txt",), "data/*/*"
    ),
    Refused("folder-of-a-broken-file", {"data/a/t.parquet": PLAIN}, ("a/t.parquet",), "data"),
    Refused("glob-of-nothing", {"t.csv": PLAIN}, ("no such file",), "*.parquet"),
    Refused("glob-of-other-things", {"t.csv": PLAIN}, ("contract.yaml", "is not .csv"), "*"),
    Refused("unknown-place", {}, ("cannot be opened",), "nowhere://t.csv"),
    Refused(
        "second-file-lacks-a-column",
        {"p1.csv": PLAIN, "p2.csv": b"c0,x\n1,2\n"},
        ("p2.csv", "'c1'"),
        "p*",
    ),
    Refused(
        "second-file-utf-16",
        {"p1.csv": PLAIN, "p2.csv": PLAIN.decode().encode("utf-16")},
        ("p2.csv",),
        "p*",
    ),
    Refused("second-file-empty", {"p1.csv": PLAIN, "p2.csv": b""}, ("p2.csv", "is empty"), "p*"),
    Refused(
        "second-file-text",
        {"p1.csv": PLAIN, "p2.parquet": pa.table({"c0": [WORD], "c1": [SECRET]})},
        ("p2.parquet", "'c0'"),
        "p*",
    ),
]

TEXT_LEVELS: dict[str, Any] = {"columns": {"c0": {"levels": ["a", "b"]}}}
NUMBER_LEVELS: dict[str, Any] = {"columns": {"c0": {"levels": [0, 1]}}}

ENCRYPTED = whole_parquet()[:-4] + b"PARE"

NO_PARQUET = ["cannot be read as Parquet"]

REFUSED_PARQUET = [
    Refused("parquet-empty-file", {"t.parquet": b""}, NO_PARQUET),
    Refused("parquet-truncated", {"t.parquet": whole_parquet()[:-1]}, NO_PARQUET),
    Refused("parquet-head-alone", {"t.parquet": whole_parquet()[:40]}, NO_PARQUET),
    Refused("parquet-encrypted", {"t.parquet": ENCRYPTED}, NO_PARQUET),
    Refused("parquet-damaged", {"t.parquet": damaged_parquet()}, NO_PARQUET),
    Refused("csv-named-parquet", {"t.parquet": PLAIN}, NO_PARQUET),
    Refused("parquet-no-columns", {"t.parquet": pa.table({})}, ("'c0', 'c1'",)),
    Refused(
        "parquet-missing-column", {"t.parquet": pa.table({"c0": [SECRET], WORD: [1]})}, ("'c1'",)
    ),
    Refused("parquet-duplicates", {"t.parquet": TWICE}, ("columns 1 and 3",)),
    Refused(
        "parquet-no-rows",
        {"t.parquet": pa.table({"c0": [SECRET], "c1": [OTHER]}).slice(0, 0)},
        ("has 0 rows",),
    ),
    Refused(
        "parquet-inside-a-struct",
        {"t.parquet": pa.table({"c0": [{"x": SECRET}], "c1": [OTHER]})},
        ("'c0.x'",),
        changes={"columns": {"c0.x": COLUMNS["c0"], "c1": COLUMNS["c1"]}},
    ),
    not_numbers("string", [WORD]),
    not_numbers("string-view", pa.array([WORD], pa.string_view())),
    not_numbers("number-strings", [str(SECRET)]),
    not_numbers("large-string", pa.array([WORD], pa.large_string())),
    not_numbers("binary", [str(SECRET).encode()], "binary"),
    not_numbers("fixed-binary", pa.array([b"Rosalind"], pa.binary(8))),
    not_numbers("timestamp", [datetime.datetime(2026, 11, 1)], "timestamp"),
    not_numbers(
        "zoned", pa.array([271828182845], pa.timestamp("us", "Europe/London")), "timestamp"
    ),
    not_numbers("date", [datetime.date(2026, 11, 1)], "date32"),
    not_numbers("time", [datetime.time(12)], "time64"),
    not_numbers("duration", pa.array([271828], pa.duration("us")), "duration"),
    not_numbers("list", [[SECRET, OTHER]], "list"),
    not_numbers("fixed-list", pa.array([[SECRET]], pa.list_(pa.float64(), 1)), "list"),
    not_numbers("struct", [{"x": SECRET}], "struct"),
    not_numbers("map", pa.array([[(WORD, SECRET)]], pa.map_(pa.string(), pa.float64())), "map"),
    not_numbers("dictionary", pa.array([WORD, WORD]).dictionary_encode()),
    not_numbers("empty-strings", pa.nulls(2, pa.string())),
    # pandas stores a column of dicts as a struct: keys of a cell become part of the type.
    not_numbers("keys-of-a-dict", [{WORD: 1.0}], "struct"),
]

REFUSED_LEVELS = [
    Refused(
        f"{name}-as-levels", {"t.parquet": pa.table({"c0": values})}, ("'c0'",), changes=changes
    )
    for name, values, changes in (
        ("numbers", [SECRET, OTHER], TEXT_LEVELS),
        ("booleans", [True, False], TEXT_LEVELS),
        ("timestamps", [datetime.datetime(2026, 11, 1)] * 2, TEXT_LEVELS),
        ("binary", [WORD.encode()] * 2, TEXT_LEVELS),
        ("number-dictionaries", pa.array([SECRET] * 2).dictionary_encode(), TEXT_LEVELS),
        ("texts", [WORD, "1"], NUMBER_LEVELS),
        ("text-dictionaries", pa.array([WORD, "1"]).dictionary_encode(), NUMBER_LEVELS),
        ("structs", [{WORD: "a"}] * 2, TEXT_LEVELS),
    )
]

REFUSED_CONTRACTS = [
    Refused(name, {"t.csv": PLAIN}, words, changes={key: value}, error=ContractError)
    for name, key, value, words in (
        ("no-rows-declared", "rows", 0, ["'rows'"]),
        ("no-columns-declared", "columns", {}, ["'columns'"]),
        ("blanks-around-a-name", "columns", {" c0": COLUMNS["c0"]}, ["'columns'"]),
        ("number-for-a-name", "columns", {2019: COLUMNS["c0"]}, ["columns.2019"]),
        ("list-of-sources", "source", ["t.csv"], ["'source'"]),
        ("too-many-columns", "columns", {f"c{i}": COLUMNS["c1"] for i in range(5001)}, ["5000"]),
        ("levels-alike", "columns", {"c0": {"levels": ["a", "a"]}}, ["columns.c0", "twice"]),
        ("levels-mixed", "columns", {"c0": {"levels": ["a", 1]}}, ["columns.c0", "levels"]),
        ("levels-missing", "columns", {"c0": {"levels": ["a", "NA"]}}, ["columns.c0", "missing"]),
        ("levels-true", "columns", {"c0": {"levels": [True, False]}}, ["columns.c0"]),
        ("levels-none", "columns", {"c0": {"levels": []}}, ["columns.c0"]),
        ("levels-and-bounds", "columns", {"c0": {"levels": [0, 1], "lower": 0}}, ["columns.c0"]),
        ("no-facts", "columns", {"c0": None}, ["columns.c0"]),
        ("list-of-columns", "columns", ["c0", "c1"], ["'columns'"]),
    )
]

ALL_REFUSED = REFUSED_CSV + REFUSED_FILES + REFUSED_PARQUET + REFUSED_LEVELS + REFUSED_CONTRACTS
