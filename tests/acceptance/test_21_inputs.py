"""Hostile tables: the right matrix, or a typed error naming file and column and never a value."""

from __future__ import annotations

import bz2
import dataclasses
import datetime
import gzip
import io
import itertools
import lzma
import math
import os
import traceback
import zipfile
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.local import LocalFileSystem

from schemas.errors import ContractError, Invalid, TableError
from schemas.lattice import Lattice
from tables.accumulate import Accumulated
from tasks.accumulate import accumulate
from tasks.validate import validate
from tests.making import FULL, alone, plan_of, scene

NAN, INF = math.nan, math.inf
BIG = 2**53

# What stands in cells where an error is expected, and in no message.
SECRET, OTHER, WORD = 271828.182845, 314159.265358, "Rosalind"
PLANTED = ("271828", "314159", "Rosalind")
CELLS = f"{SECRET},{OTHER}\n{WORD},{OTHER}\n"
PLAIN = f"c0,c1\n{CELLS}".encode()

COLUMNS: dict[str, Any] = {
    "c0": {"lower": -10, "upper": 10, "centre": 1, "scale": 2},
    "c1": {"lower": -4, "upper": 8},  # centre 2, scale 6
}

Row = Sequence[Any] | None  # NaN where no number or level stands; None for a line that is no record
Content: TypeAlias = bytes | pa.Table


@dataclasses.dataclass(frozen=True)
class Read:
    """A table that is read, and the rows that are found in it."""

    name: str
    files: Mapping[str, Content]
    rows: Sequence[Row]
    source: str = ""  # where it is not the one file
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True)
class Refused:
    """A table that is refused, and what the error says beside the name of the source."""

    name: str
    files: Mapping[str, Content]
    words: Sequence[str] = ()
    source: str = ""
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    error: type[Invalid] = TableError

    def __str__(self) -> str:
        return self.name


def lay(folder: Path, case: Read | Refused) -> Path:
    """The case's files, contract and request; returns the request."""
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            pq.write_table(content, path)
    rows = len(case.rows) if isinstance(case, Read) else 2
    facts = {"source": case.source or next(iter(case.files)), "rows": rows, "columns": COLUMNS}
    return scene(folder, **(facts | dict(case.changes)))


def steps(request: Path) -> tuple[dict[str, Any], Accumulated, Lattice]:
    """Validate and accumulate on the finest lattice, as a release does."""
    sampled = alone(validate)(plan_of(request).contract)
    return sampled, *summed(request)


def summed(request: Path) -> tuple[Accumulated, Lattice]:
    plan = plan_of(request)
    fine = Lattice(plan.lattice.p, 20)
    return alone(accumulate)(dataclasses.replace(plan, lattice=fine)).sums, fine


@dataclasses.dataclass
class Reference:
    """The exact Gram matrix and the repairs, worked out cell by cell in plain Python."""

    columns: Mapping[str, Mapping[str, Any]]
    intercept: bool = False
    malformed: int = 0

    def __post_init__(self) -> None:
        self.filled, self.clamped = [0] * len(self.columns), [0] * len(self.columns)
        self.units: list[list[float]] = []

    def add(self, row: Row) -> None:
        if row is None:
            self.malformed += 1
            return
        scaled = [1.0] if self.intercept else []
        for i, (cell, facts) in enumerate(zip(row, self.columns.values(), strict=True)):
            if "levels" in facts:
                self.filled[i] += cell not in facts["levels"]
                scaled += [float(cell == level) for level in facts["levels"]]
                continue
            lower, upper = facts["lower"], facts["upper"]
            centre = facts.get("centre", (lower + upper) / 2)
            scale = facts.get("scale", (upper - lower) / 2)
            kept = cell if math.isfinite(cell) else centre
            inside = min(max(kept, lower), upper)
            self.filled[i] += not math.isfinite(cell)
            self.clamped[i] += inside != kept
            scaled.append((inside - centre) / scale)
        length = math.hypot(*scaled)
        self.units.append([x / length if length else 0.0 for x in scaled])

    def gram(self) -> list[list[float]]:
        p = range(
            int(self.intercept) + sum(len(c.get("levels", [0])) for c in self.columns.values())
        )
        return [[math.fsum(x[i] * x[j] for x in self.units) for j in p] for i in p]


def csv(name: str, text: str | bytes, found: Sequence[Row], /, **changes: Any) -> Read:
    data = text.encode() if isinstance(text, str) else text
    return Read(name, {"t.csv": data}, found, changes=changes)


def parquet(name: str, values: pa.Array, numbers: Sequence[float]) -> Read:
    """A column of Parquet beside one of threes."""
    table = pa.table({"c1": [3.0] * len(values), "c0": values})
    return Read(name, {"t.parquet": table}, [[x, 3] for x in numbers])


ROWS: list[Row] = [[2, 5], [-3, 0.5], [9.5, -4]]
TEXT = "c0,c1\n2,5\n-3,0.5\n9.5,-4\n"

