"""Tables that are read, with their expected rows."""

from __future__ import annotations

import bz2
import datetime
import gzip
import lzma
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from tests.acceptance.hostile.table_cases import (
    BIG,
    COLUMNS,
    INF,
    NAN,
    WORD,
    Read,
    Row,
    csv,
    parquet,
    written,
    zipped,
)

ROWS: list[Row] = [[2, 5], [-3, 0.5], [9.5, -4]]
TEXT = "c0,c1\n2,5\n-3,0.5\n9.5,-4\n"

# The text of a cell, and its number; NaN if it counts as missing.
SPELLINGS: list[tuple[str, str, float]] = [
    ("plus", "+5", 5),
    ("point-first", ".5", 0.5),
    ("point-last", "5.", 5),
    ("exponent", "5e-1", 0.5),
    ("capital-exponent", "5E+0", 5),
    ("minus-zero", "-0", 0),
    ("unicode-minus", "−5", -5),
    ("leading-zeros", "0" * 500 + "5", 5),
    ("quoted", '"5"', 5),
    ("quoted-with-blanks", '" 5 "', 5),
    ("blanks", "  5\t ", 5),
    ("1e400", "1e400", INF),
    ("minus-1e400", "-1e400", -INF),
    ("400-digits", "9" * 400, INF),
    ("1e308", "1e308", 1e308),
    ("1e-400", "1e-400", 0),
    ("denormal", "5e-324", 5e-324),
    ("inf", "inf", INF),
    ("minus-inf", "-inf", -INF),
    ("infinity", "Infinity", INF),
    ("nan", "nan", NAN),
    ("capital-nan", "NAN", NAN),
    ("nan-payload", "nan(123)", NAN),
    ("empty", "", NAN),
    ("quoted-empty", '""', NAN),
    ("na", "NA", NAN),
    ("none", "None", NAN),
    ("true", "true", NAN),
    ("capital-true", "True", NAN),
    ("full-width", "５", NAN),
    ("arabic-indic", "٥", NAN),
    ("superscript", "5²", NAN),
    ("no-break-space", "\u00a05", NAN),
    ("zero-width-space", "5\u200b", NAN),
    ("underscore", "1_000", NAN),
    ("thousands", '"1,000"', NAN),
    ("thousands-blank", "1 000", NAN),
    ("decimal-comma", '"1,5"', NAN),
    ("thousands-points", "1.000.000", NAN),
    ("hexadecimal", "0x10", NAN),
    ("hexadecimal-float", "0x1p3", NAN),
    ("binary", "0b1", NAN),
    ("percent", "50%", NAN),
    ("currency", "$5", NAN),
    ("suffix", "5f", NAN),
    ("fortran", "1d5", NAN),
    ("complex", "1+2j", NAN),
    ("fraction", "1/2", NAN),
    ("bookkeeping", "(5)", NAN),
    ("two-signs", "--5", NAN),
    ("half-exponent", "1e", NAN),
    ("formula", "=1+1", NAN),
    ("apostrophe", "'5", NAN),
    ("date", "2026-11-01", NAN),
    ("nul", "\x00", NAN),
    ("nul-after", "5\x00", NAN),
    ("text", "x", NAN),
]

