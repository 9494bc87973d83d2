"""Decompression bombs are read or refused in bounded memory.

A huge cell counts as missing, and a line that is too long as malformed. Only the structure of a
table can be refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gramercy.schemas import families
from gramercy.tables.formats.source import open_source
from tests.acceptance.hostile.bombs import ALL_BOMBS, RUNS, Bomb
from tests.acceptance.hostile.memory_server import MemoryClient, memory_server
from tests.acceptance.hostile.table_cases import COLUMNS, PLANTED, Reference
from tests.support.factories import at_scale, write_request
from tests.support.problems import raises

MEMORY_LIMIT = 500_000_000  # bytes above the memory in use before


@pytest.fixture(scope="module")
def measure() -> Iterator[MemoryClient]:
    with memory_server() as server:
        yield server


def moment(case: Bomb) -> np.ndarray:
    """The second moment of the first columns."""
    columns = dict(list(case.changes.get("columns", COLUMNS).items()))
    sums, rows = 0.0, sum(times for _, times in case.expected)
    for row, times in case.expected:
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
    result = measure(case.request(tmp_path), mode=case.mode, seconds=case.seconds)
    assert "memory" in result, result
    assert result["memory"] < MEMORY_LIMIT
    if case.problem is not None:
        assert result.get("code") == case.problem.code, result
        assert result["exit_code"] == 2
        assert case.facts.items() <= result["facts"].items(), result
        assert case.file in result["text"]
        assert not any(planted in result["text"] for planted in PLANTED)
    elif case.mode == "request":
        assert result.get("release") == "v1-r1", result
    else:
        assert "error" not in result, result
        assert result["rows"] == sum(times for _, times in case.expected)
        assert result["malformed"] == sum(times for row, times in case.expected if row is None)
        np.testing.assert_allclose(result["moment"], moment(case), atol=2e-3)


def test_memory_check_detects_an_unbounded_reader(tmp_path: Path, measure: MemoryClient) -> None:
    """A reader that loads everything exceeds the limit."""
    result = measure(RUNS[0].request(tmp_path), mode="unbounded", seconds=120)
    assert result.get("memory", MEMORY_LIMIT) >= MEMORY_LIMIT


def test_many_files_in_bounded_memory(tmp_path: Path, measure: MemoryClient) -> None:
    count = at_scale(300, 10_000)
    for i in range(count):
        (tmp_path / f"p{i}.csv").write_bytes(b"c0,c1\n2,5\n")
    request = write_request(tmp_path, source="p*.csv", rows=count, columns=COLUMNS)
    result = measure(request, seconds=at_scale(60, 300))
    assert result["rows"] == count
    assert result["memory"] < MEMORY_LIMIT


@pytest.mark.parametrize("kind", ["pipe", "device", "socket"])
def test_special_files_are_refused(kind: str, tmp_path: Path, measure: MemoryClient) -> None:
    """Such a file may be endless and cannot be read twice, so it is refused before it is opened."""
    import socket

    path = tmp_path / "t.csv"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as listener, pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path)  # the path of a socket must be short
            listener.bind("t.csv")
    with raises(families.SOURCE, source=str(path)):
        open_source(str(path))
    with raises(families.SOURCE, source=str(tmp_path / "t*.csv")):
        open_source(str(tmp_path / "t*.csv"))
    result = measure(write_request(tmp_path, source="t.csv"), mode="request", seconds=20)
    assert result["code"] == families.SOURCE.code, result
    assert result["facts"]["source"].endswith("t.csv")
