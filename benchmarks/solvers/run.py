"""The benchmark: the missing cells are measured one by one."""

from __future__ import annotations

from pathlib import Path

from benchmarks.measuring import Benchmark
from benchmarks.solvers import cells, page

BENCHMARK = Benchmark(
    package=Path(__file__).parent,
    quick="the two smallest sizes",
    read=cells.read,
    missing=lambda options, done: [
        (cell,) for cell in cells.plan(options.quick) if cell not in done
    ],
    measure=cells.measure,
    label=lambda cell: f"{cell.what} of {cell.kind} {cell.regime}, {cell.p} columns",
    write=page.write,
    alone=True,
)
