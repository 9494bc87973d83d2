"""The command: measure the missing cells one by one, and write the page."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.measuring import append, argument_parser, output_folder, report, run_cells
from benchmarks.throughput import cells, page

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m benchmarks.throughput``."""
    parser = argument_parser(__package__, "small tables")
    parser.set_defaults(jobs=1)  # parallel processes would slow each other down
    options = parser.parse_args(arguments)
    out, started = output_folder(options, HERE), time.monotonic()
    path = out / "results.jsonl"
    done = cells.read(path)
    missing = [(cell,) for cell in cells.plan(options.quick) if cell not in done]
    for result in run_cells(cells.measure, missing, options.jobs, _label, fresh=True):
        append(path, result)
    page.write(out)
    report(out, started)


def _label(cell: cells.Cell) -> str:
    return f"{cell.what}, {cell.rows:,} x {cell.columns}"
