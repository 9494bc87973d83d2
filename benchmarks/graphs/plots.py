"""Plots of F1 against epsilon, one panel per table size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.graphs.cells import COLUMNS, EPSILONS, ROWS, Cell
from benchmarks.graphs.methods import METHODS
from benchmarks.graphs.tables import Results, mean

Where = Callable[[Cell], bool]


def draw(results: Results, methods: Sequence[str], path: Path) -> None:
    """Draw one line per method, the first one in black, as SVG."""
    with mpl.rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none", "font.size": 9}):
        canvas = Figure(figsize=(12, 6), layout="constrained")
        panels = canvas.subplots(len(COLUMNS), len(ROWS), sharex=True, sharey=True).flat
        for axes, (p, n) in zip(panels, product(COLUMNS, ROWS), strict=True):
            for index, name in enumerate(methods):
                points = [(e, mean(results, name, "f1", _at_setting(p, n, e))) for e in EPSILONS]
                known = [(e, each.mean, each.error) for e, each in points if each is not None]
                if known:
                    axes.errorbar(
                        *zip(*known, strict=True), label=METHODS[name].title, marker="o",
                        color="black" if index == 0 else f"C{index - 1}",
                        linewidth=2.5 if index == 0 else 1.0, markersize=3,
                    )  # fmt: skip
            axes.set(title=f"p = {p}, n = {n}", xscale="log", ylim=(-0.02, 1.02))
            axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
            axes.minorticks_off()
            axes.grid(alpha=0.3)
        canvas.supxlabel("epsilon")
        canvas.supylabel("F1 of the edges")
        named = [axes.get_legend_handles_labels() for axes in canvas.axes]
        lines = {label: line for pair in named for line, label in zip(*pair, strict=True)}
        if lines:
            canvas.legend(lines.values(), lines.keys(), loc="outside right upper", fontsize=8)
        canvas.savefig(path, format="svg", metadata={"Date": None})


def _at_setting(p: int, n: int, epsilon: float) -> Where:
    return lambda cell: cell.synthetic and (cell.p, cell.n, cell.epsilon) == (p, n, epsilon)
