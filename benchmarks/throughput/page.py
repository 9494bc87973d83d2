"""Write the results page from the stored results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cells import Benchmark, read_results
from benchmarks.pages import figure, table, write_page
from benchmarks.throughput import cells
from benchmarks.throughput.cells import Result
from benchmarks.throughput.jobs import estimation
from benchmarks.throughput.jobs.blocks import BLOCK, COPY, SUM, TASK
from benchmarks.throughput.jobs.cluster import FILES
from benchmarks.throughput.jobs.problems import BY_PROCESSES, ONE_BY_ONE
from benchmarks.throughput.tables import Results, added, of, ratio, seconds, series, slope

OURS = "Gramercy: repair, normalisation, Gram"
PRODUCT = "numpy: X.T @ X"


def write(folder: Path) -> None:
    """Write `results.md`, `scale.md` and the figures from `results.jsonl` in the same folder."""
    results = read_results(folder / "results.jsonl", cells.Result)
    (folder / "figures").mkdir(exist_ok=True)
    draw_growth(results, OURS, folder / "figures" / "growth.svg")
    draw_memory(results, folder / "figures" / "memory.svg")
    draw_noise(results, folder / "figures" / "noise.svg")
    write_page(folder / "results.md", _page(results))
    write_page(folder / "scale.md", scale_page(results))


def _page(results: Results) -> Iterator[str]:
    yield "# Time and memory of a release\n"
    yield (
        "For data engineers who plan a release. The programs compared on a cell take turns in one "
        "process, round by round, after a warm-up round. Before each, the threads of BLAS stop "
        "waiting busily for the one before; and what takes less than half a second runs twice, and "
        "the second time counts, when its own threads are awake. Seconds are medians; a ratio is "
        "the median of the ratios within a round. Memory is the peak of the process in the first "
        "round minus its memory before. OpenDP is measured where it is installed. Written by "
        "`python -m benchmarks throughput` from `results.jsonl`.\n"
    )
    yield "## The Gram matrix, in memory\n"
    yield "![Seconds against rows and columns](figures/growth.svg)\n"
    yield "Seconds, and in brackets the time relative to the product of doubles.\n"
    yield from _comparison_table(of(results, "gram"), PRODUCT)
    yield (
        "Compiled code takes a third of a second to load, in every process: more than it saves "
        "below 2^24 cells. There it is used where the process has loaded it, for an earlier table "
        "or on a worker of a cluster; the results are the same to the last bit.\n"
    )
    yield from _slopes(results)
    yield "## From files, before noise\n"
    yield "Seconds, and in brackets the time relative to pyarrow with the product of doubles.\n"
    for kind in ("parquet", "csv"):
        yield f"### {'Parquet' if kind == 'parquet' else 'CSV'}\n"
        yield from _comparison_table(of(results, kind), "pyarrow: read, X.T @ X")
    yield "### PostgreSQL\n"
    yield (
        "From a server on the same machine. Seconds, and in brackets the time relative to the "
        "driver's, which fetches all rows and does nothing with them.\n"
    )
    yield from _comparison_table(of(results, "database"), "psycopg: fetch all rows")
    yield "## Noise\n"
    yield "![Nanoseconds per value](figures/noise.svg)\n"
    yield from _noise(results)
    yield "## Published rows\n"
    yield (
        "From Parquet to Parquet, in two passes: the first checks the number of rows. The second "
        "moment is computed from the published rows.\n"
    )
    yield from _rows(results)
    yield "## Memory\n"
    yield (
        "Of reading a table that is generated on the fly, as Parquet files of 100,000 rows. The "
        "largest, 20 million rows of 64 columns, would take 10 GB in memory.\n"
    )
    yield "![Memory against rows](figures/memory.svg)\n"
    yield from _memory(results)
    yield "## Privacy per person\n"
    yield from _comparison_table(of(results, "persons"), "Gramercy: rows", memory=True)
    yield "## Folds and groups\n"
    yield "From Parquet, without noise. Every row draws its fold; its group is that of one cell.\n"
    yield from _comparison_table(of(results, "parts"), "Gramercy: one sum", memory=True)
    yield "## Private constants\n"
    yield (
        "Three passes for the histograms of all columns, one for the lengths of rows and one for "
        "the sum, with all noise on histograms, against the sum with declared constants. The cells "
        "of the first table stay in memory between the passes; the second is too large, and is "
        "read five times.\n"
    )
    yield from _comparison_table(of(results, "constants"), "Gramercy: one sum", memory=True)
    yield "## In the metric of a pilot matrix\n"
    yield (
        "All passes of a release with private constants, with the matrix of lost moments, of a "
        "chain of correlated columns. In the metric there is a pass more for the pilot matrix and "
        "one for the lengths of rows, and in the last passes every row is multiplied by a matrix.\n"
    )
    yield from _comparison_table(of(results, "metric"), "Gramercy: in one stage", memory=True)
    yield "## Many problems at once\n"
    yield from _problems(results)
    yield "## Estimates\n"
    yield (
        "From a noisy second moment of a chain of columns; with 200 columns in 20 folds, from "
        "which estimates take their errors. Without reading and writing. Seconds, and in brackets "
        "the time relative to one eigendecomposition of the matrix.\n"
    )
    yield from _comparison_table(of(results, "estimation"), estimation.EIGH)
    yield "## A cluster\n"
    yield from _cluster(results)
    yield "What a cluster of a hundred would do is on the page of [large tables](scale.md).\n"
    yield "## The flow\n"
    yield from _flow(results)
    total = sum(result.seconds for result in results.values())
    yield f"{total / 60:.0f} minutes in all."


def _comparison_table(found: Iterable[Result], to: str, *, memory: bool = False) -> Iterator[str]:
    results = list(found)
    names = list(dict.fromkeys(name for each in results for name in each.contenders))
    lines = []
    for each in results:
        texts = []
        for name in names:
            measured, times = each.contenders.get(name), ratio(each, name, to)
            text = "" if measured is None else f"{seconds(measured):.3g}"
            if measured is not None and times is not None and name != to:
                text += f" (**{times:.{0 if times >= 100 else 2}f}**)"
            if measured is not None and memory:
                text += f", {added(measured):.0f} MB"
            texts.append(text)
        lines.append((_size(each), *texts))
    yield from table(("rows x columns", *names), lines)


def _slopes(results: Results) -> Iterator[str]:
    yield (
        "The slope of log(seconds) against log(rows) and log(columns). Gramercy's three steps are "
        "not on one line: they run compiled from 2^24 cells on.\n"
    )
    names = dict.fromkeys(name for each in of(results, "gram") for name in each.contenders)
    lines = []
    for name in names:
        found = [series(results, name, over_rows=over_rows) for over_rows in (True, False)]
        lines.append((name, *(f"{slope(points):.2f}" for points in found)))
    yield from table(("", "rows", "columns"), lines)


def _noise(results: Results) -> Iterator[str]:
    yield (
        "Nanoseconds per value. The scale is 2^30 / 3 units, as in a release of about 500 columns; "
        "for the discrete Gaussian, which is for narrow noise, 1000. OpenDP is timed on at most "
        "20,000 values. From about 30,000 values on, Gramercy draws in compiled code, with one "
        "thread per core.\n"
    )
    lines = []
    for each in of(results, "noise"):
        for name, measured in each.contenders.items():
            texts = [f"{each.cell.rows:,}", name]
            texts.append(f"{1e9 * seconds(measured) / each.cell.rows:.3g}")
            for to in ("numpy: normal doubles", "OpenDP: discrete Gaussian"):
                times = ratio(each, name, to)
                texts.append("" if times is None or name == to else _times(times))
            lines.append(tuple(texts))
    heads = (
        "values",
        "program",
        "ns per value",
        "relative to numpy",
        "relative to OpenDP's discrete Gaussian",
    )
    yield from table(heads, lines)


def _rows(results: Results) -> Iterator[str]:
    lines = []
    for each in of(results, "rows"):
        ours = next(iter(each.contenders))
        for name, measured in each.contenders.items():
            times = ratio(each, name, ours)
            lines.append(
                (
                    _size(each),
                    name,
                    f"{seconds(measured):.3g}",
                    "" if times is None or name == ours else _times(times),
                    f"{added(measured):.0f}",
                )
            )
    yield from table(("rows x columns", "program", "seconds", "relative to Gramercy", "MB"), lines)


def _memory(results: Results) -> Iterator[str]:
    found = [(each, next(iter(each.contenders.values()))) for each in of(results, "stream")]
    first = found[0][1].peak
    lines = [
        (_size(each), f"{m.peak:.0f}", f"{m.peak / first:.3f}", f"{seconds(m):.3g}")
        for each, m in found
    ]
    yield from table(("rows x columns", "peak, MB", "relative to the first", "seconds"), lines)


def _problems(results: Results) -> Iterator[str]:
    for each in of(results, "problems"):
        yield (
            f"{each.cell.rows} paths of the graphical lasso with {each.cell.columns} columns, as "
            "for folds and for draws of a bootstrap. One after the other they take "
            f"{_ratio(each, ONE_BY_ONE, BY_PROCESSES)} times as long as by processes, one for each "
            "of two cores; independent products of matrices "
            f"{_ratio(each, 'numpy: products, 1 process', 'numpy: products, 2 processes')} times.\n"
        )


def _cluster(results: Results) -> Iterator[str]:
    for each in of(results, "cluster"):
        yield (
            f"{_size(each)} in eight Parquet files, single-threaded workers on two cores. Two "
            f"workers are {_ratio(each, 'Dask: 1 worker', 'Dask: 2 workers')} times as fast as "
            "one. As a limit of the machine, two independent processes that multiply matrices are "
            f"{_ratio(each, 'numpy: products, 1 process', 'numpy: products, 2 processes')} times "
            "as fast as one.\n"
        )
        yield from _comparison_table([each], "Dask: 2 workers")


def _ratio(each: Result, one: str, two: str) -> str:
    times = ratio(each, one, two)
    return "" if times is None else f"{times:.2f}"


def _flow(results: Results) -> Iterator[str]:
    for each in of(results, "flow"):
        flow, steps = (seconds(each.contenders[x]) for x in ("Prefect flow", "its steps alone"))
        yield (
            f"One release of {_size(each)} with the Gaussian mechanism, including validation, "
            f"charge and seal: {flow:.2f} s as a Prefect flow on a running server, {steps:.2f} s "
            f"without Prefect, {flow - steps:.2f} s more.\n"
        )


def _size(each: Result) -> str:
    return f"{each.cell.rows:,} x {each.cell.columns}"


def _times(number: float) -> str:
    return f"**{number:.3g}**" if number >= 0.01 else f"**1/{1 / number:.0f}**"


def draw_growth(results: Results, ours: str, path: Path) -> None:
    """Plot times on log axes, one line per contender; Gramercy's is thick and black."""
    with figure(path, 10, 3.6) as canvas:
        names = dict.fromkeys(name for each in of(results, "gram") for name in each.contenders)
        for axes, over_rows in zip(canvas.subplots(1, 2, sharey=True), (True, False), strict=True):
            for index, name in enumerate(names):
                points = series(results, name, over_rows=over_rows)
                axes.plot(
                    *zip(*points, strict=True), marker="o", markersize=3, label=name,
                    color="black" if name == ours else f"C{index}",
                    linewidth=2.5 if name == ours else 1.0,
                )  # fmt: skip
            axes.set(xscale="log", yscale="log", xlabel="rows" if over_rows else "columns")
            axes.grid(alpha=0.3)
        canvas.supylabel("seconds")
        lines, labels = axes.get_legend_handles_labels()
        canvas.legend(lines, labels, loc="outside right upper", fontsize=8)


