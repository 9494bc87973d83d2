"""Measure the cells of a benchmark in processes, keep one line per cell in a file, and resume."""

from __future__ import annotations

import argparse
import json
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

# Imported where it is used: `load` measures the memory of a process that imports this module.
if TYPE_CHECKING:
    import numpy as np

    from benchmarks.peers import Peer


@dataclass(frozen=True)
class Benchmark:
    """A benchmark of cells, each measured once and kept as a line of `results.jsonl`.

    Parameters
    ----------
    name
        Of the package, which is the folder of the results.
    quick
        Help text of ``--quick``.
    result
        The dataclass of a result; its attribute `cell` is a dataclass as well.
    missing
        The cells to measure, by ``--quick`` and the results, as arguments of `measure`.
    measure
        Measures a cell.
    label
        Describes a cell.
    write
        Writes the page and its figures into the folder of the results.
    alone
        Whether cells are measured one by one: parallel processes would slow each other down.
    fresh
        Whether each cell gets a process of its own, for measurements of memory.
    """

    name: str
    quick: str
    result: type[Any]
    missing: Callable[[bool, dict[Any, Any]], Iterable[tuple[Any, ...]]]
    measure: Callable[..., Any]
    label: Callable[[Any], str]
    write: Callable[[Path], None]
    alone: bool = False
    fresh: bool = False

    def main(self, arguments: list[str] | None = None) -> None:
        """Measure the missing cells, and write the page."""
        parser = argument_parser(self.name, self.quick)
        if self.alone:
            parser.set_defaults(jobs=1)
        options, started = parser.parse_args(arguments), time.monotonic()
        quick = Path(f"{self.name}-quick")
        out: Path = options.out or (quick if options.quick else Path(__file__).parent / self.name)
        out.mkdir(parents=True, exist_ok=True)
        path = out / "results.jsonl"
        missing = self.missing(options.quick, read_results(path, self.result))
        for result in run_cells(self.measure, missing, options.jobs, self.label, fresh=self.fresh):
            append(path, result)
        self.write(out)
        report(out, started)


def argument_parser(name: str, quick: str) -> argparse.ArgumentParser:
    """Command line options shared by all benchmarks; `quick` is the help text of ``--quick``."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description="Measure the missing cells, and write the page.",
    )
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--out", type=Path, help="folder of results.jsonl, results.md, figures/")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    return parser


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


AnyResult = TypeVar("AnyResult", bound="_Result")


class _Result(Protocol):
    @property
    def cell(self) -> Any: ...


def read_results(path: Path, result: type[AnyResult]) -> dict[Any, AnyResult]:
    """Read the results in a file, by cell.

    A line cut short by an interruption is skipped; its cell is measured again. A cell with several
    lines has all that they hold, if its results can be merged, and otherwise the last one.
    """
    from pydantic import TypeAdapter

    adapter, results = TypeAdapter(result), dict[Any, AnyResult]()
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            fields = json.loads(line)
        except json.JSONDecodeError:
            continue
        each = adapter.validate_python(fields)
        if each.cell in results and hasattr(each, "merged_after"):
            each = each.merged_after(results[each.cell])
        results[each.cell] = each
    return results


def append(path: Path, result: Any) -> None:
    """Append a line. If an interruption cut the last line short, start a new line first."""
    with path.open("ab+") as file:
        if file.tell() and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n":
            file.write(b"\n")
        file.write(json.dumps(asdict(result)).encode() + b"\n")


class _Method(Protocol):
    """A method, with the library that it runs; None for Gramercy."""

    @property
    def peer(self) -> Peer | None: ...


AnyMethod = TypeVar("AnyMethod", bound=_Method)


@dataclass(frozen=True)
class Cell:
    """A method with one guarantee on one table, or samples of it, where methods are compared.

    Parameters
    ----------
    table, epsilon, method
        Keys of the benchmark's tables and methods, and the epsilon at delta = 1e-6.
    """

    table: str
    epsilon: float
    method: str

    def generator(self) -> np.random.Generator:
        """Random numbers that depend on the cell only."""
        import numpy as np

        return np.random.default_rng(zlib.crc32(repr(self).encode()))


def usable(methods: Mapping[str, AnyMethod]) -> dict[str, AnyMethod]:
    """The methods without those of peers whose interpreter is not named, with a message."""
    libraries = dict.fromkeys(each.peer for each in methods.values() if each.peer)
    found = {None, *(peer for peer in libraries if peer.found())}
    return {name: each for name, each in methods.items() if each.peer in found}
