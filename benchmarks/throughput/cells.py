"""One cell: the contenders for one job on one size, in turn; seconds, and memory of each."""

from __future__ import annotations

import gc
import importlib
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring import read_lines

ROUNDS, ENOUGH = 7, 40.0  # of every contender; a slow one as often as it can in so many seconds
ONCE = frozenset({"stream"})  # what is measured for its memory, not for its time
_PLAN = [
    *(("gram", rows, 50) for rows in (100_000, 300_000, 1_000_000, 3_000_000)),
    *(("gram", 100_000, columns) for columns in (25, 100, 200, 400, 800)),
    ("gram", 200_000, 200),
    ("parquet", 1_000_000, 50),
    ("parquet", 200_000, 200),
    ("csv", 200_000, 50),
    ("persons", 1_000_000, 50),
    ("noise", 125_250, 1),
    ("noise", 1_000_000, 1),
    ("rows", 1_000_000, 50),
    *(("stream", rows, 64) for rows in (1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000)),
    ("cluster", 100_000, 800),
    ("flow", 100_000, 50),
]
_QUICK = [
    *(("gram", rows, 10) for rows in (10_000, 30_000)),
    ("gram", 10_000, 20),
    ("parquet", 10_000, 10),
    ("csv", 10_000, 10),
    ("persons", 10_000, 10),
    ("noise", 20_000, 1),
    ("rows", 10_000, 10),
    *(("stream", rows, 10) for rows in (100_000, 200_000)),
    ("cluster", 10_000, 50),
    ("flow", 10_000, 10),
]


@dataclass(frozen=True)
class Cell:
    """A job, and how large its table is; of noise, how many values."""

    what: str
    rows: int
    columns: int


@dataclass(frozen=True)
class Measured:
    """One contender.

    Parameters
    ----------
    seconds
        Of every round.
    before, peak
        Resident memory before the first round, and the most that there was in it, in megabytes.
    """

    seconds: list[float]
    before: float
    peak: float


@dataclass(frozen=True)
class Result:
    """A cell measured: all of it took `seconds`; its contenders by name."""

    cell: Cell
    seconds: float
    contenders: dict[str, Measured]


@dataclass(frozen=True)
class Contender:
    """What is timed; where it does a share of the job only, `share` of it."""

    run: Callable[[], object]
    share: float = 1.0


# Of one cell, in a folder that is empty; what it needs is made before, and goes afterwards.
Job = Callable[[Cell, Path], AbstractContextManager[dict[str, Contender]]]


def plan(quick: bool) -> Iterator[Cell]:
    """Some twenty minutes in all."""
    for what, rows, columns in _QUICK if quick else _PLAN:
        yield Cell(what, rows, columns)


def measure(cell: Cell) -> Result:
    """All contenders, round by round."""
    began = time.perf_counter()
    job: Job = importlib.import_module(f"benchmarks.throughput.jobs.{cell.what}").job
    with tempfile.TemporaryDirectory() as folder, job(cell, Path(folder)) as contenders:
        result = {name: _once(each) for name, each in contenders.items()}
        for _ in range(0 if cell.what in ONCE else ROUNDS):
            for name, each in contenders.items():
                # The first has warmed caches up, compiled and imported: it counts if it is alone.
                if sum(result[name].seconds) < ENOUGH:
                    result[name].seconds.append(_once(each).seconds[0])
    for each in result.values():
        if len(each.seconds) > 1:
            del each.seconds[0]
    return Result(cell, round(time.perf_counter() - began, 2), result)


def _once(contender: Contender) -> Measured:
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before, began = _memory("VmRSS"), time.perf_counter()
    contender.run()
    seconds = (time.perf_counter() - began) / contender.share
    return Measured([seconds], before, _memory("VmHWM"))


def _memory(key: str) -> float:
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(key))
    return int(line.split()[1]) / 1024


def read(path: Path) -> dict[Cell, Result]:
    """Results in the file."""
    result: dict[Cell, Result] = {}
    for fields in read_lines(path):
        cell = Cell(**fields["cell"])
        contenders = {name: Measured(**each) for name, each in fields["contenders"].items()}
        result[cell] = Result(cell, fields["seconds"], contenders)
    return result
