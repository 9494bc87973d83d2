"""Tables that are small on disk and large in memory, or state that they are."""

from __future__ import annotations

import gzip
import lzma
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from gramercy.schemas import families
from gramercy.schemas.problem import Family
from tests.acceptance.hostile.parquet_builder import (
    BYTES,
    RLE_DICTIONARY,
    Chunk,
    Page,
    Writer,
    constant,
    parquet_of,
    plain,
    run,
    schema,
    structs,
    thrift,
)
from tests.acceptance.hostile.table_cases import COLUMNS, OTHER, SECRET
from tests.support.factories import at_scale, write_request

MIB = 1 << 20
GROUP: dict[str, Any] = {"g": {"levels": ["a", "b"]}, "c1": COLUMNS["c1"]}

Pieces = Iterable[tuple[bytes, int]]  # bytes, and their number of repetitions


@dataclass(frozen=True)
class Bomb:
    """A named table, and its expected result.

    Parameters
    ----------
    write
        Function that writes the file into a folder.
    file
        Its name there.
    rows
        As the contract declares them.
    problem, facts
        The expected problem, None if the table is read; and some of its facts.
    expected
        The rows of a table that is read, each with its number of repetitions; None is a malformed
        row.
    mode
        How the table is read; see `memory_server`.
    seconds
        Time limit, for a slow machine that is busy.
    """

    name: str
    write: Callable[[Path], None]
    file: str
    rows: int = 1
    problem: Family[Any] | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    expected: Sequence[tuple[Any, int]] = ()
    changes: dict[str, Any] = field(default_factory=dict)
    mode: str = "tables"
    seconds: int = at_scale(60, 900)

    def __str__(self) -> str:
        return self.name

    def request(self, folder: Path) -> Path:
        """The file with a contract and a request; returns the request."""
        self.write(folder / self.file)
        facts = {"source": self.file, "rows": self.rows, "columns": COLUMNS} | self.changes
        request = {"mechanism": {"name": "gaussian", "epsilon": 1.0, "delta": 1e-13}}
        facts["budget"] = {"epsilon": 2.0, "delta": 1e-12}
        return write_request(folder, request=request, **facts)


def _repeated(pieces: Pieces, pack: Callable[[bytes], bytes]) -> Iterable[bytes]:
    return (pack(piece) for piece, times in pieces for _ in range(times))


def page(pieces: Pieces, values: int) -> Page:
    """A page compressed by zstd, whose pieces are never joined in memory."""
    parts = list(pieces)
    frames = {piece: pa.compress(piece, "zstd", asbytes=True) for piece, _ in parts}
    packed = b"".join(frames[piece] * times for piece, times in parts)  # frames are one stream
    return Page(b"", values, size=sum(len(x) * times for x, times in parts), packed=packed)


def parquet(name: str, make: Callable[[], bytes], rows: int, **facts: Any) -> Bomb:
    return Bomb(name, lambda path: _write(path, [make()]), "t.parquet", rows, **facts)


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    with path.open("wb") as stream:
        for piece in pieces:
            stream.write(piece)


def csv(
    name: str,
    pieces: Pieces | Callable[[], Pieces],
    rows: int,
    file: str = "t.csv",
    **facts: Any,
) -> Bomb:
    def write(path: Path) -> None:
        made = pieces() if callable(pieces) else pieces
        _write(path, _repeated(made, lambda x: x))

    return Bomb(name, write, file, rows, **facts)


# Run-length encoding: rows that take almost no space in the file.

LARGE = at_scale(35_000_000, 1_000_000_000)
TWO_COLUMNS = [constant("c0", 2.0, LARGE), constant("c1", 5.0, LARGE)]
MEDIUM = 2_000_000

RUNS = [
    parquet("runs", lambda: parquet_of(TWO_COLUMNS, LARGE), LARGE, expected=[([2, 5], LARGE)]),
    parquet(
        "runs-in-a-release",
        lambda: parquet_of([constant("c0", 2.0, MEDIUM), constant("c1", 5.0, MEDIUM)], MEDIUM),
        MEDIUM,
        mode="request",
    ),
    parquet(
        "runs-of-an-unknown-number",
        lambda: parquet_of(TWO_COLUMNS, LARGE),
        1000,
        expected=[([2, 5], LARGE)],
        changes={"neighbours": "add-remove"},
    ),
    # Far more rows than declared: reading stops early.
    parquet(
        "runs-undeclared",
        lambda: parquet_of([constant(n, SECRET, 2**31 - 1) for n in ("c0", "c1")], 2**31 - 1),
        1000,
        problem=families.ROW_COUNT,
        facts={"limit": 1_001_000, "declared": 1000},
    ),
    parquet(
        "runs-undeclared-in-a-release",
        lambda: parquet_of([constant(n, SECRET, 2**31 - 1) for n in ("c0", "c1")], 2**31 - 1),
        1000,
        problem=families.ROW_COUNT,
        facts={"limit": 1_001_000, "declared": 1000},
        mode="request",
    ),
]

