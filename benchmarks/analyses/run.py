"""The benchmark: the missing cells are measured with one process per core."""

from __future__ import annotations

from pathlib import Path

from benchmarks.analyses import cells, page
from benchmarks.measuring import Benchmark

BENCHMARK = Benchmark(
    package=Path(__file__).parent,
    quick="measure two tables with few releases",
    read=cells.read,
    missing=lambda options, done: cells.missing(options.quick, done),
    measure=cells.measure,
    label=lambda cell: f"{cell.table} {cell.epsilon:g} {cell.method}",
    write=page.write,
)
