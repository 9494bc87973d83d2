"""The command line: measure what is missing, one process a core, and write the page."""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.graphs import cells, page

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> None:
    """Entry point of ``python -m benchmarks.graphs``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.graphs", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few cells, once")
    parser.add_argument("--out", type=Path, help="folder of results.jsonl, results.md, figures/")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--repetitions", type=int, default=cells.REPETITIONS)
    asked = parser.parse_args(arguments)
    out = asked.out or (Path("graphs-quick") if asked.quick else HERE)
    out.mkdir(parents=True, exist_ok=True)
    console, started = Console(), time.monotonic()
    path = out / "results.jsonl"
    done = cells.read(path)
    missing = [cell for cell in cells.plan(asked.quick, asked.repetitions) if cell not in done]
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console,
    )  # fmt: skip
    with bar, ProcessPoolExecutor(asked.jobs) as pool:
        task = bar.add_task("cells", total=len(missing))
        for future in as_completed([pool.submit(cells.measure, cell) for cell in missing]):
            result = future.result()
            cells.append(path, result)
            cell = result.cell
            told = f"{cell.source} {cell.p} x {cell.n} {cell.epsilon:g}"
            bar.update(task, advance=1, description=told)
    page.write(out)
    console.print(f"{out / 'results.md'}, after {time.monotonic() - started:.0f} s")
