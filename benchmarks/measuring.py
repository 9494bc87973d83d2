"""Run the cells of a benchmark in processes, and store one line per cell in a file."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def command(package: str, *, one_thread: bool = True) -> None:
    """Run ``python -m package``, whose `run` module declares a `BENCHMARK`.

    With `one_thread`, BLAS gets one thread per process: parallel processes use all cores.
    """
    if one_thread:  # read when numpy loads, so before the benchmark is imported
        os.environ.update(dict.fromkeys(_THREADS, "1"))
    benchmark: Benchmark = importlib.import_module(f"{package}.run").BENCHMARK
    benchmark.main()


@dataclass(frozen=True)
class Benchmark:
    """A benchmark of cells, each measured once and kept as a line of `results.jsonl`.

    Parameters
    ----------
    package
        The folder of the results.
    quick
        Help text of ``--quick``.
    read
        Reads the results in a file, by cell.
    missing
        The cells to measure, by the options and the results, as arguments of `measure`.
    measure
        Measures a cell; the result has an attribute `cell`.
    label
        Describes a cell.
    write
        Writes the page and its figures into the folder of the results.
    alone
        Whether cells are measured one by one: parallel processes would slow each other down.
    fresh
        Whether each cell gets a process of its own, for measurements of memory.
    options
        Further integer options and their defaults.
    """

    package: Path
    quick: str
    read: Callable[[Path], dict[Any, Any]]
    missing: Callable[[argparse.Namespace, dict[Any, Any]], Iterable[tuple[Any, ...]]]
    measure: Callable[..., Any]
    label: Callable[[Any], str]
    write: Callable[[Path], None]
    alone: bool = False
    fresh: bool = False
    options: Mapping[str, int] = field(default_factory=dict)

    def main(self, arguments: list[str] | None = None) -> None:
        """Measure the missing cells, and write the page."""
        parser = argument_parser(f"benchmarks.{self.package.name}", self.quick)
        for name, value in self.options.items():
            parser.add_argument(f"--{name}", type=int, default=value)
        if self.alone:
            parser.set_defaults(jobs=1)
        options = parser.parse_args(arguments)
        out, started = output_folder(options, self.package), time.monotonic()
        path = out / "results.jsonl"
        missing = list(self.missing(options, self.read(path)))
        for result in run_cells(self.measure, missing, options.jobs, self.label, fresh=self.fresh):
            append(path, result)
        self.write(out)
        report(out, started)


def argument_parser(package: str, quick: str) -> argparse.ArgumentParser:
    """Command line options shared by all benchmarks; `quick` is the help text of ``--quick``."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {package}", description="Measure the missing cells, and write the page."
    )
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--out", type=Path, help="folder of results.jsonl, results.md, figures/")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    return parser


def output_folder(options: argparse.Namespace, package: Path) -> Path:
    """Create and return the folder of results: the package, or its own folder for ``--quick``."""
    out: Path = options.out or (Path(f"{package.name}-quick") if options.quick else package)
    out.mkdir(parents=True, exist_ok=True)
    return out


def run_cells(
    measure: Callable[..., Any],
    missing: Iterable[tuple[Any, ...]],
    jobs: int,
    label: Callable[..., str],
    *,
    fresh: bool = False,
) -> Iterator[Any]:
    """Yield results as they are ready, `jobs` at a time, with a progress bar.

    `label` describes a cell. Each cell gets a `fresh` process where memory is measured.
    """
    cells = list(missing)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    )
    pool = ProcessPoolExecutor(
        jobs, get_context("spawn") if fresh else None, max_tasks_per_child=1 if fresh else None
    )
    with bar, pool:
        task = bar.add_task("cells", total=len(cells))
        for future in as_completed([pool.submit(measure, *cell) for cell in cells]):
            result = future.result()
            yield result
            bar.update(task, advance=1, description=label(result.cell))


def report(out: Path, started: float) -> None:
    """Print the location of the page and the elapsed time."""
    Console().print(f"{out / 'results.md'}, after {time.monotonic() - started:.0f} s")


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the results in the file.

    A line cut short by an interruption is skipped; its cell is measured again.
    """
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            fields = json.loads(line)
        except json.JSONDecodeError:
            continue
        yield fields


def append(path: Path, result: Any) -> None:
    """Append a line. If an interruption cut the last line short, start a new line first."""
    with path.open("ab+") as file:
        if file.tell() and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n":
            file.write(b"\n")
        file.write(json.dumps(asdict(result)).encode() + b"\n")