READ_CSV = [
    csv("plain", TEXT, ROWS),
    csv("no-last-newline", TEXT.rstrip(), ROWS),
    csv("crlf", TEXT.replace("\n", "\r\n"), ROWS),
    csv("crlf-no-last-newline", TEXT.replace("\n", "\r\n").rstrip(), ROWS),
    csv("byte-order-mark", "\ufeff" + TEXT, ROWS),
    csv("byte-order-mark-quoted", '\ufeff"c0","c1"\n2,5\n', [[2, 5]]),
    csv("byte-order-mark-crlf", "\ufeff" + TEXT.replace("\n", "\r\n"), ROWS),
    csv("quoted-header", '"c0","c1"\n"2","5"\n', [[2, 5]]),
    csv("quoted-commas", 'c0,note,c1\n2,"a, ""b"", c",5\n', [[2, 5]]),
    csv("quotes-inside", 'c0,note,c1\n2,5" wide,5\n', [[2, 5]]),
    csv("other-order", "c1,c0\n5,2\n", [[2, 5]]),
    csv("undeclared-columns", f"x,c1,y,c0,z\n{WORD},5,,2,2026\n", [[2, 5]]),
    csv("undeclared-text-everywhere", "c0,c1,x\n" + "2,5,ä\n" * 3, [[2, 5]] * 3),
    csv("trailing-comma-throughout", "c0,c1,\n2,5,\n-3,0.5,\n", [[2, 5], [-3, 0.5]]),
    csv("trailing-comma-in-a-row", "c0,c1\n2,5,\n-3,0.5\n", [None, [-3, 0.5]]),
    csv("extra-field", "c0,c1\n2,5,7\n-3,0.5\n", [None, [-3, 0.5]]),
    csv("missing-field", "c0,c1\n2\n-3,0.5\n", [None, [-3, 0.5]]),
    csv("unquoted-thousands", "c0,c1\n1,000,5\n-3,0.5\n", [None, [-3, 0.5]]),
    csv("semicolons-in-a-row", "c0,c1\n2;5\n-3,0.5\n", [None, [-3, 0.5]]),
    csv("blank-lines", "c0,c1\n\n2,5\n\n\n-3,0.5\n\n", [None, [2, 5], None, None, [-3, 0.5], None]),
    csv("blank-lines-crlf", "c0,c1\r\n\r\n2,5\r\n\r\n", [None, [2, 5], None]),
    csv("blanks-alone", "c0,c1\n  \n2,5\n", [None, [2, 5]]),
    csv("commas-alone", "c0,c1\n,\n2,5\n", [[NAN, NAN], [2, 5]]),
    csv("lone-return", "c0,c1\n2,5\r-3,0.5\n9.5,-4\n", [None, [9.5, -4]]),
    csv("returns-before-crlf", "c0,c1\r\n2,5\r\r\n9.5,-4\r\n", [None, [9.5, -4]]),
    csv("open-quote", 'c0,c1\n2,"5\n-3,0.5\n', [None, [-3, 0.5]]),
    csv("open-quote-at-the-end", 'c0,c1\n2,5\n-3,"0.5', [[2, 5], None]),
    csv("newline-in-quotes", 'c0,note,c1\n2,"a\nb",5\n9.5,x,-4\n', [None, None, [9.5, -4]]),
    csv("nul-bytes", b"c0,c1\n2,5\n\x00,\x000\x00.5\x00\n9.5,-4\n", [[2, 5], [NAN, NAN], ROWS[2]]),
    csv("mixed-encodings", b"c0,x,c1\n2,\xe4,5\n-3,\xc3\xa4,0.5\n", [[2, 5], [-3, 0.5]]),
    csv("mixed-encodings-in-cells", b"c0,c1\n\xff2,5\n-3,0.5\xe4\n", [[NAN, 5], [-3, NAN]]),
    csv("surrogates", b"c0,c1\n\xed\xa0\x80,5\n", [[NAN, 5]]),
    csv(
        "utf-16-in-a-row",
        b"c0,c1\n" + "2,5".encode("utf-16") + b"\n9.5,-4\n",
        [[NAN, NAN], ROWS[2]],
    ),
    csv("unicode-line-breaks", "c0,x,c1\n2,a\u2028b\x0b\x0c\x85,5\n", [[2, 5]]),
    csv("end-of-file-mark", "c0,c1\n2,5\n\x1a\n", [[2, 5], None]),
    csv("the-header-again", TEXT + TEXT, [*ROWS, [NAN, NAN], *ROWS]),
    csv("comments", "c0,c1\n#2,5\n", [[NAN, 5]]),
    csv("one-row", "c0,c1\n2,5\n", [[2, 5]]),
    csv("one-row-at-the-centre", "c0,c1\n1,2\n", [[1, 2]]),
    csv("constant-columns", "c0,c1\n" + "7,-1\n" * 50, [[7, -1]] * 50),
    csv("constant-at-the-centre", "c0,c1\n" + "1,2\n" * 50, [[1, 2]] * 50),
    csv("one-constant-column", "c0,c1\n1,5\n1,-4\n1,2\n", [[1, 5], [1, -4], [1, 2]]),
    csv("all-cells-empty", "c0,c1\n" + ",\n" * 3, [[NAN, NAN]] * 3),
    csv("beyond-the-bounds", "c0,c1\n11,5\n-1e9,9\n10,8\n", [[11, 5], [-1e9, 9], [10, 8]]),
    csv("no-rows", "c0,c1\n", [], rows=7, neighbours="add-remove"),
    csv("no-rows-no-newline", "c0,c1", [], rows=7, neighbours="add-remove"),
    csv("other-number-of-rows", TEXT, ROWS, rows=10**4, neighbours="add-remove"),
    csv("one-column", "c1\n5\n\n-4\n", [[5], None, [-4]], columns={"c1": COLUMNS["c1"]}),
    csv(
        "fewer-rows-than-columns",
        "a,b,c,d,e\n1,2,3,4,5\n-2,0,,9,1\n",
        [[1, 2, 3, 4, 5], [-2, 0, NAN, 9, 1]],
        columns={n: {"lower": -3, "upper": 7} for n in "abcde"},
    ),
    csv(
        "integers-beyond-doubles",
        f"c0,c1\n{BIG + 1},2\n{BIG + 2},5\n{2**64},5\n",
        [[BIG, 2], [BIG + 2, 5], [2.0**64, 5]],
        columns=COLUMNS | {"c0": {"lower": BIG - 8, "upper": BIG + 8}},
    ),
    csv(
        "strange-names",
        '"a, b","say ""c0""",größe,$PARAMETER,c0.x,数,index,0,%s{}\n1,2,3,4,5,6,7,8,9\n',
        [[1, 2, 3, 4, 5, 6, 7, 8, 9]],
        columns={
            n: {"lower": 0, "upper": 9, "centre": 1, "scale": 2}
            for n in ("a, b", 'say "c0"', "größe", "$PARAMETER", "c0.x", "数", "index", "0", "%s{}")
        },
    ),
]


