"""Decompression bombs are read or refused in bounded memory.

A huge cell counts as missing, and a line that is too long as malformed: tables are refused only
for their structure.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gramercy.schemas.errors import TableError
from gramercy.tables.source import open_source
from tests.acceptance.hostile.bombs import ALL_BOMBS, RUNS, Bomb
from tests.acceptance.hostile.memory_server import MemoryClient, memory_server
from tests.acceptance.hostile.table_cases import COLUMNS, PLANTED, Reference
from tests.support.factories import at_scale, write_request

MOST = 500_000_000  # bytes above what is in use before


@pytest.fixture(scope="module")
def measure() -> Iterator[MemoryClient]:
    with memory_server() as server:
        yield server


def moment(case: Bomb) -> np.ndarray:
    """The second moment of the first columns."""
    columns = dict(list(case.changes.get("columns", COLUMNS).items()))
    sums, rows = 0.0, sum(times for _, times in case.found)
    for row, times in case.found:
        reference = Reference(columns)
        if row is not None:
            reference.add([np.nan if cell is None else cell for cell in row])
        if reference.units:
            unit = np.concatenate([np.atleast_1d(x) for x in reference.units])
            sums = sums + np.outer(unit, unit)[:9, :9] * times
    return np.asarray(sums) / rows


@pytest.mark.parametrize("case", ALL_BOMBS[:: at_scale(3, 1)], ids=str)
def test_bombs_are_read_or_refused_in_bounded_memory(
    case: Bomb, tmp_path: Path, measure: MemoryClient
) -> None:
    found = measure(case.request(tmp_path), way=case.way, seconds=case.seconds)
    assert "took" in found, found
    assert found["took"] < MOST
    if case.said:
        assert found["error"] == "TableError", found
        assert found["exit_code"] == 2
        for words in case.said:
            assert words in found["said"]
        assert not any(planted in found["said"] for planted in PLANTED)
    elif case.way == "request":
        assert found.get("release") == "v1-r1", found
    else:
        assert "error" not in found, found
        assert found["rows"] == sum(times for _, times in case.found)
        assert found["malformed"] == sum(times for row, times in case.found if row is None)
        np.testing.assert_allclose(found["moment"], moment(case), atol=2e-3)


def test_memory_check_detects_an_unbounded_reader(tmp_path: Path, measure: MemoryClient) -> None:
    """A reader that loads everything exceeds the limit."""
    found = measure(RUNS[0].request(tmp_path), way="as a library would", seconds=120)
    assert found.get("took", MOST) >= MOST


def test_many_files_in_bounded_memory(tmp_path: Path, measure: MemoryClient) -> None:
    count = at_scale(300, 10_000)
    for i in range(count):
        (tmp_path / f"p{i}.csv").write_bytes(b"c0,c1\n2,5\n")
    request = write_request(tmp_path, source="p*.csv", rows=count, columns=COLUMNS)
    found = measure(request, seconds=at_scale(60, 300))
    assert found["rows"] == count
    assert found["took"] < MOST


@pytest.mark.parametrize("made", ["pipe", "device", "socket"])
def test_special_files_are_refused(made: str, tmp_path: Path, measure: MemoryClient) -> None:
    """Such a file may be endless, and cannot be read twice: refused before it is opened."""
    import socket

    path = tmp_path / "t.csv"
    if made == "pipe":
        os.mkfifo(path)
    elif made == "device":
        path.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as bound, pytest.MonkeyPatch.context() as there:
            there.chdir(tmp_path)  # its path has to be short
            bound.bind("t.csv")
    for source in (str(path), str(tmp_path / "t*.csv")):
        with pytest.raises(TableError, match=r"\.csv: "):
            open_source(source)
    found = measure(write_request(tmp_path, source="t.csv"), way="request", seconds=20)
    assert found["error"] == "TableError", found
    assert "t.csv" in found["said"]
    with pytest.raises(TableError, match="is no file that can be read twice"):
        open_source(str(path))
