"""The command line: measure what is missing, one process a core, and write the page."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.coverage import cells, page
from benchmarks.measuring import append, arguments_of, finished, folder_of, measured

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m benchmarks.coverage``."""
    asked = arguments_of(__package__, "a few cells, few releases").parse_args(arguments)
    out, started = folder_of(asked, HERE), time.monotonic()
    path = out / "results.jsonl"
    missing = list(cells.missing(asked.quick, cells.read(path)))
    for result in measured(cells.measure, missing, asked.jobs, _told):
        append(path, result)
    page.write(out)
    finished(out, started)


def _told(cell: cells.Cell) -> str:
    return f"{cell.graph} {cell.p} x {cell.n} {cell.rows}"
