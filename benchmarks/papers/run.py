"""The command line: measure what is missing, one process a core, and write the page."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.measuring import append, arguments_of, finished, measured
from benchmarks.papers import cells, page
from benchmarks.papers.papers import PAPERS

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m benchmarks.papers``."""
    parser = arguments_of("benchmarks.papers", "a few settings and repetitions of each")
    parser.add_argument(
        "papers", nargs="*", metavar="PAPER", help=f"of {', '.join(PAPERS)}; all of them if none"
    )
    asked = parser.parse_args(arguments)
    unknown = set(asked.papers) - set(PAPERS)
    if unknown:
        parser.error(f"no such paper: {', '.join(sorted(unknown))}")
    out: Path | None = asked.out or (Path("papers-quick") if asked.quick else None)
    kept, page_to = (HERE / "results", DOCS) if out is None else (out / "results", out)
    kept.mkdir(parents=True, exist_ok=True)
    started, done = time.monotonic(), cells.read(kept)
    wanted = cells.plan(asked.papers or list(PAPERS), asked.quick)
    missing = [(cell,) for cell in wanted if cell not in done]
    for result in measured(cells.measure, missing, asked.jobs, _told):
        append(cells.file_of(kept, result.cell.paper), result)
    page.write(cells.read(kept), page_to)
    finished(page_to, started)


def _told(cell: cells.Cell) -> str:
    return " ".join((cell.paper, cell.experiment, *(str(value) for _, value in cell.setting)))
