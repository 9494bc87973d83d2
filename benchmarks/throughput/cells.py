"""One cell: time and memory of the contenders for one job at one table size."""

from __future__ import annotations

import gc
import importlib
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

ROUNDS, ENOUGH = 7, 40.0  # rounds per contender; a slow one stops after this many seconds
_PAUSE = 0.1  # seconds; the threads of BLAS wait busily for a shorter time
_SHORT = 0.5  # seconds; a shorter contender runs twice, because its threads may have to wake up
ONCE = frozenset({"stream"})  # jobs measured for their memory, not for their time
_PLAN = [
    *(("gram", rows, 50) for rows in (100_000, 300_000, 1_000_000, 3_000_000)),
    *(("gram", 100_000, columns) for columns in (25, 100, 200, 400, 800)),
    ("gram", 200_000, 200),
    ("parquet", 1_000_000, 50),
    ("parquet", 200_000, 200),
    ("parquet", 2_000, 5_000),
    ("csv", 200_000, 50),
    ("database", 1_000_000, 50),
    ("persons", 1_000_000, 50),
    ("parts", 1_000_000, 50),
    ("noise", 125_250, 1),
    ("noise", 1_000_000, 1),
    ("rows", 1_000_000, 50),
    *(("stream", rows, 64) for rows in (1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000)),
    ("constants", 1_000_000, 50),
    ("constants", 2_000_000, 50),
    ("metric", 1_000_000, 60),
    *(("scale", rows, 50) for rows in (1_000_000, 10_000_000, 100_000_000)),
    ("blocks", 1_000_000, 50),
    ("blocks", 12_500, 800),
    ("problems", 64, 600),
    *(("estimation", 20_000, columns) for columns in (200, 750, 2_000)),
    ("cluster", 8_000_000, 50),
    ("cluster", 100_000, 800),
    ("flow", 100_000, 50),
]
_QUICK = [
    *(("gram", rows, 10) for rows in (10_000, 30_000)),
    ("gram", 10_000, 20),
    ("parquet", 10_000, 10),
    ("csv", 10_000, 10),
    ("database", 10_000, 10),
    ("persons", 10_000, 10),
    ("parts", 10_000, 10),
    ("noise", 20_000, 1),
    ("rows", 10_000, 10),
    *(("stream", rows, 10) for rows in (100_000, 200_000)),
    ("constants", 10_000, 10),
    ("metric", 10_000, 10),
    *(("scale", rows, 10) for rows in (10_000, 20_000)),
    ("blocks", 1_250, 50),
    ("problems", 3, 10),
    ("estimation", 1_000, 10),
    ("cluster", 10_000, 50),
    ("flow", 10_000, 10),
]


@dataclass(frozen=True)
class Cell:
    """A job and the size of its table; `rows` may count values of noise, or problems."""

    what: str
    rows: int
    columns: int


@dataclass(frozen=True)
class Measured:
    """The measurements of one contender.

    Parameters
    ----------
    seconds
        Seconds of every round.
    before, peak
        Resident memory before the first round, and its peak during that round, in megabytes.
    """

    seconds: list[float]
    before: float
    peak: float


@dataclass(frozen=True)
class Result:
    """The measurements of one cell: total `seconds`, and the contenders by name."""

    cell: Cell
    seconds: float
    contenders: dict[str, Measured]


@dataclass(frozen=True)
class Contender:
    """A timed function; if it does only part of the job, `share` is that part."""

    run: Callable[[], object]
    share: float = 1.0


# Creates the contenders of a cell in an empty folder; inputs exist only within the context.
Job = Callable[[Cell, Path], AbstractContextManager[dict[str, Contender]]]


def plan(quick: bool) -> Iterator[Cell]:
    """Yield all cells; about half an hour in total."""
    for what, rows, columns in _QUICK if quick else _PLAN:
        yield Cell(what, rows, columns)


def measure(cell: Cell) -> Result:
    """Measure all contenders of a cell, round by round."""
    began = time.perf_counter()
    job: Job = importlib.import_module(f"benchmarks.throughput.jobs.{cell.what}").job
    with tempfile.TemporaryDirectory() as folder, job(cell, Path(folder)) as contenders:
        result = {name: _once(each) for name, each in contenders.items()}
        for _ in range(0 if cell.what in ONCE else ROUNDS):
            for name, each in contenders.items():
                # The first round warms caches, compiles and imports: it counts only if alone.
                if sum(result[name].seconds) < ENOUGH:
                    result[name].seconds.append(_once(each).seconds[0])
    for measured in result.values():
        if len(measured.seconds) > 1:
            del measured.seconds[0]
    return Result(cell, round(time.perf_counter() - began, 2), result)


def _once(contender: Contender) -> Measured:
    gc.collect()
    time.sleep(_PAUSE)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = _memory("VmRSS")
    seconds = _timed(contender)
    peak = _memory("VmHWM")
    if seconds < _SHORT:
        seconds = _timed(contender)
    return Measured([seconds / contender.share], before, peak)


def _timed(contender: Contender) -> float:
    began = time.perf_counter()
    contender.run()
    return time.perf_counter() - began


def _memory(key: str) -> float:
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(key))
    return int(line.split()[1]) / 1024
