"""The benchmark: the missing cells are measured with one process per core."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import Benchmark
from benchmarks.peers import OPENDP
from benchmarks.utility import cells, page
from benchmarks.utility.peers import opendp_pca


def _missing(
    options: Namespace, done: dict[cells.Cell, cells.Result]
) -> Iterator[tuple[cells.Cell, int]]:
    """Yield the cells with too few repetitions; without OpenDP if it is not there."""
    leave = (
        frozenset() if OPENDP.found() else frozenset(method.name for method in opendp_pca.METHODS)
    )
    for cell, times in cells.plan(options.quick, leave):
        if cell not in done or done[cell].repetitions < times:
            yield cell, times


BENCHMARK = Benchmark(
    package=Path(__file__).parent,
    quick="measure a few cells with 5 repetitions",
    read=cells.read,
    missing=_missing,
    measure=cells.measure,
    label=lambda cell: f"{cell.dataset} {cell.kind} {cell.value:g} {cell.method}",
    write=page.write,
)
