"""What every benchmark does with its cells: measured in processes, kept a line each in a file."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


def arguments_of(package: str, quick: str) -> argparse.ArgumentParser:
    """The options that all of them take; `quick` says what ``--quick`` measures."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {package}", description="Measure what is missing, and write the page."
    )
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--out", type=Path, help="folder of results.jsonl, results.md, figures/")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    return parser


def folder_of(asked: argparse.Namespace, package: Path) -> Path:
    """Where results go, made if it is not there: the package's folder, unless all is quick."""
    out: Path = asked.out or (Path(f"{package.name}-quick") if asked.quick else package)
    out.mkdir(parents=True, exist_ok=True)
    return out


def measured(
    measure: Callable[..., Any],
    missing: Iterable[tuple[Any, ...]],
    jobs: int,
    told: Callable[..., str],
    *,
    fresh: bool = False,
) -> Iterator[Any]:
    """Results as they come, `jobs` at a time, with a bar; `told` names the one that just came.

    Each in a `fresh` process, where memory is measured too.
    """
    wanted = list(missing)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    )
    pool = ProcessPoolExecutor(
        jobs, get_context("spawn") if fresh else None, max_tasks_per_child=1 if fresh else None
    )
    with bar, pool:
        task = bar.add_task("cells", total=len(wanted))
        for future in as_completed([pool.submit(measure, *each) for each in wanted]):
            result = future.result()
            yield result
            bar.update(task, advance=1, description=told(result.cell))


def finished(out: Path, started: float) -> None:
    """Say where the page is."""
    Console().print(f"{out / 'results.md'}, after {time.monotonic() - started:.0f} s")


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """What the file holds; a line cut short by an interruption is measured again."""
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            fields = json.loads(line)
        except json.JSONDecodeError:
            continue
        yield fields


def append(path: Path, result: Any) -> None:
    """One line more; a line that an interruption has cut short is ended first."""
    with path.open("ab+") as file:
        if file.tell() and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n":
            file.write(b"\n")
        file.write(json.dumps(asdict(result)).encode() + b"\n")