# One cell beside a 3, as a CSV spells it: a number, or taken for missing.
SPELLINGS: list[tuple[str, str, float]] = [
    ("plus", "+5", 5),
    ("point-first", ".5", 0.5),
    ("point-last", "5.", 5),
    ("exponent", "5e-1", 0.5),
    ("capital-exponent", "5E+0", 5),
    ("minus-zero", "-0", 0),
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
    ("unicode-minus", "−5", NAN),
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
    csv("nothing-there", "c0,c1\n" + ",\n" * 3, [[NAN, NAN]] * 3),
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


def zipped(text: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("t.csv", text)
    return made.getvalue()


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
    Read("zip", {"t.csv.zip": zipped(TEXT)}, ROWS),
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
    Read("capital-suffix", {"T.PARQUET": pa.table({"c0": [2], "c1": [5]})}, [[2, 5]]),
    Read("short-suffix", {"t.pq": pa.table({"c0": [2], "c1": [5]})}, [[2, 5]]),
]

GROUP: dict[str, Any] = {"g": {"levels": ["a", "b c", "ä", "1"]}, "c1": COLUMNS["c1"]}
CLASS: dict[str, Any] = {"c1": COLUMNS["c1"], "k": {"levels": [0, 1, -2.5, BIG + 2]}}


def texts(name: str, values: pa.Array, found: Sequence[Any]) -> Read:
    table = pa.table({"c1": [3.0] * len(values), "g": values})
    return Read(name, {"t.parquet": table}, [[x, 3] for x in found], changes={"columns": GROUP})


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
        [[NAN, 3]] * 10,
        columns=GROUP,
    ),
    csv("levels-malformed", b'g,c1\n"a,3\n\xe4,3\na,3,\n', [None, [NAN, 3], None], columns=GROUP),
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
    # What pandas writes of texts that are all missing.
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

ALL_READ = READ_CSV + READ_FILES + READ_PARQUET + READ_LEVELS


def agreed(case: Read, sums: Accumulated, lattice: Lattice) -> Reference:
    """The reference, after comparing the sums with it."""
    changes = case.changes
    reference = Reference(changes.get("columns", COLUMNS), changes.get("intercept", False))
    for row in case.rows:
        reference.add(row)
    found = sums.gram.astype(float) / lattice.divisor
    # Rounding a unit row moves a product of two entries by less than 1/(2^K c).
    slack = (len(case.rows) + 1) / lattice.cell
    np.testing.assert_allclose(found, reference.gram(), rtol=0, atol=slack)
    assert sums.rows == len(case.rows)
    assert sums.malformed == reference.malformed
    assert sums.repairs.filled.tolist() == reference.filled
    assert sums.repairs.clamped.tolist() == reference.clamped
    return reference


@pytest.mark.parametrize("case", ALL_READ, ids=str)
def test_read(case: Read, tmp_path: Path) -> None:
    sampled, sums, lattice = steps(lay(tmp_path, case))
    reference = agreed(case, sums, lattice)
    if len(case.files) == 1:  # then the sample is all of it
        for key, counts in (
            ("columns_with_gaps", reference.filled),
            ("columns_out_of_bounds", reference.clamped),
        ):
            named = zip(reference.columns, counts, strict=True)
            assert sampled["sample"][key] == [name for name, count in named if count]


@pytest.mark.parametrize(("name", "cell", "number"), SPELLINGS, ids=[s[0] for s in SPELLINGS])
def test_read_cell(name: str, cell: str, number: float, tmp_path: Path) -> None:
    case = csv(name, f"c0,c1\n{cell},3\n2,5\n", [[number, 3], [2, 5]])
    agreed(case, *summed(lay(tmp_path, case)))


def refused(name: str, text: str | bytes, *words: str, **changes: Any) -> Refused:
    data = text.encode() if isinstance(text, str) else text
    return Refused(name, {"t.csv": data}, words, changes=changes)


def not_numbers(name: str, values: pa.Array | list[Any], *words: str) -> Refused:
    """A column of Parquet that is refused for its type."""
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
    """A good footer over pages that are none."""
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
    Refused("excel", {"t.xlsx": zipped(PLAIN.decode())}, ("is not .csv",)),
    Refused("text", {"t.txt": PLAIN}, ("is not .csv",)),
    Refused("no-suffix", {"table": PLAIN}, ("is not .csv",)),
    Refused("parquet-named-csv", {"t.csv": whole_parquet()}),
    Refused("missing", {}, ("no such file",), "absent.csv"),
    Refused("folder", {"data/t.csv": PLAIN}, ("is a folder",), "data"),
    Refused("folder-like-a-file", {"data.csv/t.csv": PLAIN}, ("is a folder",), "data.csv"),
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

NO_PARQUET = ["cannot be read as Parquet"]

