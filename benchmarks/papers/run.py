"""The command: measure the missing cells, one process per core, and write the pages."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.measuring import append, argument_parser, report, run_cells
from benchmarks.papers import cells, page
from benchmarks.papers.papers import PAPERS

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m benchmarks.papers``."""
    parser = argument_parser(
        "benchmarks.papers", "measure a few settings and repetitions of each experiment"
    )
    parser.add_argument(
        "papers", nargs="*", metavar="PAPER", help=f"of {', '.join(PAPERS)}; default: all papers"
    )
    options = parser.parse_args(arguments)
    unknown = set(options.papers) - set(PAPERS)
    if unknown:
        parser.error(f"unknown papers: {', '.join(sorted(unknown))}")
    out: Path | None = options.out or (Path("papers-quick") if options.quick else None)
    kept, page_to = (HERE / "results", DOCS) if out is None else (out / "results", out)
    kept.mkdir(parents=True, exist_ok=True)
    started, done = time.monotonic(), cells.read(kept)
    wanted = cells.plan(options.papers or list(PAPERS), options.quick)
    missing = [(cell,) for cell in wanted if cell not in done]
    for result in run_cells(cells.measure, missing, options.jobs, _label):
        append(cells.file_of(kept, result.cell.paper), result)
    page.write(cells.read(kept), page_to)
    report(page_to, started)


def _label(cell: cells.Cell) -> str:
    return " ".join((cell.paper, cell.experiment, *(str(value) for _, value in cell.setting)))
