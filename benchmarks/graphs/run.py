"""The command: measure the missing cells, one process per core, and write the page."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.graphs import cells, page
from benchmarks.measuring import append, argument_parser, output_folder, report, run_cells

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m benchmarks.graphs``."""
    parser = argument_parser(__package__, "a few cells, once")
    parser.add_argument("--repetitions", type=int, default=cells.REPETITIONS)
    options = parser.parse_args(arguments)
    out, started = output_folder(options, HERE), time.monotonic()
    path = out / "results.jsonl"
    done = cells.read(path)
    wanted = cells.plan(options.quick, options.repetitions)
    missing = [(cell,) for cell in wanted if cell not in done]
    for result in run_cells(cells.measure, missing, options.jobs, _label):
        append(path, result)
    page.write(out)
    report(out, started)


def _label(cell: cells.Cell) -> str:
    return f"{cell.source} {cell.p} x {cell.n} {cell.epsilon:g}"
