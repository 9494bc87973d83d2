"""Plots of seconds against rows and columns, memory against rows, nanoseconds per value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.throughput.tables import Results, of, seconds, series


def growth(results: Results, ours: str, path: Path) -> None:
    """Plot times on log axes, one line per contender; Gramercy's is thick and black."""
    with _canvas(path, 10, 3.6) as canvas:
        names = dict.fromkeys(name for each in of(results, "gram") for name in each.contenders)
        for axes, over_rows in zip(canvas.subplots(1, 2, sharey=True), (True, False), strict=True):
            for index, name in enumerate(names):
                points = series(results, name, over_rows=over_rows)
                axes.plot(
                    *zip(*points, strict=True), marker="o", markersize=3, label=name,
                    color="black" if name == ours else f"C{index}",
                    linewidth=2.5 if name == ours else 1.0,
                )  # fmt: skip
            axes.set(xscale="log", yscale="log", xlabel="rows" if over_rows else "columns")
            axes.grid(alpha=0.3)
        canvas.supylabel("seconds")
        lines, labels = axes.get_legend_handles_labels()
        canvas.legend(lines, labels, loc="outside right upper", fontsize=8)


def memory(results: Results, path: Path) -> None:
    """Plot the memory of a stream, with an axis from zero."""
    found = [each for each in of(results, "stream")]
    rows = [each.cell.rows for each in found]
    with _canvas(path, 5, 3) as canvas:
        axes = canvas.subplots()
        for label, pick in (("peak", "peak"), ("before", "before")):
            values = [getattr(next(iter(each.contenders.values())), pick) for each in found]
            axes.plot(rows, values, marker="o", markersize=3, label=label)
        axes.set(xscale="log", xlabel="rows", ylabel="resident memory, MB")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)


def noise(results: Results, path: Path) -> None:
    """Plot bars on a log axis for the largest number of values."""
    result = of(results, "noise")[-1]
    names = list(result.contenders)
    values = [1e9 * seconds(result.contenders[name]) / result.cell.rows for name in names]
    with _canvas(path, 7, 2.6) as canvas:
        axes = canvas.subplots()
        colors = ["black" if name.startswith("Gramercy") else "gray" for name in names]
        axes.barh(names[::-1], values[::-1], color=colors[::-1])
        axes.set(xscale="log", xlabel="nanoseconds a value")
        axes.grid(alpha=0.3, axis="x")


@contextmanager
def _canvas(path: Path, width: float, height: float) -> Iterator[Any]:
    with mpl.rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none", "font.size": 9}):
        canvas = Figure(figsize=(width, height), layout="constrained")
        yield canvas
        canvas.savefig(path, format="svg", metadata={"Date": None})
