"""The page of large tables: a slope to a hundred million rows, and clusters by measured costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.pages import table
from benchmarks.throughput.cells import Result
from benchmarks.throughput.jobs.blocks import BLOCK, COPY, SUM, TASK
from benchmarks.throughput.jobs.cluster import FILES
from benchmarks.throughput.tables import Results, added, of, ratio, seconds, slope

OURS, PEER = "Gramercy: Parquet to Gram", "pyarrow: batches, X.T @ X"
PLANNED = 1_000_000_000  # rows
WORKERS = (1, 10, 100, 1000)
_CELLS = 8  # bytes of a stored double
_NETWORK = 1.25e9  # bytes a second of a network of ten gigabits


@dataclass(frozen=True)
class Costs:
    """Measured seconds on one core: of a block, and of each step that follows it."""

    rows: int
    columns: int
    block: float
    addition: float
    copy: float
    task: float

    @classmethod
    def of(cls, result: Result) -> Costs:
        """The costs in the result of the job `blocks`."""
        steps = (seconds(result.contenders[name]) for name in (BLOCK, SUM, COPY, TASK))
        return cls(result.cell.rows, result.cell.columns, *steps)

    def reading(self, blocks: int, workers: int) -> float:
        """Seconds in which all blocks are read and summed."""
        return math.ceil(blocks / workers) * self.block

    def adding(self, blocks: int, workers: int) -> float:
        """Seconds in which a tree adds the sums of the blocks, half of which travel."""
        moved = self.copy + _CELLS * self.columns**2 / _NETWORK
        steps, left = 0, blocks
        while left > 1:
            steps += math.ceil(left // 2 / workers)
            left = math.ceil(left / 2)
        return steps * (self.addition + (moved if workers > 1 else 0.0))

    def scheduling(self, blocks: int) -> float:
        """Seconds of the scheduler, for which tasks wait one after the other."""
        return (2 * blocks - 1) * self.task

    def total(self, blocks: int, workers: int) -> float:
        """Seconds of a pass: the scheduler works while the workers do, and one of both waits."""
        working = self.reading(blocks, workers) + self.adding(blocks, workers)
        return max(working, self.scheduling(blocks))


def page(results: Results) -> Iterator[str]:
    """The lines of the page."""
    yield "# A billion rows: one machine, and clusters\n"
    yield (
        "For data engineers with large tables. The first part measures up to 100,000,000 rows and "
        "follows the line. The second part measures what a block of a table costs, compares what "
        "follows from it with clusters of one, two and four workers on this machine, and computes "
        "what a cluster of a hundred would need. Written by `python -m benchmarks throughput` from "
        "`results.jsonl`; how it is measured is on the [page of all steps](results.md).\n"
    )
    yield "## One machine\n"
    yield from _one_machine(results)
    yield "## A cluster on this machine\n"
    yield from _measured_clusters(results)
    yield "## A cluster of a hundred\n"
    yield from _planned_clusters(results)


def _one_machine(results: Results) -> Iterator[str]:
    found = of(results, "scale")
    points = [(each.cell.rows, seconds(each.contenders[OURS])) for each in found]
    largest, taken = points[-1]
    steepness = slope(points)
    expected = taken * (PLANNED / largest) ** max(steepness, 1.0)
    columns = found[-1].cell.columns
    yield (
        "Two cores. One Parquet file under many names, so it is read from the page cache, and the "
        "disk is not measured. In brackets the time relative to a loop over the same batches with "
        "products of doubles, without bounds, lengths or exact sums.\n"
    )
    lines = []
    for each in found:
        ours = each.contenders[OURS]
        times, size = ratio(each, OURS, PEER), each.cell.rows * columns * _CELLS / 1e9
        lines.append(
            (
                f"{each.cell.rows:,} x {columns}",
                f"{size:.3g} GB",
                f"{seconds(ours):.3g} (**{times:.2f}**)",
                f"{seconds(each.contenders[PEER]):.3g}",
                f"{added(ours):.0f}",
            )
        )
    yield from table(
        ("rows x columns", "as doubles", "Gramercy, s", "products of doubles, s", "Gramercy, MB"),
        lines,
    )
    yield (
        f"The slope of log(seconds) against log(rows) is {steepness:.2f}. On this line (and at "
        f"least proportionally), {PLANNED:,} x {columns} take {expected / 60:.1f} minutes from the "
        f"page cache: {PLANNED * columns * _CELLS / 1e9:.0f} GB of doubles, so a disk of 1 GB/s "
        f"needs {PLANNED * columns * _CELLS / 6e10:.1f} minutes, and is what a release waits for. "
        "Memory does not depend on the number of rows. Sums stay exact: blocks are added in "
        "doubles below 2^53, blocks of blocks as 64-bit integers, and beyond those as integers "
        "of any size.\n"
    )


def _measured_clusters(results: Results) -> Iterator[str]:
    costs = {each.columns: each for each in map(Costs.of, of(results, "blocks"))}
    yield (
        "Single-threaded workers, with the scheduler and the client on the same two cores, read "
        f"{FILES} Parquet files of one block each. Computed: from the costs of a block below.\n"
    )
    lines = []
    for each in of(results, "cluster"):
        texts = [f"{each.cell.rows:,} x {each.cell.columns}"]
        for workers in (1, 2, 4):
            name = f"Dask: {workers} worker{'s' * (workers > 1)}"
            measured = each.contenders.get(name)
            text = "" if measured is None else f"{seconds(measured):.3g}"
            if workers < 4 and (block := costs.get(each.cell.columns)) is not None:
                text += f" (computed {block.total(FILES, workers):.3g})"
            texts.append(text)
        texts.append(f"{seconds(each.contenders['Gramercy: one process']):.3g}")
        lines.append(texts)
    yield from table(
        ("rows x columns", "1 worker, s", "2 workers, s", "4 workers, s", "one process, s"), lines
    )
    yield (
        "Four workers share two cores: they show that more workers than cores cost little, not a "
        "speed-up. The sums are the same integers in all cases, also if workers are killed in the "
        "middle and their blocks are repeated, which the tests do.\n"
    )


def _planned_clusters(results: Results) -> Iterator[str]:
    found = [Costs.of(each) for each in of(results, "blocks")]
    yield (
        "Costs on one core. Two sums are added after one of them has travelled to the other's "
        "worker; the scheduler handles two tasks for each block, one after the other.\n"
    )
    yield from table(
        ("rows x columns of a block", "read and sum, s", "add, ms", "copy, ms", "schedule, ms"),
        (
            (
                f"{each.rows:,} x {each.columns}",
                f"{each.block:.3g}",
                *(f"{1000 * x:.3g}" for x in (each.addition, each.copy, each.task)),
            )
            for each in found
        ),
    )
    for each in found:
        yield from _plan(each)
    yield (
        "The last column is what all workers read together, of doubles without compression: where "
        "the storage gives less, it decides, and not the workers. Blocks are row groups of Parquet "
        "files (smaller ones are read together up to four million cells), so a table in few large "
        "row groups cannot use many workers, and one in small blocks waits for the scheduler.\n"
    )


def _plan(costs: Costs) -> Iterator[str]:
    blocks = math.ceil(PLANNED / costs.rows)
    stored = PLANNED * costs.columns * _CELLS
    yield (
        f"### {PLANNED:,} x {costs.columns}, in {blocks:,} blocks of {costs.rows:,} rows\n\n"
        f"Network: 10 Gbit/s. A sum has {_CELLS * costs.columns**2 / 1e6:.3g} MB.\n"
    )
    lines = []
    for workers in WORKERS:
        total = costs.total(blocks, workers)
        lines.append(
            (
                f"{workers}",
                _duration(costs.reading(blocks, workers)),
                _duration(costs.adding(blocks, workers)),
                _duration(costs.scheduling(blocks)),
                _duration(total),
                f"{stored / total / 1e9:.3g}",
            )
        )
    yield from table(("workers", "read and sum", "add", "schedule", "in all", "read, GB/s"), lines)


def _duration(taken: float) -> str:
    if taken < 120:
        return f"{taken:.3g} s"
    return f"{taken / 60:.3g} min" if taken < 7200 else f"{taken / 3600:.3g} h"