READ_FILES = [
    Read("gzip", {"t.csv.gz": gzip.compress(TEXT.encode())}, ROWS),
    Read("gzip-capitals", {"T.CSV.GZ": gzip.compress(TEXT.encode())}, ROWS),
    Read(
        "gzip-two-members",
        {"t.csv.gz": gzip.compress(b"c0,c1\n2,") + gzip.compress(b"5\n")},
        [[2, 5]],
    ),
    Read("bzip2", {"t.csv.bz2": bz2.compress(TEXT.encode())}, ROWS),
    Read("xz", {"t.csv.xz": lzma.compress(TEXT.encode())}, ROWS),
    Read("zip", {"t.csv.zip": zipped(TEXT, "t.csv")}, ROWS),
    Read("blanks-in-the-name", {"blood values (1).csv": TEXT.encode()}, ROWS),
    Read("brackets-in-the-name", {"blood[0-9]{2}.csv": TEXT.encode()}, ROWS),
    Read("star-in-the-name", {"blood*?.csv": TEXT.encode()}, ROWS),
    Read("percent-in-the-name", {"blood%20#1.csv": TEXT.encode()}, ROWS),
    Read("unicode-in-the-name", {"größe 数.csv": TEXT.encode()}, ROWS),
    Read("folder-with-a-suffix", {"blood.csv/t.csv": TEXT.encode()}, ROWS),
    Read(
        "several-files-in-another-order",
        {"p-1.csv": b"c0,c1\n2,5\n", "p-2.csv": b"c1,x,c0\n0.5,7,-3\n", "p-3.csv": b"c1,c0\n"},
        ROWS[:2],
        "p-*.csv",
    ),
    Read(
        "several-formats",
        {
            "p-1.csv": b"c0,c1\n2,5\n",
            "p-2.csv.gz": gzip.compress(b"c0,c1\r\n-3,0.5"),
            "p-3.parquet": pa.table({"c1": pa.array([-4], pa.int8()), "c0": [Decimal("9.5")]}),
        },
        ROWS,
        "p-*",
    ),
    Read(
        "several-types",
        {
            "p-1.parquet": pa.table({"c0": [2], "c1": [5.0]}),
            "p-2.parquet": pa.table({"c0": [-3.0], "c1": pa.nulls(1)}),
        },
        [[2, 5], [-3, NAN]],
        "p-?.parquet",
    ),
    Read(
        "folder",
        {
            "data/c1=5/t.parquet": pa.table({"c0": [2, None]}),
            "data/c1=Rosalind/t.csv": b"c0\n3\n",
            "data/c1=/t.csv": b"c0\n\n4\n",
            "data/t.csv": b"c0,c1\n7,-1\n",
            "data/_SUCCESS": b"",
        },
        [None, [4, NAN], [2, 5], [NAN, 5], [3, NAN], [7, -1]],
        "data",
    ),
]

