"""The command: measure the missing cells, one process per core, and write the page."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.denoising import cells, page
from benchmarks.measuring import append, argument_parser, output_folder, report, run_cells

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m benchmarks.denoising``."""
    options = argument_parser(__package__, "measure a few cells with one release").parse_args(
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
    return f"{cell.mechanism} {cell.p} {cell.spectrum} {cell.epsilon:g}"
