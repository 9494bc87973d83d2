"""The command: measure the missing cells, one process per core, and write the page."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.measuring import append, argument_parser, output_folder, report, run_cells
from benchmarks.statistics import cells, page

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m benchmarks.statistics``."""
    options = argument_parser(__package__, "measure two tables with few releases").parse_args(
        arguments
    )
    out, started = output_folder(options, HERE), time.monotonic()
    path = out / "results.jsonl"
    missing = list(cells.missing(options.quick, cells.read(path)))
    for result in run_cells(cells.measure, missing, options.jobs, _label):
        append(path, result)
    page.write(out)
    report(out, started)


def _label(cell: cells.Cell) -> str:
    return f"{cell.table} {cell.epsilon:g} {cell.method}"
