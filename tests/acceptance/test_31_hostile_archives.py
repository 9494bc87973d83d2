"""Archives of an attacker are refused, or harmless, in bounded memory and time.

The analyst has no key of the curator, so that every signature is accepted.
"""

from __future__ import annotations

import csv
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import withdraw
from tests.acceptance.hostile.archives import CASES, HostileArchive
from tests.acceptance.hostile.memory_server import MemoryClient, memory_server
from tests.support.factories import MECHANISM, at_scale, run_pipeline, run_release, write_request

MEMORY_LIMIT = 300_000_000  # bytes above the memory in use before
CPU_SECONDS = 5
GRAPH = {"name": "graphical-lasso", "penalty": 0.1}


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An archive of two releases, an estimate with a graph, and a notice of withdrawal."""
    folder = tmp_path_factory.mktemp("genuine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAMERCY_HOME", str(folder / "home"))
        run_pipeline(write_request(folder, request={"estimates": [GRAPH]}))
        rows = MECHANISM | {"name": "rows"}
        run_release(write_request(folder, request={"version": "v2", "mechanism": rows}))
        withdraw(Context.default(), "toy", "v2-r1", "a mistake")
        yield folder / "home" / "archive"


@pytest.fixture(scope="module")
def visit(genuine: Path) -> Iterator[MemoryClient]:
    with memory_server(genuine) as server:
        yield server


def is_dangerous(character: str) -> bool:
    """Whether a terminal executes or hides a character, or lets it reorder others."""
    return unicodedata.category(character) in {"Cc", "Cf", "Zl", "Zp"} and character != "\n"


@pytest.mark.parametrize("case", CASES[:: at_scale(2, 1)], ids=str)
def test_hostile_archive(
    case: HostileArchive, genuine: Path, visit: MemoryClient, tmp_path: Path
) -> None:
    result = visit(case.make(genuine, tmp_path), mode="archive")
    assert "codes" in result, result
    if case.problem is None:
        assert case.name != "genuine" or result["codes"] == []
    else:
        assert case.problem.code in result["codes"], result
    assert result["memory"] < MEMORY_LIMIT
    assert result["cpu"] < CPU_SECONDS
    assert not [x for x in result["shown"] if is_dangerous(x)]
    assert "\ntoy/v9-r1" not in result["shown"]  # no text adds a line to a list
    assert "<script" not in result["html"]
    cells = [cell for line in csv.reader(result["csv"].splitlines()) for cell in line]
    assert not any(cell.startswith(("=", "+", "@")) for cell in cells)
