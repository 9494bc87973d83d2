"""The results page, and the tables that the guide for growing tables has of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.arrays import Array
from benchmarks.cells import Benchmark, read_results
from benchmarks.pages import table, write_page
from benchmarks.series import cells
from benchmarks.series.cells import Result
from benchmarks.series.noise import Noise
from benchmarks.series.strategies import (
    CUMULATIVE,
    LAST,
    STRATEGIES,
    WEEKS,
    noise,
    redrawn,
)
from gramercy.common.prefix_sums import PrefixSums

_TITLES = {
    "whole": "the whole table every week, at the same total",
    "weeks": "`per: week`, pooled",
    "tree": "binary tree, best combination of its sums",
    CUMULATIVE: "`cumulative: week`",
}
_TOTALS = ("all so far", f"last {LAST}", "a single week")
_WIDTHS = (("so_far", None), ("last", LAST), ("single", 1))


_INTRODUCTION = (
    "For stewards and statisticians: what a weekly release of a growing table costs, by the way in "
    "which it is published. All noise is relative to that of one release of the same table with "
    "the same guarantee for a row. Written by `python -m benchmarks series` from `results.jsonl`."
)
_EXACT = (
    "From the weights of each way alone. With `per: week` every row is in one release, which has "
    "the whole budget. The whole table every week divides the budget by 52 releases. A tree "
    "publishes sums of 1, 2, 4, 8, 16 and 32 weeks when they are complete, each with noise of its "
    "own, and every total is the best unbiased combination of the sums published by then. A series "
    "publishes weighted sums from which everybody decodes. *The last weeks* and *a single week* "
    "are what can be said when the last of these weeks is published."
)


def write(out: Path) -> None:
    """Write `results.md` from `results.jsonl` in the same folder."""
    results = list(read_results(out / "results.jsonl", Result).values())
    write_page(out / "results.md", _lines(results))


def _lines(results: list[Result]) -> Iterator[str]:
    yield "# A year of weekly releases\n"
    yield _INTRODUCTION + "\n"
    yield "## Noise\n"
    yield _EXACT + "\n"
    yield from noise_table()
    yield "## Noise, measured\n"
    yield from _measured([each for each in results if each.noise is not None])
    yield "## A year by the pipeline\n"
    yield from _published([each for each in results if each.year is not None])
    yield "## Series of other lengths\n"
    yield from lengths_table()
    yield "## A step that is drawn again\n"
    yield (
        "A step that was charged and lost in a crash can be drawn again. The charge of the series "
        "grows by what the second draw adds for the rows of the most exposed step.\n"
    )
    yield from redraws_table()
    yield "## A row that is added late\n"
    yield (
        "The share with which a row of the first week counts in the sum of all weeks so far, by "
        "how many weeks after its own step it is first read. A deleted row keeps the rest: what "
        "is missing to one.\n"
    )
    yield from corrections_table()


def _measured(results: list[Result]) -> Iterator[str]:
    years = max((each.cell.size for each in results), default=0)
    yield (
        f"Root mean square errors of {years:,} years of noise from the mechanism itself, added to "
        "the sums of one made-up table in whole numbers, and decoded or combined as above; "
        "relative to the stated noise of one release, which is also drawn. Of each total, the "
        "largest deviation of any week from the exact figure.\n"
    )
    body = []
    for way in STRATEGIES:
        for each in (each.noise for each in results if each.cell.way == way):
            if each is not None:
                body.append((_TITLES[way], *_measurements(way, each)))
    head = ("", "one release", "the whole year", *(f"deviation, {name}" for name in _TOTALS))
    yield from table(head, body)


def _measurements(way: str, drawn: Noise) -> Iterator[str]:
    yield f"{drawn.one:.3f}"
    yield f"{drawn.so_far[-1]:.2f}"
    for (name, width), _ in zip(_WIDTHS, _TOTALS, strict=True):
        measured = np.array(getattr(drawn, name))
        yield f"{np.abs(measured / noise(way, len(drawn.so_far), width) - 1).max():.1%}"


def _published(results: list[Result]) -> Iterator[str]:
    rows = max((each.cell.size for each in results), default=0)
    yield (
        f"{WEEKS} releases of a made-up table of 20 columns that grows by {rows:,} rows a week, by "
        "the same code as a release: plan, passes over the table, charge, noise and seal. ε is "
        "what was spent for a row after the year (δ = 10⁻⁶). The error is that of the sum over all "
        "rows of the year in this one run, relative to the stated noise of one release; chance "
        "moves it by about 5%. `verify` found nothing wrong with any release. Measured on "
        f"{cells.MEASURED}, on two processors with other work: seconds compare the ways, and are "
        "several times those of an idle machine.\n"
    )
    body = []
    for each in results:
        if (year := each.year) is not None:
            body.append(
                (
                    _TITLES[each.cell.way],
                    f"{year.epsilon:.3f}",
                    f"{year.error:.2f}",
                    f"{year.seconds[0]:.2f}",
                    f"{year.seconds[-1]:.2f}",
                    f"{sum(year.seconds):.1f}",
                    f"{year.verified:.1f}",
                    str(year.peak),
                )
            )
    head = (
        "",
        "ε spent",
        "error, relative",
        "seconds, first release",
        "last release",
        "the year",
        "verifying all",
        "megabytes",
    )
    yield from table(head, body)


def noise_table(weeks: int = WEEKS) -> Iterator[str]:
    """The noise of every way, relative to one release with the charge of the year."""
    body = []
    for way in STRATEGIES:
        so_far, last, single = (noise(way, weeks, width) for _, width in _WIDTHS)
        body.append(
            (
                _TITLES[way],
                f"{so_far[-1]:.2f}",
                f"{_rms(so_far):.2f}",
                f"{last[-1]:.2f}",
                _range(single),
            )
        )
    head = (
        "one year of weekly releases",
        "the whole year",
        "all weeks so far, on average",
        f"the last {LAST} weeks of the year",
        "a single week",
    )
    yield from table(head, body)


def corrections_table(weeks: int = WEEKS) -> Iterator[str]:
    """With what weight a row counts that is added late, for a row of the first week."""
    after, series = (0, 4, 13), PrefixSums(weeks)
    body = []
    for late in (1, 4, 13):
        shares = series.shares(1, 1 + late)
        body.append((str(late), *(f"{shares[late + each]:.2f}" for each in after)))
    head = ("weeks late", "at once", *(f"{each} weeks later" for each in after[1:]))
    yield from table(head, body)


def redraws_table(weeks: int = WEEKS) -> Iterator[str]:
    """By how much a redrawn step lets the charge of a series grow."""
    body = []
    for week in (1, 13, 26, 39, weeks):
        grown = redrawn(weeks, week)
        body.append((str(week), f"{grown:.2f}", f"{np.sqrt(1 + grown):.2f}"))
    yield from table(("step drawn again", "more of μ²", "μ afterwards, relative to before"), body)


def lengths_table() -> Iterator[str]:
    """The noise of series of other lengths."""
    body = []
    for steps, title, last in (
        (12, "12 months", 3),
        (13, "13 weeks", 4),
        (52, "52 weeks", 13),
        (365, "365 days", 30),
    ):
        series = PrefixSums(steps)
        scale = float(np.sqrt(series.squared_norm()))
        so_far = scale * np.array([series.spread(step) for step in range(1, steps + 1)])
        single = scale * np.array([series.spread(step, 1) for step in range(1, steps + 1)])
        some = f"{scale * series.spread(steps, last):.2f} ({last} steps)"
        body.append((title, f"{so_far[-1]:.2f}", f"{_rms(so_far):.2f}", some, _range(single)))
    head = (
        "series",
        "all steps",
        "all steps so far, on average",
        "the last steps",
        "a single step",
    )
    yield from table(head, body)


def _rms(values: Array) -> float:
    return float(np.sqrt((values**2).mean()))


def _range(values: Array) -> str:
    low, high = values.min(), values.max()
    if np.isclose(low, high):
        return f"{low:.2f}"
    return f"{low:.2f} to {high:.2f}, {values.mean():.2f} on average"


BENCHMARK = Benchmark(
    name="series",
    quick="few repetitions, and small tables",
    result=Result,
    missing=lambda quick, done: [(cell,) for cell in cells.plan(quick) if cell not in done],
    measure=cells.measure,
    label=lambda cell: f"{cell.measured} {cell.way}",
    write=write,
    alone=True,
    fresh=True,
)
