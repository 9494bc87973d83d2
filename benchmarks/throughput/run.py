"""The benchmark: the missing cells are measured one by one."""

from __future__ import annotations

from pathlib import Path

from benchmarks.measuring import Benchmark
from benchmarks.throughput import cells, page

BENCHMARK = Benchmark(
    package=Path(__file__).parent,
    quick="small tables",
    read=cells.read,
    missing=lambda options, done: [
        (cell,) for cell in cells.plan(options.quick) if cell not in done
    ],
    measure=cells.measure,
    label=lambda cell: f"{cell.what}, {cell.rows:,} x {cell.columns}",
    write=page.write,
    alone=True,
    fresh=True,
)
