"""Plots of coverage and width by table, with folds and without: a panel for each quantity."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from benchmarks.intervals.populations import QUANTITIES
from benchmarks.intervals.releases import LEVEL
from benchmarks.intervals.tables import BAND, LAYOUTS, judged

EPSILON, ROWS = 4.0, (20_000, 200_000)  # in the pictures
_STYLES = {1: ("C3", "s"), 10: ("C0", "o"), 20: ("black", "^")}
_APART = 0.22  # between the numbers of folds


def coverage(lines: pd.DataFrame, path: Path) -> None:
    """Plot mean coverage as SVG, with a line to that of the entry that is covered least."""
    label = f"coverage at {LEVEL:.0%}; a line ends at the entry with the least"
    with _panels(lines, path, ("held", "worst"), label) as panels:
        for axes in panels:
            axes.axvspan(*BAND, color="0.92", zorder=0)
            axes.axvline(LEVEL, color="0.6", linewidth=0.8, zorder=0)
            axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def width(lines: pd.DataFrame, path: Path) -> None:
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
    some = judged(lines[lines["epsilon"] == EPSILON])
    sizes = [n for n in ROWS if (some["n"] == n).any()]
    names = list(dict.fromkeys(some["table"]))[::-1]
    with mpl.rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none", "font.size": 9}):
        canvas = Figure(figsize=(13, 1.2 + 0.27 * len(names) * len(sizes)), layout="constrained")
        shape = max(len(sizes), 1), len(QUANTITIES)
        panels = canvas.subplots(*shape, sharex="col", sharey=True, squeeze=False)
        for axes, (n, of) in zip(panels.flat, product(sizes, QUANTITIES), strict=False):
            _draw(axes, some[(some["n"] == n) & (some["of"] == of)], names, fields)
            axes.set_title(f"{of.replace('-', ' ')}, n = {n:,}")
        yield list(panels.flat)
        canvas.supxlabel(f"{label}; ε = {EPSILON:g}")
        handles = panels[0, 0].get_legend_handles_labels()
        canvas.legend(*handles, loc="outside upper center", ncols=len(LAYOUTS))
        canvas.savefig(path, format="svg", metadata={"Date": None})


def _draw(axes: Axes, here: pd.DataFrame, names: list[str], fields: tuple[str, str]) -> None:
    for index, (folds, (colour, marker)) in enumerate(_STYLES.items()):
        at = here[here["folds"] == folds]
        places = [names.index(name) + _APART * (1 - index) for name in at["table"]]
        value, extreme = (at[each] for each in fields)
        axes.hlines(places, extreme, value, color=colour, linewidth=0.8)
        axes.scatter(value, places, s=14, c=colour, marker=marker, label=LAYOUTS[folds])
    axes.set_yticks(range(len(names)), names)
    axes.grid(alpha=0.3, axis="x")
