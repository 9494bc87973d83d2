"""Write the results page from the stored results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from benchmarks.cells import Benchmark, read_results
from benchmarks.intervals import cells
from benchmarks.intervals.cells import EPSILONS, MEASURED, ROWS
from benchmarks.intervals.populations import LEVEL, MOST_COLUMNS, QUANTITIES
from benchmarks.intervals.tables import BAND, FEW, LAYOUTS, Results, intervals, judged, short
from benchmarks.pages import figure, table, write_page
from gramercy.pipeline.plan.calibration import FOLDS as DRAFTED
from gramercy.pipeline.plan.calibration import TYPICAL_SQUARE
from tests.support.private_release import DELTA


def write(folder: Path) -> None:
    """Write `results.md` and its figures from `results.jsonl` in the same folder."""
    results = read_results(folder / "results.jsonl", cells.Result)
    lines = intervals(results)
    (folder / "figures").mkdir(exist_ok=True)
    draw_coverage(lines, folder / "figures" / "coverage.svg")
    draw_width(lines, folder / "figures" / "width.svg")
    write_page(folder / "results.md", _page(results, lines))


def _page(results: Results, lines: pd.DataFrame) -> Iterator[str]:
    times = [result.releases for result in results.values()]
    yield "# Intervals on populations resampled from tables\n"
    yield (
        "For analysts whose tables are not Gaussian, and for stewards who decide on folds. Rows "
        "are drawn with replacement from the tables of "
        "[accuracy of correlations](../statistics/results.md), of which at most "
        f"{MOST_COLUMNS} columns are used, so that the population is the table and its values "
        "are known. Every sample is released as a whole with `scaling: private`, constants "
        f"included, at an exact (epsilon, {DELTA:g}) guarantee (replace-one): once without folds, "
        "and once with 10. With folds the rule takes their noise into account, and may choose a "
        "smaller radius. Intervals are for the population, and contain noise, sampling and what "
        "clipping may hide; `own` are those for the released table itself, without sampling. "
        f"Written by `python -m benchmarks intervals` from `results.jsonl`, which was measured on "
        f"{MEASURED}. Noise is seeded, so nothing here is a release.\n"
    )
    yield (
        f"{len(results)} cells with {_range(times)} samples each, so one entry's coverage has a "
        f"standard error of up to {(LEVEL * (1 - LEVEL) / min(times)) ** 0.5:.1%}, and the least "
        "of many entries is low by chance alone. Means over entries have standard errors over "
        "samples, since the entries of one release are dependent: "
        f"{judged(lines)['error'].median():.1%} in the median, "
        f"{judged(lines)['error'].max():.1%} at most.\n"
    )
    yield from _summary(lines)
    yield "![Coverage by table](figures/coverage.svg)\n"
    yield "![Width of the intervals by table](figures/width.svg)\n"
    yield from _short(lines)
    yield from _costs(lines)
    yield "## All cells\n"
    yield (
        "Coverage of the population ± its standard error / of the table's own values / of the "
        "entry of the population that is covered least / width over the oracle's. The share of "
        "known entries is in brackets if it is below 100%.\n"
    )
    for n, epsilon in product(ROWS, EPSILONS):
        yield from _cells(lines[(lines["n"] == n) & (lines["epsilon"] == epsilon)], n, epsilon)
    seconds = [result.seconds for result in results.values()]
    yield f"\n{sum(seconds) / 60:.0f} minutes on one core, {max(seconds):.0f} s a cell at most."


def _summary(lines: pd.DataFrame) -> Iterator[str]:
    yield f"## Coverage of {LEVEL:.0%} intervals\n"
    yield (
        f"Over cells in which at least {FEW:.0%} of the entries have a bounded interval. Width is "
        "relative to an oracle that knows the standard deviation of the estimate and has no bias; "
        "with folds, Student's t distribution alone makes it 1.15. The last column but one is the "
        "standard deviation of the estimates over that without folds: what the noise of the folds "
        "costs. Below 1, a smaller radius gains more than the noise costs, for more bias.\n"
    )
    body = []
    for of, (folds, layout) in product(QUANTITIES, LAYOUTS.items()):
        every = lines[(lines["of"] == of) & (lines["folds"] == folds)]
        here = judged(every)
        if not len(here):
            continue
        held, own, cost = here["held"], here["own"], here["cost"].dropna()
        body.append(
            (
                of.replace("-", " "),
                layout,
                f"{held.mean():.1%}",
                f"{held.min():.1%} to {held.max():.1%}",
                f"{here['worst'].min():.0%}",
                f"{own.mean():.1%}" if own.notna().all() else "-",
                f"{here['own_worst'].min():.0%}" if own.notna().all() else "-",
                _spread(here["width"]),
                _spread(cost) if folds > 1 and len(cost) else "",
                str(len(every) - len(here)),
            )
        )
    head = (
        "quantity", "", "population: mean", "range over cells", "least of an entry",
        "own values: mean", "least of an entry", "width: median (range)",
        "deviation / without folds", f"cells with fewer than {FEW:.0%} known",
    )  # fmt: skip
    yield from table(head, body)


def _costs(lines: pd.DataFrame) -> Iterator[str]:
    some = lines[lines["folds"] == DRAFTED]
    n, epsilon = some["n"].max(), some["epsilon"].max()
    some = some[(some["n"] == n) & (some["epsilon"] == epsilon)]
    yield "## What folds cost\n"
    yield (
        f"Folds multiply the noise by sqrt({DRAFTED}). `gramercy new` and `gramercy plan` propose "
        "them where that stays below a third of the sampling error. They know n, p and epsilon, "
        f"but not the radius r, and assume r^2 = {TYPICAL_SQUARE:g} (p + 1). By table, the radius "
        f"with {DRAFTED} folds, and the standard deviation of the estimates over that without "
        f"folds, at n = {n:,} and epsilon = {epsilon:g}:\n"
    )
    body = []
    for name, here in some.groupby("table", sort=False):
        costs = (here[here["of"] == of]["cost"].mean() for of in QUANTITIES)
        shown = ("-" if pd.isna(cost) else f"{cost:.2f}" for cost in costs)
        body.append((str(name), f"{here['square'].mean():.1f}", *shown))
    head = ("table", "r^2 / (p + 1)", *(of.replace("-", " ") for of in QUANTITIES))
    yield from table(head, body)


def _short(lines: pd.DataFrame) -> Iterator[str]:
    found = short(lines)
    yield "## Every quantity that is covered too seldom\n"
    yield (
        f"{len(found)} of {len(judged(lines))} with a mean coverage of the population that is "
        f"below {BAND[0]:.0%} by more than two standard errors.\n"
    )
    if len(found):
        head = (
            "quantity", "", "table", "n", "epsilon", "known", "population", "own values",
            "least of an entry",
        )  # fmt: skip
        body = (
            (
                line.of.replace("-", " "),
                LAYOUTS[line.folds],
                line.table,
                f"{line.n:,}",
                f"{line.epsilon:g}",
                f"{line.known:.0%}",
                f"{line.held:.1%} ± {line.error:.1%}",
                _share(line.own, 1),
                _share(line.worst, 0),
            )
            for line in found.itertuples()
        )
        yield from table(head, body)


def _cells(lines: pd.DataFrame, n: int, epsilon: float) -> Iterator[str]:
    if not len(lines):
        return
    yield f"### n = {n:,}, epsilon = {epsilon:g}\n"
    body = []
    for (name, of), here in lines.groupby(["table", "of"], sort=False):
        by_folds = here.set_index("folds")
        scores = (_score(by_folds.loc[folds]) for folds in LAYOUTS)
        body.append((str(name), str(of).replace("-", " "), *scores))
    yield from table(("table", "quantity", *LAYOUTS.values()), body)


def _score(line: pd.Series) -> str:
    known = "" if line.known == 1 else f" ({min(line.known, 0.99):.0%})"
    if pd.isna(line.held):
        return f"unknown{known}"
    parts = [f"{line.held:.1%} ± {line.error:.1%}", _share(line.own, 1), _share(line.worst, 0)]
    parts += ["-" if pd.isna(line.width) else f"{line.width:.2f}"]
    return " / ".join(parts) + known


def _share(value: float, digits: int) -> str:
    return "-" if pd.isna(value) else f"{value:.{digits}%}"


def _spread(values: pd.Series) -> str:
    return f"{values.median():.2f} ({values.min():.2f} to {values.max():.2f})"


def _range(times: list[int]) -> str:
    return " to ".join(dict.fromkeys((str(min(times)), str(max(times)))))


_EPSILON, _SIZES = 4.0, (20_000, 200_000)  # in the pictures
_STYLES = {1: ("C3", "s"), 10: ("C0", "o")}
_APART = 0.22  # between the numbers of folds


def draw_coverage(lines: pd.DataFrame, path: Path) -> None:
    """Plot mean coverage as SVG, with a line to that of the entry that is covered least."""
    label = f"coverage at {LEVEL:.0%}; a line ends at the entry with the least"
    with _panels(lines, path, ("held", "worst"), label) as panels:
        for axes in panels:
            axes.axvspan(*BAND, color="0.92", zorder=0)
            axes.axvline(LEVEL, color="0.6", linewidth=0.8, zorder=0)
            axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def draw_width(lines: pd.DataFrame, path: Path) -> None:
    """Plot width over that of the oracle as SVG, with a line to that of the narrowest entry."""
    label = "width over the oracle's; a line ends at the narrowest entry"
    with _panels(lines, path, ("width", "narrowest"), label) as panels:
        for axes in panels:
            axes.axvline(1, color="0.6", linewidth=0.8, zorder=0)


@contextmanager
def _panels(
    lines: pd.DataFrame, path: Path, fields: tuple[str, str], label: str
) -> Iterator[list[Axes]]:
    """Panels with a dot for the first field, and a line from it to the second."""
    some = judged(lines[lines["epsilon"] == _EPSILON])
    sizes = [n for n in _SIZES if (some["n"] == n).any()]
    names = list(dict.fromkeys(some["table"]))[::-1]
    with figure(path, 13, 1.2 + 0.27 * len(names) * len(sizes)) as canvas:
        shape = max(len(sizes), 1), len(QUANTITIES)
        panels = canvas.subplots(*shape, sharex="col", sharey=True, squeeze=False)
        for axes, (n, of) in zip(panels.flat, product(sizes, QUANTITIES), strict=False):
            _draw(axes, some[(some["n"] == n) & (some["of"] == of)], names, fields)
            axes.set_title(f"{of.replace('-', ' ')}, n = {n:,}")
        yield list(panels.flat)
        canvas.supxlabel(f"{label}; ε = {_EPSILON:g}")
        handles = panels[0, 0].get_legend_handles_labels()
        canvas.legend(*handles, loc="outside upper center", ncols=len(LAYOUTS))


def _draw(axes: Axes, here: pd.DataFrame, names: list[str], fields: tuple[str, str]) -> None:
    for index, (folds, (colour, marker)) in enumerate(_STYLES.items()):
        at = here[here["folds"] == folds]
        places = [names.index(name) + _APART * (0.5 - index) for name in at["table"]]
        value, extreme = (at[each] for each in fields)
        axes.hlines(places, extreme, value, color=colour, linewidth=0.8)
        axes.scatter(value, places, s=14, c=colour, marker=marker, label=LAYOUTS[folds])
    axes.set_yticks(range(len(names)), names)
    axes.grid(alpha=0.3, axis="x")


BENCHMARK = Benchmark(
    name="intervals",
    quick="measure two tables with few releases",
    result=cells.Result,
    missing=cells.missing,
    measure=cells.measure,
    label=lambda cell: f"{cell.table} {cell.n} {cell.epsilon:g}",
    write=write,
)