READ_PARQUET = [
    parquet("int8", pa.array([-7, None, 127], pa.int8()), [-7, NAN, 127]),
    parquet("uint8", pa.array([0, 5, 255], pa.uint8()), [0, 5, 255]),
    parquet("int32", pa.array([-7, None], pa.int32()), [-7, NAN]),
    parquet("uint64", pa.array([5, None, 2**64 - 1], pa.uint64()), [5, NAN, 2.0**64]),
    parquet("float16", pa.array(np.array([1.5, NAN, INF, -4], np.float16)), [1.5, NAN, INF, -4]),
    parquet("float32", pa.array([1.5, None, INF, 3e38], pa.float32()), [1.5, NAN, INF, 3e38]),
    parquet("double", pa.array([5e-324, None, NAN, -INF, 1e308]), [5e-324, NAN, NAN, -INF, 1e308]),
    parquet("boolean", pa.array([True, False, None]), [1, 0, NAN]),
    parquet("decimal", pa.array([Decimal("1.25"), None, Decimal("-3.50")]), [1.25, NAN, -3.5]),
    parquet("decimal32", pa.array([Decimal("1.25"), None], pa.decimal32(5, 2)), [1.25, NAN]),
    parquet("decimal64", pa.array([Decimal("1.25"), None], pa.decimal64(12, 2)), [1.25, NAN]),
    parquet("decimal256", pa.array([Decimal(10) ** 70, None], pa.decimal256(76, 3)), [1e70, NAN]),
    parquet("all-null", pa.nulls(3), [NAN] * 3),
    parquet("all-null-doubles", pa.nulls(3, pa.float64()), [NAN] * 3),
    parquet("dictionary", pa.array([1.5, -2, 1.5, None]).dictionary_encode(), [1.5, -2, 1.5, NAN]),
    parquet("dictionary-of-integers", pa.array([4, 4, None]).dictionary_encode(), [4, 4, NAN]),
    parquet("one-row", pa.array([4]), [4]),
    parquet("constant", pa.array([4] * 50), [4] * 50),
    parquet("chunks", pa.chunked_array([[1.0], [], [2.0, None]]), [1, 2, NAN]),
    Read(
        "nullable-integers-beyond-doubles",
        {"t.parquet": pa.table({"c0": [BIG + 1, None, BIG + 2, -(2**63)], "c1": [2, 5, 5, 5]})},
        [[BIG, 2], [NAN, 5], [BIG + 2, 5], [-(2.0**63), 5]],
        changes={"columns": COLUMNS | {"c0": {"lower": BIG - 8, "upper": BIG + 8}}},
    ),
    Read(
        "undeclared-parquet-columns",
        {
            "t.parquet": pa.table(
                {
                    "c0.x": [WORD],
                    "s": [{"c0": 7, "c1": WORD}],
                    "c1": [5],
                    "l": [[1, 2]],
                    "c0": [2],
                    "when": [datetime.datetime(2026, 11, 1)],
                    "__index_level_0__": [0],
                }
            )
        },
        [[2, 5]],
    ),
    Read(
        "names-with-points",
        {"t.parquet": pa.table({"a": [{"b": 7.0}], "a.b": [2.0], "a.": [5.0]})},
        [[2, 5]],
        changes={"columns": {"a.b": COLUMNS["c0"], "a.": COLUMNS["c1"]}},
    ),
    Read(
        "no-parquet-rows",
        {"t.parquet": pa.table({"c0": pa.array([], pa.int64()), "c1": pa.array([], pa.float64())})},
        [],
        changes={"rows": 7, "neighbours": "add-remove"},
    ),
    Read(
        "fewer-parquet-rows-than-columns",
        {"t.parquet": pa.table({n: [k, -1.0] for k, n in enumerate("abcde")})},
        [[0, 1, 2, 3, 4], [-1] * 5],
        changes={"columns": {n: {"lower": -3, "upper": 7} for n in "abcde"}},
    ),
    Read(
        "one-parquet-row-of-nothing",
        {"t.parquet": pa.table({"c0": pa.nulls(1, pa.int64()), "c1": pa.nulls(1, pa.float64())})},
        [[NAN, NAN]],
    ),
    Read("capital-suffix", {"T.PARQUET": pa.table({"c0": [2], "c1": [5]})}, [[2, 5]]),
    Read("short-suffix", {"t.pq": pa.table({"c0": [2], "c1": [5]})}, [[2, 5]]),
]

