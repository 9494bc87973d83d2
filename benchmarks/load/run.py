"""The benchmark: the missing cells are measured one by one, each in a process of its own."""

from __future__ import annotations

from pathlib import Path

from benchmarks.load import cells, page
from benchmarks.measuring import Benchmark

BENCHMARK = Benchmark(
    package=Path(__file__).parent,
    quick="small archives",
    read=cells.read,
    missing=lambda options, done: [
        (cell,) for cell in cells.plan(options.quick) if cell not in done
    ],
    measure=cells.measure,
    label=lambda cell: f"{cell.datasets} data sets of {cell.releases:,} releases",
    write=page.write,
    alone=True,
    fresh=True,
)
