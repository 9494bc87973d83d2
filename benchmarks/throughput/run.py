"""The command line: measure what is missing, a cell at a time, and write the page."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.measuring import append, arguments_of, finished, folder_of, measured
from benchmarks.throughput import cells, page

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m benchmarks.throughput``."""
    parser = arguments_of(__package__, "small tables")
    parser.set_defaults(jobs=1)  # what runs beside is measured too
    asked = parser.parse_args(arguments)
    out, started = folder_of(asked, HERE), time.monotonic()
    path = out / "results.jsonl"
    done = cells.read(path)
    missing = [(cell,) for cell in cells.plan(asked.quick) if cell not in done]
    for result in measured(cells.measure, missing, asked.jobs, _told, fresh=True):
        append(path, result)
    page.write(out)
    finished(out, started)


def _told(cell: cells.Cell) -> str:
    return f"{cell.what}, {cell.rows:,} x {cell.columns}"
