"""Log-log plots of error against epsilon or rho, one figure per table."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.utility.cells import METHODS
from benchmarks.utility.data import TABLES
from benchmarks.utility.guarantees import GRID, TITLES
from benchmarks.utility.tables import Results, Row, best, headline, rivals, rows

RIVALS = tuple(name for name, method in METHODS.items() if method.headline is None)


def draw(results: Results, dataset: str, path: Path) -> None:
    """Draw the Frobenius errors of Gramercy and of each peer in its best form, as SVG."""
    with mpl.rc_context({"svg.hashsalt": dataset, "svg.fonttype": "none", "font.size": 9}):
        canvas = Figure(figsize=(12, 4), layout="constrained")
        for axes, kind in zip(canvas.subplots(1, len(GRID), sharey=True), GRID, strict=True):
            found = rows(results, dataset, kind, "frobenius")
            for row in best(rivals(found)):
                _line(axes, row, f"C{RIVALS.index(row.method) % 10}", 1.0)
            ours = headline(found, kind, TABLES[dataset].p)
            if ours:
                _line(axes, ours, "black", 2.5)
            axes.set(xscale="log", yscale="log", title=TITLES[kind])
            axes.set_xlabel("rho" if kind == "zcdp" else "epsilon")
            axes.set_xticks(GRID[kind], [f"{value:g}" for value in GRID[kind]])
            axes.minorticks_off()
            axes.grid(alpha=0.3)
        canvas.axes[0].set_ylabel("Frobenius error")
        named = [axes.get_legend_handles_labels() for axes in canvas.axes]
        lines = {label: line for pair in named for line, label in zip(*pair, strict=True)}
        if lines:
            canvas.legend(lines.values(), lines.keys(), loc="outside right upper", fontsize=8)
        canvas.savefig(path, format="svg", metadata={"Date": None})


def _line(axes: Axes, row: Row, colour: str, width: float) -> None:
    values = sorted(row.figures)
    axes.errorbar(
        values,
        [row.figures[value].mean for value in values],
        [row.figures[value].error for value in values],
        color=colour, linewidth=width, marker="o", markersize=3, label=METHODS[row.method].title,
    )  # fmt: skip
