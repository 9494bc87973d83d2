"""The benchmark: the missing cells are measured with one process per core."""

from __future__ import annotations

from pathlib import Path

from benchmarks.coverage import cells, page
from benchmarks.measuring import Benchmark

BENCHMARK = Benchmark(
    package=Path(__file__).parent,
    quick="measure a few cells with few releases",
    read=cells.read,
    missing=lambda options, done: cells.missing(options.quick, done),
    measure=cells.measure,
    label=lambda cell: f"{cell.graph} {cell.p} x {cell.n} {cell.rows}",
    write=page.write,
)