# Many pages, which do not fit into memory together.


def wide() -> bytes:
    """A page of a MiB, as libraries write it, in each of many columns."""
    zeros = page([(bytes(MIB), 1)], WIDE_ROWS)
    chunks = [Chunk(f"c{i}", [zeros], WIDE_ROWS, codec="zstd") for i in range(WIDE)]
    return parquet_of(chunks, WIDE_ROWS)


WIDE, WIDE_ROWS = at_scale(400, 2000), MIB // 8
WIDE_COLUMNS = {f"c{i}": {"lower": -1, "upper": 1, "centre": -1} for i in range(WIDE)}
PAGES = [
    parquet(
        "wide",
        wide,
        WIDE_ROWS,
        expected=[([0.0] * WIDE, WIDE_ROWS)],
        changes={"columns": WIDE_COLUMNS},
        mode="sums",  # validating the values of so many columns takes a minute
    ),
]

# Cells far longer than any level.

LONG = at_scale(300 * MIB, 1900 * MIB)


def length_prefixed(cell: bytes) -> bytes:
    return struct.pack("<I", len(cell)) + cell


def long_cell() -> bytes:
    pieces = [
        (length_prefixed(b"a") + struct.pack("<I", LONG), 1),
        (b"a" * MIB, LONG // MIB),
        (length_prefixed(b"b"), 1),
    ]
    texts = page(pieces, 3)
    return parquet_of([Chunk("g", [texts], 3, BYTES, "zstd"), plain("c1", [1, 2, 3])], 3)


def repeated_cell() -> bytes:
    """A text that is stored once and repeated a million times."""
    entries = Page(length_prefixed(b"a" * MIB) + length_prefixed(b"b"), 2, dictionary=True)
    indices = Page(bytes([1]) + run(0, MEDIUM, 1) + run(1, 1, 1), MEDIUM + 1, RLE_DICTIONARY)
    chunk = Chunk("g", [entries, indices], MEDIUM + 1, BYTES, "zstd")
    return parquet_of([chunk, constant("c1", 3.0, MEDIUM + 1)], MEDIUM + 1)


LONG_CELLS = [
    parquet(
        "cell-undeclared",
        lambda: parquet_of(
            [
                Chunk("g", [page([(b"a" * MIB, LONG // MIB)], 1)], 1, BYTES, "zstd"),
                plain("c0", [2]),
                plain("c1", [5]),
            ],
            1,
        ),
        1,
        expected=[([2, 5], 1)],
    ),
    parquet(
        "cell-where-a-number-belongs",
        long_cell,
        3,
        problem=families.TABLE_COLUMNS,
        facts={"columns": ["g (text)"]},
        changes={"columns": {"g": COLUMNS["c0"], "c1": COLUMNS["c1"]}},
    ),
    parquet(
        "cell-repeated",
        repeated_cell,
        MEDIUM + 1,
        expected=[([None, 3], MEDIUM), (["b", 3], 1)],
        changes={"columns": GROUP},
    ),
]

# Metadata that are false or very large.

ONE_ROW = [plain("c0", [2.0]), plain("c1", [5.0])]
SECRETS = [plain("c0", [SECRET]), plain("c1", [OTHER])]
UNREADABLE: dict[str, Any] = {
    "problem": families.FILE,
    "facts": {"format": "Parquet"},
}


def repeated_groups(count: int, stated: int | None = None) -> bytes:
    writer = Writer()
    writer.group(SECRETS, 1)
    groups = structs([thrift(writer.groups[0])] * count, stated)
    return writer.footer(schema(SECRETS), fields={4: groups})


def many_columns() -> bytes:
    return parquet_of(
        [*ONE_ROW, *(plain(f"x{i}", [1.0]) for i in range(at_scale(20_000, 100_000)))], 1
    )


METADATA = [
    parquet("row-groups-that-do-not-exist", lambda: repeated_groups(1, 5_000_000), 1, **UNREADABLE),
    parquet("columns-undeclared", many_columns, 1, expected=[([2, 5], 1)]),
    parquet(
        "rows-stated", lambda: parquet_of(ONE_ROW, 1, total=1 << 60), 1, expected=[([2, 5], 1)]
    ),
    parquet(
        "rows-stated-of-a-group",
        lambda: parquet_of(ONE_ROW, 1, group_rows=1 << 60),
        1,
        expected=[([2, 5], 1)],
    ),
    parquet(
        "cells-stated",
        lambda: parquet_of(
            [
                Chunk("c0", [Page(struct.pack("<d", SECRET), 1 << 30)], 1 << 30),
                constant("c1", OTHER, 1 << 30),
            ],
            1 << 30,
        ),
        1 << 30,
        **UNREADABLE,
    ),
]

# Text.

LINE = at_scale(1 << 30, 10 << 30)
HEAD = b"c0,c1\n2,5\n"
BLANKS = at_scale(20, 400)  # MiB


def long_header(count: int) -> bytes:
    return b"".join(b",%x" % i for i in range(0x1000, count + 0x1000))


def sparse_file(path: Path, size: int = LINE) -> None:
    path.write_bytes(HEAD)
    with path.open("r+b") as stream:
        stream.truncate(size)


def wide_window(path: Path) -> None:
    """Decompressed with a window of 1.5 GiB."""
    lzma2 = {"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 3 << 29}
    compressor = lzma.LZMACompressor(filters=[lzma2])
    pieces = [(f"c0,c1\n{SECRET},{OTHER}\n".encode(), 1), (bytes(16 * MIB), at_scale(24, 96))]
    _write(path, [*_repeated(pieces, compressor.compress), compressor.flush()])


def compressed(path: Path) -> None:
    parts = [(gzip.compress(HEAD), 1), (gzip.compress(bytes(64 * MIB)), LINE // (64 * MIB))]
    _write(path, _repeated(parts, lambda x: x))


TEXT = [
    Bomb("line", sparse_file, "t.csv", 2, expected=[([2, 5], 1), (None, 1)]),
    csv("line-of-quotes", [(HEAD, 1), (b'"' * MIB, 1024)], 2, expected=[([2, 5], 1), (None, 1)]),
    Bomb("line-compressed", compressed, "t.csv.gz", 2, expected=[([2, 5], 1), (None, 1)]),
    Bomb("line-compressed-in-a-release", compressed, "t.csv.gz", 2, mode="request"),
    Bomb("window", wide_window, "t.csv.xz", 2, problem=families.FILE),
    csv(
        "open-quote",
        [(b'c0,c1\n2,"5\n', 1), (b"2,5\n", 1_000_000)],
        1_000_001,
        expected=[(None, 1), ([2, 5], 1_000_000)],
    ),
    csv(
        "open-quotes",
        [(b"c0,c1\n2,5\n", 1), (b'2,"5\n', 1_000_000)],
        1_000_001,
        expected=[([2, 5], 1), (None, 1_000_000)],
    ),
    csv(
        "fields",
        [(HEAD, 1), (b"," * 1_000_000 + b"\n", 3), (b'"",' * 1_000_000 + b"\n", 3)],
        7,
        expected=[([2, 5], 1), (None, 6)],
    ),
    csv(
        "header-of-a-million",
        lambda: [(b"c0,c1", 1), (long_header(1_000_000), 1), (b"\n1,2\n", 1)],
        1,
        problem=families.HEADER,
        facts={"limit": 4},
    ),
    csv(
        "header-that-fits",
        lambda: [
            (b"c0,c1", 1),
            (long_header(500_000), 1),
            (b"\n2,5", 1),
            (b",", 500_000),
            (b"\n2,5\n", 1),
        ],
        2,
        expected=[([2, 5], 1), (None, 1)],
    ),
    # The second line must not be read as the header.
    csv(
        "header-and-a-second",
        lambda: [(b"c0,c1", 1), (long_header(1_000_000), 1), (b"\nc0,c1,x\n1,2,3\n", 1)],
        1,
        problem=families.HEADER,
    ),
    csv(
        "header-without-end",
        [(b"c0,c1,", 1), (bytes(MIB), 1024)],
        1,
        problem=families.HEADER,
    ),
    csv(
        "blank-lines",
        [(HEAD, 1), (b"\n", 1_000_000)],
        1_000_001,
        expected=[([2, 5], 1), (None, 1_000_000)],
    ),
    Bomb(
        "blank-lines-compressed",
        lambda path: _write(path, [gzip.compress(HEAD), *[gzip.compress(b"\n" * MIB)] * BLANKS]),
        "t.csv.gz",
        1 + BLANKS * MIB,
        expected=[([2, 5], 1), (None, BLANKS * MIB)],
    ),
    # If rows are published, malformed lines keep their positions.
    csv(
        "lines-in-place",
        [(HEAD, 1), (b"\n", MIB), (b'"\n', MIB), (b",,,\n", MIB)],
        1 + 3 * MIB,
        expected=[([2, 5], 1), (None, 3 * MIB)],
        mode="in place",
    ),
]

ALL_BOMBS = RUNS + PAGES + LONG_CELLS + METADATA + TEXT