def draw_memory(results: Results, path: Path) -> None:
    """Plot the memory of a stream, with an axis from zero."""
    found = [each for each in of(results, "stream")]
    rows = [each.cell.rows for each in found]
    with figure(path, 5, 3) as canvas:
        axes = canvas.subplots()
        for label, pick in (("peak", "peak"), ("before", "before")):
            values = [getattr(next(iter(each.contenders.values())), pick) for each in found]
            axes.plot(rows, values, marker="o", markersize=3, label=label)
        axes.set(xscale="log", xlabel="rows", ylabel="resident memory, MB")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)


def draw_noise(results: Results, path: Path) -> None:
    """Plot bars on a log axis for the largest number of values."""
    result = of(results, "noise")[-1]
    names = list(result.contenders)
    values = [1e9 * seconds(result.contenders[name]) / result.cell.rows for name in names]
    with figure(path, 7, 2.6) as canvas:
        axes = canvas.subplots()
        colors = ["black" if name.startswith("Gramercy") else "gray" for name in names]
        axes.barh(names[::-1], values[::-1], color=colors[::-1])
        axes.set(xscale="log", xlabel="nanoseconds a value")
        axes.grid(alpha=0.3, axis="x")


BENCHMARK = Benchmark(
    name="throughput",
    quick="small tables",
    result=cells.Result,
    missing=lambda quick, done: [(cell,) for cell in cells.plan(quick) if cell not in done],
    measure=cells.measure,
    label=lambda cell: f"{cell.what}, {cell.rows:,} x {cell.columns}",
    write=write,
    alone=True,
    fresh=True,
)


READ, PEER = "Gramercy: Parquet to Gram", "pyarrow: batches, X.T @ X"
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


def scale_page(results: Results) -> Iterator[str]:
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
    points = [(each.cell.rows, seconds(each.contenders[READ])) for each in found]
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
        ours = each.contenders[READ]
        times, size = ratio(each, READ, PEER), each.cell.rows * columns * _CELLS / 1e9
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
