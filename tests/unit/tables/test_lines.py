"""Lines of a CSV file: the content of a line never affects how the others are read."""

from __future__ import annotations

import codecs
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats.lines import BLOCK, replace_invalid_utf8
from gramercy.tables.formats.reader import cell_batches
from gramercy.tables.formats.source import open_source

ROW = b"0.5,0.5\n"
UNITS = [
    *(b"\xff", b"\x00", b"\x1a", b"\xc3", b"\xe2\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"),
    *(codecs.BOM_UTF8, codecs.BOM_UTF16, "é".encode(), "\U0001f600".encode(), b"\xff\xc3\xa9"),
    *(b'"', b'""', b",", b'","', b'"a"b', b"\r", b" ", b"x", b"1", b"-1e9"),
]


def read(path: Path, *, keep_malformed: bool = False) -> tuple[list[list[float]], int]:
    """Rows of cells in order, and the number of dropped lines."""
    malformed = MalformedLines()
    columns = {"a": None, "b": None}
    batches = cell_batches(
        open_source(str(path)), columns, malformed, keep_malformed=keep_malformed
    )
    rows = np.concatenate([np.empty((2, 0)), *batches], axis=1).T
    return rows.tolist(), malformed.dropped


@pytest.mark.slow
@given(st.lists(st.sampled_from(UNITS) | st.binary(max_size=4), max_size=8).map(b"".join))
def test_invalid_utf8_bytes_are_replaced_one_for_one(data: bytes) -> None:
    """Characters stay as they are; each byte of anything else becomes a control character."""
    replaced = replace_invalid_utf8(data)
    assert len(replaced) == len(data)
    assert replaced.decode() == data.decode("utf-8", "surrogateescape").translate(SUBSTITUTED)


SUBSTITUTED = dict.fromkeys(range(0xDC80, 0xDD00), "\x1a")


@st.composite
def long_lines(draw: st.DrawFn, block: int) -> bytes:
    """A line near the maximal length, near a fraction of it, or short."""
    unit = b"".join(draw(st.lists(st.sampled_from(UNITS), min_size=1, max_size=3)))
    most = draw(st.sampled_from([block, block, 2 * block // 3, block // 3, 9]))
    length = most - draw(st.integers(-3, 3))
    body = (unit * (length // len(unit) + 1))[:length]
    before = draw(st.sampled_from([b"", b"1,", b'"', b","]))
    after = draw(st.sampled_from([b"", b",1", b'",1', b"\r"]))
    return before + body[: max(0, length - len(before + after))] + after


SMALL = 96  # bytes, instead of 4 MiB
LINES = st.lists(long_lines(SMALL), max_size=4)


@pytest.mark.slow
@given(
    before=LINES,
    line=long_lines(SMALL),
    after=LINES,
    end=st.sampled_from([b"", b"\n", b"\r\n"]),
    keep_malformed=st.booleans(),
)
@example(  # with three-byte substitutes, they would span three blocks
    before=[b"1," + b"0" * 52, b"\xff" * 62 + b",1"],
    line=b"\xff" * 65 + b",1",
    after=[],
    end=b"\n",
    keep_malformed=False,
)
def test_line_affects_only_its_own_row(
    before: list[bytes],
    line: bytes,
    after: list[bytes],
    end: bytes,
    keep_malformed: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """With blocks of a few bytes, so that lines span them in every way."""
    path = tmp_path_factory.mktemp("t") / "t.csv"

    def with_line(line: bytes) -> tuple[list[list[float]], int]:
        path.write_bytes(b"\n".join([b"a,b", *before, line, *after, b"2,3"]) + end)
        with (
            patch("gramercy.tables.formats.lines.BLOCK", SMALL),
            patch("gramercy.tables.formats.csv_format.BLOCK", SMALL),
        ):
            return read(path, keep_malformed=keep_malformed)

    (rows, dropped), (plain, plain_dropped) = with_line(line), with_line(b"7,8")
    assert len(rows) + dropped == len(plain) + plain_dropped == len(before) + len(after) + 2
    index, kept = plain.index([7.0, 8.0]), len(rows) - len(plain) + 1  # of the line itself
    assert kept in ({1} if keep_malformed else {0, 1})
    np.testing.assert_array_equal(
        rows[:index] + rows[index + kept :], plain[:index] + plain[index + 1 :]
    )


@pytest.mark.slow
def test_long_lines_of_invalid_utf8_are_kept(tmp_path: Path) -> None:
    """With the real block size: replacing the second line changes no other row."""
    path, mib = tmp_path / "t.csv", 1 << 20
    first, second = (b"\xff" * int(x * mib) + b",1\n" for x in (2.66, 2.75))
    count = (BLOCK - len(first) + int(1.2 * mib) - 4) // len(ROW)  # both end in the second block
    for line in (second, ROW):
        path.write_bytes(b"a,b\n" + ROW * count + first + line + ROW)
        rows, dropped = read(path)
        assert (len(rows), dropped, rows[-1]) == (count + 3, 0, [0.5, 0.5])
