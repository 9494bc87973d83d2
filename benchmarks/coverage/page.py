"""Write the results page from the stored results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from benchmarks.cells import Benchmark, read_results
from benchmarks.coverage import cells
from benchmarks.coverage.cells import COLUMNS, SIZES
from benchmarks.coverage.populations import FAMILIES, QUANTITIES, RELATIONS, STRENGTHS, WEAK
from benchmarks.coverage.scores import LEVEL, RATES
from benchmarks.coverage.tables import (
    BAND,
    FEW,
    SURE,
    Results,
    discoveries,
    intervals,
    known,
    outside,
    over,
    with_enough_known,
)
from benchmarks.pages import figure, table, write_page

_BAND = f"{BAND[0]:.0%} to {BAND[1]:.0%}"


def write(folder: Path) -> None:
    """Write `results.md` and its figures from `results.jsonl` in the same folder."""
    results = read_results(folder / "results.jsonl", cells.Result)
    held, found = intervals(results), discoveries(results)
    (folder / "figures").mkdir(exist_ok=True)
    draw_coverage(held, folder / "figures" / "coverage.svg")
    draw_power(found, folder / "figures" / "power.svg")
    write_page(folder / "results.md", _page(results, held, found))


def _page(results: Results, held: pd.DataFrame, found: pd.DataFrame) -> Iterator[str]:
    yield "# Coverage of intervals and false discoveries\n"
    yield (
        "For analysts who rely on intervals or on edges chosen by false discovery rate. A setting "
        "is a graph (AR(1), hub, random), a number of columns and of rows, a distribution of rows "
        "(Gaussian with mean zero, or the same divided by their length), a family of noise, and "
        f"its strength ({', '.join(f'{s:g}' for s in STRENGTHS)}): the standard deviation of an "
        "off-diagonal entry over the average diagonal entry. The truth is the second moment of the "
        "population (by quadrature for unit rows) and the quantities derived from it. Wishart "
        "noise has the fewest degrees of freedom that a mechanism uses, p + 1, and is therefore "
        f"most skewed. Above a strength of {WEAK:g} the repaired matrix is denoised; below, it is "
        "projected. Written by `python -m benchmarks coverage` from `results.jsonl`.\n"
    )
    error, times = known(held)["error"], held["releases"]
    yield (
        f"{len(held) // len(QUANTITIES)} settings, with {times.min()} to {times.max()} releases "
        "each: until the standard error of every coverage is at most "
        f"{cells.PRECISE:.1%}, or {times.max()} releases. Standard errors are over releases, since "
        f"the entries of one release are dependent. Their median is {error.median():.2%}, their "
        f"maximum {error.max():.2%}; settings in which fewer than five releases have bounded "
        "intervals do not have one. All noise of a cell is added to the same samples of rows.\n"
    )
    yield from _coverage(held)
    yield from _outside(held)
    yield from _false(results, found)
    yield from _power(found)
    seconds = [result.seconds for result in results.values()]
    yield f"\n{sum(seconds) / 60:.0f} minutes on one core, {max(seconds):.0f} s a cell at most."


def _coverage(held: pd.DataFrame) -> Iterator[str]:
    some = with_enough_known(held)
    yield f"## Coverage of {LEVEL:.0%} intervals\n"
    yield (
        f"Of the known entries (those with a bounded interval), in settings where at least "
        f"{FEW:.0%} are known. Width is relative to an oracle that knows the standard deviation of "
        f"the estimate: the median over settings, and the range of the central {LEVEL:.0%}.\n"
    )
    yield "![Coverage against noise](figures/coverage.svg)\n"
    yield "Mean, minimum and maximum over settings; the band is grey.\n"
    lines = []
    for of, family in product(QUANTITIES, (*FAMILIES, "all")):
        here = some[(some["of"] == of) & ((some["family"] == family) | (family == "all"))]
        every = held[(held["of"] == of) & ((held["family"] == family) | (family == "all"))]
        if len(here):
            shares = here["held"]
            tail = (1 - LEVEL) / 2
            spans = (shares.min(), shares.mean(), shares.max())
            low, middle, high = here["width"].quantile([tail, 0.5, 1 - tail])
            inside = int(shares.between(*BAND).sum())
            lucky = len(known(every)) - len(here)
            lines.append(
                (
                    of,
                    family,
                    *(f"{each:.1%}" for each in spans),
                    f"{inside} of {len(here)}",
                    f"{middle:.2f} ({low:.2f} to {high:.2f})",
                    str(lucky),
                    str(len(every) - len(here) - lucky),
                )
            )
    within, few = f"within {_BAND}", f"fewer than {FEW:.0%} known"
    head = ("quantity", "noise", "minimum", "mean", "maximum", within, "width", few, "none known")
    yield from table(head, lines)


def _outside(held: pd.DataFrame) -> Iterator[str]:
    result = outside(held)
    yield f"## Every setting outside {_BAND}\n"
    if not len(result):
        yield "None.\n"
        return
    low, few = result["held"] < BAND[0], result["known"] < FEW
    far = (result["held"] - LEVEL).abs() - SURE * result["error"] > (BAND[1] - BAND[0]) / 2
    yield (
        f"{len(result)} of {len(known(held))} coverages: {(low & few).sum()} below and "
        f"{(~low & few).sum()} above where fewer than {FEW:.0%} of the entries are known, "
        f"{(low & ~few).sum()} below and {(~low & ~few).sum()} above elsewhere. {far.sum()} of "
        f"these are outside by more than {SURE:g} standard errors.\n"
    )
    lines = [
        (
            line.of, line.family, f"{line.strength:g}", line.graph, f"{line.p}", f"{line.n}",
            line.rows, f"{line.known:.1%}",
            f"{line.held:.1%}" + ("" if pd.isna(line.error) else f" ± {line.error:.1%}"),
            "" if pd.isna(line.width) else f"{line.width:.2f}",
        )
        for line in result.itertuples()
    ]  # fmt: skip
    head = ("quantity", "noise", "strength", "graph", "p", "n", "rows", "known", "coverage")
    yield from table((*head, "width"), lines)


def _false(results: Results, found: pd.DataFrame) -> Iterator[str]:
    stray = max(result.stray.get("partial-correlation", 0.0) for result in results.values())
    yield "## False discoveries\n"
    yield (
        "By the procedure of Benjamini and Hochberg: the mean over releases of the share of false "
        "discoveries, 0 where there are no discoveries. Only populations in which some pairs have "
        "no correlation of that kind count. Unit rows are compared with the graph of the rows "
        "before scaling. Scaling gives pairs without an edge small partial correlations, up to "
        f"{stray:.2g}. With many rows these are discovered, and counted here as false although "
        "they are true. The column `over` counts settings in which the share exceeds the rate by "
        f"more than {SURE:g} standard errors.\n"
    )
    lines = []
    for of, rows, family in product(RELATIONS, ("gaussian", "unit"), FAMILIES):
        here = found[(found["of"] == of) & (found["rows"] == rows) & (found["family"] == family)]
        if not len(here):
            continue
        line = [of, rows, family]
        for rate in RATES:
            at = here[here["rate"] == rate]
            most = at.loc[at["false"].idxmax()]
            line += [
                f"{at['false'].mean():.3f}",
                f"{most['false']:.3f} ± {most['error']:.3f}",
                f"{most['graph']}, p = {most['p']}, n = {most['n']}, {most['strength']:g}",
                f"{len(over(at))} of {len(at)}",
            ]
        lines.append(line)
    yield from _where(over(found))
    at_rate = [
        f"{rate:g}: {name}" for rate in RATES for name in ("mean", "maximum", "where", "over")
    ]
    yield from table(("correlation", "rows", "noise", *at_rate), lines)


def _where(lines: pd.DataFrame) -> Iterator[str]:
    """Describe the settings with more false discoveries than allowed, with counts."""
    if not len(lines):
        yield "No setting exceeds its rate.\n"
        return
    counts = lines.groupby(["rate", "of", "rows", "p", "n"]).size()
    yield "Settings that exceed their rate, by rate, rows, p and n:\n"
    for (rate, of, rows, p, n), count in counts.items():
        yield f"- {rate:g}, {of}, {rows} rows, p = {p}, n = {n}: {count} of the settings"
    yield ""


def _power(result: pd.DataFrame) -> Iterator[str]:
    yield "## Power\n"
    yield "![Power against noise](figures/power.svg)\n"
    yield "Share of the true edges that are discovered, mean over settings.\n"
    lines = []
    for of, family in product(RELATIONS, FAMILIES):
        here = result[(result["of"] == of) & (result["family"] == family)]
        for strength, some in here.groupby("strength"):
            shares = [f"{some[some['rate'] == r]['power'].mean():.2f}" for r in RATES]
            lines.append((of, family, f"{strength:g}", *shares))
    head = ("correlation", "noise", "strength", *(f"rate {rate:g}" for rate in RATES))
    yield from table(head, lines)


_LEVELS = (0.0, *STRENGTHS)
_APART = 0.1  # shift between families that would otherwise overlap


def draw_coverage(lines: pd.DataFrame, path: Path) -> None:
    """Plot coverage as SVG: means over settings, with the range from minimum to maximum."""
    some = with_enough_known(lines)
    with _canvas(path, (13, 4.5)) as canvas:
        panels = canvas.subplots(1, len(QUANTITIES), sharey=True)
        for axes, of in zip(panels, QUANTITIES, strict=True):
            axes.axhspan(*BAND, color="0.92")
            axes.axhline(LEVEL, color="0.6", linewidth=0.8)
            for index, family, here in _families(some[some["of"] == of]):
                groups = here.groupby("strength")["held"]
                middle = groups.mean()
                span = np.maximum([middle - groups.min(), groups.max() - middle], 0.0)
                axes.errorbar(
                    _shifted_positions(index, middle), middle, span, label=family, **_style(index)
                )
            _noise(axes, of)
        panels[0].yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        canvas.supylabel(f"coverage at {LEVEL:.0%}")


def draw_power(lines: pd.DataFrame, path: Path) -> None:
    """Plot the power for partial correlations at the first rate, averaged over graphs and rows."""
    some = lines[(lines["of"] == "partial-correlation") & (lines["rate"] == RATES[0])]
    with _canvas(path, (13, 6.5)) as canvas:
        panels = canvas.subplots(len(COLUMNS), len(SIZES), sharex=True, sharey=True).flat
        for axes, (p, n) in zip(panels, product(COLUMNS, SIZES), strict=True):
            at_size = some[(some["p"] == p) & (some["n"] == n)]
            for index, family, here in _families(at_size):
                middle = here.groupby("strength")["power"].mean()
                axes.plot(_shifted_positions(index, middle), middle, label=family, **_style(index))
            _noise(axes, f"p = {p}, n = {n}")
            axes.set_ylim(-0.03, 1.03)
        canvas.supylabel(f"share of the true edges found, at rate {RATES[0]:g}")


def _families(lines: pd.DataFrame) -> Iterator[tuple[int, str, pd.DataFrame]]:
    for index, family in enumerate(FAMILIES):
        here = lines[lines["family"] == family]
        if len(here):
            yield index, family, here


def _shifted_positions(index: int, lines: pd.Series) -> list[float]:
    apart = _APART * (index - len(FAMILIES) / 2) if index else 0.0
    return [_LEVELS.index(strength) + apart for strength in lines.index]


def _style(index: int) -> dict[str, object]:
    colour = "black" if index == 0 else f"C{index - 1}"
    return {"color": colour, "marker": "o", "markersize": 3.5, "linewidth": 1.0}


def _noise(axes: Axes, title: str) -> None:
    axes.set_title(title)
    axes.set_xticks(range(len(_LEVELS)), [f"{s:g}" for s in _LEVELS])
    axes.grid(alpha=0.3, axis="y")


@contextmanager
def _canvas(path: Path, size: tuple[float, float]) -> Iterator[Figure]:
    with figure(path, *size) as canvas:
        yield canvas
        canvas.supxlabel("noise: deviation of an entry over the average diagonal entry")
        named = [axes.get_legend_handles_labels() for axes in canvas.axes]
        lines = {label: line for pair in named for line, label in zip(*pair, strict=True)}
        if lines:
            canvas.legend(lines.values(), lines.keys(), loc="outside right upper", fontsize=8)


BENCHMARK = Benchmark(
    name="coverage",
    quick="measure a few cells with few releases",
    result=cells.Result,
    missing=cells.missing,
    measure=cells.measure,
    label=lambda cell: f"{cell.graph} {cell.p} x {cell.n} {cell.rows}",
    write=write,
)
