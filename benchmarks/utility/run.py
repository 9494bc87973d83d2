"""The command line: measure what is missing, one process a core, and write the page."""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.utility import cells, page
from benchmarks.utility.peers.opendp_pca import VARIABLE

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m benchmarks.utility``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.utility", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few cells, 5 repetitions")
    parser.add_argument("--out", type=Path, help="folder of results.jsonl, results.md, figures/")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    asked = parser.parse_args(arguments)
    out = asked.out or (Path("utility-quick") if asked.quick else HERE)
    out.mkdir(parents=True, exist_ok=True)
    console, started = Console(), time.monotonic()
    measure_missing(out / "results.jsonl", asked.quick, asked.jobs, console)
    page.write(out)
    console.print(f"{out / 'results.md'}, after {time.monotonic() - started:.0f} s")


def measure_missing(path: Path, quick: bool, jobs: int, console: Console) -> None:
    """Measure every planned cell that the file does not hold often enough."""
    leave = frozenset() if os.environ.get(VARIABLE) else frozenset({"opendp-pca"})
    if leave:
        console.print(f"OpenDP is left out: {VARIABLE} names no interpreter that has it.")
    done = cells.read(path)
    missing = [
        (cell, times)
        for cell, times in cells.plan(quick, leave)
        if cell not in done or done[cell].repetitions < times
    ]
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console,
    )  # fmt: skip
    with bar, ProcessPoolExecutor(jobs) as pool:
        task = bar.add_task("cells", total=len(missing))
        futures = [pool.submit(cells.measure, cell, times) for cell, times in missing]
        for future in as_completed(futures):
            result = future.result()
            cells.append(path, result)
            cell = result.cell
            bar.update(
                task,
                advance=1,
                description=f"{cell.dataset} {cell.kind} {cell.value:g} {cell.method}",
            )
