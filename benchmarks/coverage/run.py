"""The command line: measure what is missing, one process a core, and write the page."""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.coverage import cells, page

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m benchmarks.coverage``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few cells, few releases")
    parser.add_argument("--out", type=Path, help="folder of results.jsonl, results.md, figures/")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    asked = parser.parse_args(arguments)
    out = asked.out or (Path("coverage-quick") if asked.quick else HERE)
    out.mkdir(parents=True, exist_ok=True)
    console, started = Console(), time.monotonic()
    path = out / "results.jsonl"
    missing = list(cells.missing(asked.quick, cells.read(path)))
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console,
    )  # fmt: skip
    with bar, ProcessPoolExecutor(asked.jobs) as pool:
        task = bar.add_task("cells", total=len(missing))
        futures = [pool.submit(cells.measure, *each) for each in missing]
        for future in as_completed(futures):
            result = future.result()
            cells.append(path, result)
            cell = result.cell
            told = f"{cell.graph} {cell.p} x {cell.n} {cell.rows}"
            bar.update(task, advance=1, description=told)
    page.write(out)
    console.print(f"{out / 'results.md'}, after {time.monotonic() - started:.0f} s")