MIXED = pa.table(
    {
        "c0": pa.array([2, -3, None] * 300, pa.int64()),
        "c1": [5.0, 0.5, -4.0] * 300,
        "x": [WORD] * 900,
    }
)
MIXED_ROWS: list[Row] = [[2, 5], [-3, 0.5], [NAN, -4]] * 300

READ_PACKED = [
    Read(f"parquet-{name}", {"t.parquet": written(MIXED, **options)}, MIXED_ROWS)
    for name, options in (
        ("of-version-1", {"version": "1.0", "data_page_version": "1.0"}),
        ("pages-of-version-2", {"data_page_version": "2.0", "compression": "gzip"}),
        ("small-pages", {"data_page_size": 64, "compression": "brotli", "write_batch_size": 16}),
        ("small-row-groups", {"row_group_size": 7, "compression": "lz4"}),
        ("uncompressed", {"use_dictionary": False, "compression": "none"}),
        ("without-a-schema-of-arrow", {"store_schema": False, "compression": "zstd"}),
        ("with-an-index-of-pages", {"write_page_index": True, "write_page_checksum": True}),
        (
            "delta",
            {
                "use_dictionary": False,
                "column_encoding": {
                    "c0": "DELTA_BINARY_PACKED",
                    "c1": "BYTE_STREAM_SPLIT",
                    "x": "DELTA_BYTE_ARRAY",
                },
            },
        ),
    )
]

GROUP: dict[str, Any] = {"g": {"levels": ["a", "b c", "ä", "1"]}, "c1": COLUMNS["c1"]}
CLASS: dict[str, Any] = {"c1": COLUMNS["c1"], "k": {"levels": [0, 1, -2.5, BIG + 2]}}


def texts(name: str, values: pa.Array, expected: Sequence[Any]) -> Read:
    table = pa.table({"c1": [3.0] * len(values), "g": values})
    return Read(name, {"t.parquet": table}, [[x, 3] for x in expected], changes={"columns": GROUP})


