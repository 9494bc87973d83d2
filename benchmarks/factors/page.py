"""The results page, which has the figures of `docs/analyses/factors.md`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.cells import Benchmark, read_results
from benchmarks.factors import cells
from benchmarks.factors.cells import BOUND, FACTORS, RADII, SCALE, Cell, Result
from benchmarks.pages import table, write_page

_INTRODUCTION = (
    "For analysts: what the intervals of factor analyses and reliabilities cover. Coverage of 95% "
    "intervals in simulated releases of Gaussian rows, each of a sample of its own, at "
    "delta = 1e-6. Written by `python -m benchmarks factors` from `results.jsonl`."
)
_CONSTANTS = (
    f"Declared bounds are {BOUND:g} standard deviations from the means, and rows are clipped at "
    f"{RADII['declared']:g} √(columns) deviations, which almost none exceeds; in one line at "
    f"{RADII['short radius']:g} √(columns), which four rows in a hundred exceed. "
    "Private constants clip rows."
)
_FACTORS = (
    "The number of factors is given. Strong loadings are .5 to .85, weak ones .25 to .6; with "
    "cross loadings, .5 to .8 and up to .3 on a second factor. The truth is the rotated loadings "
    "of the population. Coverage is the mean over all loadings or communalities whose intervals "
    "are known, and the error the root mean square one of the loadings. *Number found*: by "
    "parallel analysis. *Known*: releases of which all factors are known; the others do not count."
)
_SCALE = (
    "One factor with loadings of .4 to .8. Answers of five levels are rounded. The truth is that "
    "of a million rows. *Known*: releases whose coefficients are known; the others do not count."
)


def write(out: Path) -> None:
    """Write `results.md` from `results.jsonl` in the same folder."""
    results = read_results(out / "results.jsonl", Result)
    write_page(
        out / "results.md", _lines([results[each] for each in cells.CELLS if each in results])
    )


def _lines(results: list[Result]) -> Iterator[str]:
    yield "# Factor analysis and reliability\n"
    yield _INTRODUCTION + "\n"
    yield _CONSTANTS + "\n"
    yield "## Factors\n"
    yield _FACTORS + "\n"
    head = ["columns, factors", "loadings", "rotation", "rows", "epsilon", "constants"]
    head += [*(f"{of} covered" for of in FACTORS), "error", "number found", "known", "releases"]
    yield from table(head, [_line(each) for each in results if not each.cell.is_scale])
    yield "## Reliability\n"
    yield _SCALE + "\n"
    head = ["items", "answers", "rows", "epsilon", "constants"]
    head += [f"{of.replace('_', ' ')} covered" for of in SCALE]
    head += ["half width for alpha", "known", "releases"]
    yield from table(head, [_line(each) for each in results if each.cell.is_scale])


def _line(result: Result) -> tuple[str, ...]:
    cell, right = result.cell, result.right
    return (
        *_population(cell),
        f"{cell.n:,}",
        f"{cell.epsilon:g}",
        cell.constants,
        *("" if each is None else f"{each:.1%}" for each in result.held.values()),
        "" if result.width is None else f"{result.width:.3f}",
        *(() if right is None else (f"{right:.0%}",)),
        f"{result.known:.0%}",
        str(result.releases),
    )


def _population(cell: Cell) -> tuple[str, ...]:
    if cell.is_scale:
        return str(cell.columns), cell.rotation
    return f"{cell.columns}, {cell.factors}", cell.loadings, cell.rotation


BENCHMARK = Benchmark(
    name="factors",
    quick="measure two cells with two releases each",
    result=Result,
    missing=cells.missing,
    measure=cells.measure,
    label=lambda cell: f"{cell.columns} {cell.loadings} {cell.n} {cell.epsilon:g}",
    write=write,
)
