"""The command: measure the missing cells, one process per core, and write the page."""

from __future__ import annotations

import os
import time
from pathlib import Path

from rich.console import Console

from benchmarks.measuring import append, argument_parser, output_folder, report, run_cells
from benchmarks.utility import cells, page
from benchmarks.utility.peers.opendp_pca import VARIABLE

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m benchmarks.utility``."""
    options = argument_parser(__package__, "measure a few cells with 5 repetitions").parse_args(
        arguments
    )
    out, started = output_folder(options, HERE), time.monotonic()
    leave = frozenset() if os.environ.get(VARIABLE) else frozenset({"opendp-pca"})
    if leave:
        Console().print(f"OpenDP is left out: {VARIABLE} does not name an interpreter that has it.")
    path = out / "results.jsonl"
    done = cells.read(path)
    missing = [
        (cell, times)
        for cell, times in cells.plan(options.quick, leave)
        if cell not in done or done[cell].repetitions < times
    ]
    for result in run_cells(cells.measure, missing, options.jobs, _label):
        append(path, result)
    page.write(out)
    report(out, started)


def _label(cell: cells.Cell) -> str:
    return f"{cell.dataset} {cell.kind} {cell.value:g} {cell.method}"
