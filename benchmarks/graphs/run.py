"""The benchmark: the missing cells are measured with one process per core."""

from __future__ import annotations

from pathlib import Path

from benchmarks.graphs import cells, page
from benchmarks.measuring import Benchmark

BENCHMARK = Benchmark(
    package=Path(__file__).parent,
    quick="a few cells, once",
    read=cells.read,
    missing=lambda options, done: [
        (cell,) for cell in cells.plan(options.quick, options.repetitions) if cell not in done
    ],
    measure=cells.measure,
    label=lambda cell: f"{cell.source} {cell.p} x {cell.n} {cell.epsilon:g}",
    write=page.write,
    options={"repetitions": cells.REPETITIONS},
)