READ_LEVELS = [
    csv(
        "levels",
        "g,c1\na,3\n b c ,3\nä,3\n1,3\n",
        [["a", 3], ["b c", 3], ["ä", 3], ["1", 3]],
        columns=GROUP,
    ),
    csv(
        "no-levels",
        "g,c1\nA,3\nb  c,3\n,3\nNA,3\na\u0308,3\n01,3\n1.0,3\n\u00a0a,3\na\x00,3\n１,3\n",
        [[NAN, 3]] * 4 + [["ä", 3]] + [[NAN, 3]] * 5,
        columns=GROUP,
    ),
    csv("levels-malformed", b'g,c1\n"a,3\n\xe4,3\na,3,\n', [None, [NAN, 3], None], columns=GROUP),
    csv(
        "levels-in-long-cells-of-text",
        f"g,c1\na,3\n{' ' * 1000}a,3\n{' ' * 5000}a,3\n",
        [["a", 3], ["a", 3], [NAN, 3]],
        columns=GROUP,
    ),
    csv("levels-quoted", 'g,c1\n"a",3\n"b c","3"\n', [["a", 3], ["b c", 3]], columns=GROUP),
    csv(
        "numbers-as-levels",
        f"k,c1\n1,3\n01.0,3\n-25e-1,3\n-0,3\n{BIG + 2},3\n{BIG},3\ntrue,3\n1e400,3\n,3\n１,3\n",
        [[3, x] for x in (1, 1, -2.5, 0, BIG + 2, NAN, NAN, NAN, NAN, NAN)],
        columns=CLASS,
    ),
    csv("one-level", "g\na\nb\n", [["a"], [NAN]], columns={"g": {"levels": ["a"]}}),
    csv("intercept", TEXT + "\n1,2\n", [*ROWS, None, [1, 2]], intercept=True),
    csv(
        "intercept-and-levels",
        "g,c1\na,3\nx,\n",
        [["a", 3], [NAN, NAN]],
        columns=GROUP,
        intercept=True,
    ),
    texts("text-levels", pa.array(["a", None, "b c", "x", ""]), ["a", NAN, "b c", NAN, NAN]),
    texts("large-text-levels", pa.array(["a", None], pa.large_string()), ["a", NAN]),
    texts(
        "dictionary-levels",
        pa.array(["ä", "a", None, "ä"]).dictionary_encode(),
        ["ä", "a", NAN, "ä"],
    ),
    texts("text-view-levels", pa.array(["a", None, "x"], pa.string_view()), ["a", NAN, NAN]),
    texts(
        "levels-not-utf-8",
        pa.array([b"a", b"\xff", b"\xc3", b"a\xff", "ä".encode()]).view(pa.string()),
        ["a", NAN, NAN, NAN, "ä"],
    ),
    texts(
        "dictionaries-not-utf-8",
        pa.DictionaryArray.from_arrays([1, 0, None], pa.array([b"a", b"\xff"]).view(pa.string())),
        [NAN, "a", NAN],
    ),
    texts(
        "levels-in-long-cells",
        pa.array(["a", " " * 1000 + "a", " " * 5000 + "a", "a" * 5000, "a\0"]),
        ["a", "a", NAN, NAN, NAN],
    ),
    # As pandas writes a column of texts that are all missing.
    texts("all-null-levels", pa.nulls(2), [NAN, NAN]),
    *(
        Read(
            f"{name}-as-levels",
            {"t.parquet": pa.table({"k": values, "c1": [3] * len(values)})},
            [[3, x] for x in numbers],
            changes={"columns": CLASS},
        )
        for name, values, numbers in (
            ("booleans", pa.array([True, False, None]), [1, 0, NAN]),
            ("integers", pa.array([1, 2, BIG + 2, None]), [1, NAN, BIG + 2, NAN]),
            ("doubles", pa.array([1.0, -2.5, NAN, INF, None]), [1, -2.5, NAN, NAN, NAN]),
            ("decimals", pa.array([Decimal("-2.50"), None]), [-2.5, NAN]),
            ("number-dictionaries", pa.array([1, 0, 1]).dictionary_encode(), [1, 0, 1]),
        )
    ),
]

ALL_READ = READ_CSV + READ_FILES + READ_PARQUET + READ_PACKED + READ_LEVELS