REFUSED_PARQUET = [
    Refused("parquet-empty-file", {"t.parquet": b""}, NO_PARQUET),
    Refused("parquet-truncated", {"t.parquet": whole_parquet()[:-1]}, NO_PARQUET),
    Refused("parquet-head-alone", {"t.parquet": whole_parquet()[:40]}, NO_PARQUET),
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
    # What pandas makes of a column of dicts: the keys of somebody's cell become part of the type.
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


def said(caught: pytest.ExceptionInfo[Invalid]) -> str:
    """All that could be shown of an error, history included."""
    return "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("case", ALL_REFUSED, ids=str)
def test_refused(
    case: Refused,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    request = lay(tmp_path, case)
    caplog.set_level(0)
    with pytest.raises(case.error) as caught:
        steps(request)
    file = "contract.yaml" if case.error is ContractError else case.source or next(iter(case.files))
    several = case.source in ("p*", "*")  # then the words name the one
    for words in (*case.words, *([] if several else [file])):
        assert words in str(caught.value)
    assert caught.value.exit_code == 2
    out, err = capfd.readouterr()
    for planted in PLANTED:
        assert planted not in said(caught) + out + err + caplog.text


def test_brackets_in_the_contracts_folder(tmp_path: Path) -> None:
    """Only what the steward wrote is a pattern, not where the contract happens to lie."""
    folder = tmp_path / "blood [2026]"
    folder.mkdir()
    for source in ("blood.csv", "blood*.csv"):
        _, sums, _ = steps(lay(folder, Read("", {"blood.csv": TEXT.encode()}, ROWS, source)))
        assert sums.rows == 3


def test_links(tmp_path: Path) -> None:
    case = Read("", {"t.csv": TEXT.encode()}, ROWS, "link.csv")
    request = lay(tmp_path, case)
    (tmp_path / "link.csv").symlink_to(tmp_path / "t.csv")
    assert steps(request)[1].rows == 3
    for target in ("absent.csv", "link.csv"):
        (tmp_path / "link.csv").unlink()
        (tmp_path / "link.csv").symlink_to(tmp_path / target)
        with pytest.raises(TableError, match=r"link\.csv: no such file"):
            steps(request)


def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    request = lay(tmp_path, Read("", {"t.csv": TEXT.encode()}, ROWS, "pipe.csv"))
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(TableError, match=r"pipe\.csv"):
        steps(request)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
@pytest.mark.parametrize("step", [validate, accumulate], ids=["validate", "accumulate"])
def test_unreadable(name: str, step: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {"t.csv": PLAIN, "t.csv.gz": gzip.compress(PLAIN), "t.parquet": whole_parquet()}
    plan = plan_of(lay(tmp_path, Refused("", {name: whole[name]})))
    (tmp_path / name).chmod(0)
    if os.geteuid() == 0:  # who may read everything

        def refuse(*_: Any, **__: Any) -> None:
            raise PermissionError(13, "Permission denied", WORD)

        monkeypatch.setattr(LocalFileSystem, "_open", refuse)
    with pytest.raises(TableError) as caught:
        alone(step)(plan.contract if step is validate else plan)
    assert f"{name}: cannot be " in str(caught.value)
    assert not any(planted in said(caught) for planted in PLANTED)


def test_gone_between_the_steps(tmp_path: Path) -> None:
    """The table may change after it was validated: the error still names it."""
    good = pa.table({"c0": [2.0], "c1": [5.0]})
    bad: dict[str, Content | None] = {
        "gone": None,
        "text": pa.table({"c0": [WORD], "c1": [SECRET]}),
        "twice": TWICE,
        "lacking": pa.table({"c1": [SECRET]}),
        "damaged": damaged_parquet(),
    }
    for name, content in bad.items():
        folder = tmp_path / name
        folder.mkdir()
        request = lay(folder, Read("", {"t.parquet": good}, [[2, 5]]))
        plan = plan_of(request)
        alone(validate)(plan.contract)
        (folder / "t.parquet").unlink()
        if content is not None:
            lay(folder, Read("", {"t.parquet": content}, [None]))
        if name == "text":  # cells that are no numbers, and take the centre
            assert alone(accumulate)(plan).sums.repairs.filled.tolist() == [1, 0]
            continue
        with pytest.raises(TableError, match=r"t\.parquet") as caught:
            alone(accumulate)(plan)
        assert not any(planted in said(caught) for planted in PLANTED)


def test_as_many_columns_as_may_be_declared(tmp_path: Path) -> None:
    p = 5000
    names = [f"c{i}" for i in range(p)]
    signs = np.where(np.arange(p) % 3 == 0, -1.0, 1.0)
    lines = [names, [f"{x:g}" for x in signs], ["x"] * p]
    files: dict[str, Content] = {
        "t.csv": "".join(",".join(line) + "\n" for line in lines).encode(),
        "t.parquet": pa.table({n: [x, 0.0] for n, x in zip(names, signs, strict=True)}),
    }
    columns = {n: {"lower": -2, "upper": 2} for n in names}
    case = Read("", files, [None] * 4, "t.*", changes={"columns": columns})
    plan = plan_of(lay(tmp_path, case))
    if FULL:  # minutes
        alone(validate)(plan.contract)
    sums = alone(accumulate)(plan).sums
    found = sums.gram / plan.lattice.divisor
    slack = 2 / plan.lattice.cell
    for i, j in itertools.product((0, 1, 2, 2500, 4999), repeat=2):
        assert found[i, j] == pytest.approx(2 * signs[i] * signs[j] / p, abs=slack)
    assert sums.repairs.filled.tolist() == [1] * p
