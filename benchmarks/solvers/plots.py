"""Plots of seconds against the number of columns on log axes, one panel per regime."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.solvers.cells import What
from benchmarks.solvers.matrices import REGIMES
from benchmarks.solvers.peers import OURS
from benchmarks.solvers.tables import Results, at, floor, seconds, sizes, solvers


def draw(results: Results, what: What, titles: dict[str, str], path: Path) -> None:
    """Draw one line per solver, Gramercy in black, and dashed one Cholesky and inverse; as SVG."""
    with mpl.rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none", "font.size": 9}):
        canvas = Figure(figsize=(12, 3.6), layout="constrained")
        panels = canvas.subplots(1, len(REGIMES), sharex=True, sharey=True)
        for axes, regime in zip(panels, REGIMES, strict=True):
            for index, name in enumerate(solvers(results)):
                points = [
                    (p, seconds(results, name, at(p, what, regime))) for p in sizes(results, what)
                ]
                known = [(p, each) for p, each in points if each is not None]
                if known:
                    axes.plot(
                        *zip(*known, strict=True), label=titles.get(name, name), marker="o",
                        color="black" if name == OURS else f"C{index - 1}",
                        linewidth=2.5 if name == OURS else 1.0, markersize=3,
                    )  # fmt: skip
            lowest = [(p, floor(results, at(p, what, regime))) for p in sizes(results, what)]
            below = [(p, each) for p, each in lowest if each is not None]
            if below:
                axes.plot(
                    *zip(*below, strict=True), color="gray", linestyle="--", linewidth=1.0,
                    label="one Cholesky and inverse",
                )  # fmt: skip
            axes.set(title=regime, xscale="log", yscale="log")
            axes.set_xticks(sizes(results, what), [f"{p}" for p in sizes(results, what)])
            axes.minorticks_off()
            axes.grid(alpha=0.3)
        canvas.supxlabel("columns")
        canvas.supylabel("seconds")
        named = [axes.get_legend_handles_labels() for axes in canvas.axes]
        lines = {label: line for pair in named for line, label in zip(*pair, strict=True)}
        canvas.legend(lines.values(), lines.keys(), loc="outside right upper", fontsize=8)
        canvas.savefig(path, format="svg", metadata={"Date": None})
