"""The command line: measure what is missing, one process a core, and write the page."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.graphs import cells, page
from benchmarks.measuring import append, arguments_of, finished, folder_of, measured

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m benchmarks.graphs``."""
    parser = arguments_of(__package__, "a few cells, once")
    parser.add_argument("--repetitions", type=int, default=cells.REPETITIONS)
    asked = parser.parse_args(arguments)
    out, started = folder_of(asked, HERE), time.monotonic()
    path = out / "results.jsonl"
    done = cells.read(path)
    wanted = cells.plan(asked.quick, asked.repetitions)
    missing = [(cell,) for cell in wanted if cell not in done]
    for result in measured(cells.measure, missing, asked.jobs, _told):
        append(path, result)
    page.write(out)
    finished(out, started)


def _told(cell: cells.Cell) -> str:
    return f"{cell.source} {cell.p} x {cell.n} {cell.epsilon:g}"
