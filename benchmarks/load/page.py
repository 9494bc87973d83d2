"""The results page."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.cells import Benchmark, read_results
from benchmarks.load import cells
from benchmarks.load.cells import (
    COMMANDS,
    HTTP_LIST,
    HTTP_OPEN,
    LISTING,
    OPEN,
    PUBLISH,
    Measured,
    Result,
)
from benchmarks.pages import table, write_page

_INTRODUCTION = (
    "For stewards of large archives: what commands take as the number of releases grows. Each "
    "archive consists of copies of one real release of 10 columns under many names, with seals, "
    "signatures and charges of their own. Seconds are medians of three rounds, commands with the "
    "start of Python; processor seconds depend little on what else the machine does. Memory is the "
    "peak of the process. Over HTTP, a static server on the same machine serves the archive, and "
    "its work is not counted. Written by `python -m benchmarks load` "
    "from `results.jsonl`."
)
_ELAPSED = "Seconds"
_MEANINGS = {
    HTTP_LIST: "`gramercy list --archive http://...`",
    HTTP_OPEN: '`gramercy.open("http://...")` and a release by its name, which is verified',
    OPEN: "`gramercy.open` and a release by its name, which is verified",
    PUBLISH: "the signed listing, and the pages of the release, its data set and the archive",
    LISTING: "the signed listing from all bundles, as `gramercy site` writes it",
}


def write(out: Path) -> None:
    """Write `results.md` from `results.jsonl` in the same folder."""
    results = list(read_results(out / "results.jsonl", Result).values())
    write_page(out / "results.md", _lines(results))


def _lines(results: list[Result]) -> Iterator[str]:
    yield "# Thousands of releases\n"
    yield _INTRODUCTION + "\n"
    results = sorted(results, key=lambda each: each.cell.releases)
    yield _machine(results) + "\n"
    head = [f"{each.cell.releases:,} of {each.cell.datasets}" for each in results]
    for title, of in _TABLES.items():
        if title == _ELAPSED and _is_busy(results):
            continue
        yield f"## {title}\n"
        body = [
            [
                f"`gramercy {name}`" if name in COMMANDS else _MEANINGS[name],
                *(of(each.measured[name]) for each in results),
            ]
            for name in (*COMMANDS, *_MEANINGS)
        ]
        yield from table(["releases of data sets", *head], body)


def _machine(results: list[Result]) -> str:
    """The state of the machine while the results were measured."""
    cores = max(each.cores for each in results)
    load = [x for each in results for x in each.load]
    text = (
        f"On {cores} processors with a load average (five minutes) of {min(load):g} to "
        f"{max(load):g}, to which this benchmark adds 1"
    )
    if _is_busy(results):
        return (
            f"{text}: other work ran at the same time. Elapsed seconds are therefore left out, and "
            "processor seconds are somewhat larger than on an idle machine."
        )
    return f"{text}."


def _is_busy(results: list[Result]) -> bool:
    """Whether the machine had more to do than its processors can."""
    return any(max(each.load) > each.cores for each in results)


_TABLES: dict[str, Callable[[Measured], str]] = {
    _ELAPSED: lambda each: f"{statistics.median(each.seconds):.2f}",
    "Processor seconds": lambda each: f"{statistics.median(each.processor):.2f}",
    "Megabytes": lambda each: str(each.peak),
}


BENCHMARK = Benchmark(
    name="load",
    quick="small archives",
    result=cells.Result,
    missing=lambda quick, done: [(cell,) for cell in cells.plan(quick) if cell not in done],
    measure=cells.measure,
    label=lambda cell: f"{cell.datasets} data sets of {cell.releases:,} releases",
    write=write,
    alone=True,
    fresh=True,
)
