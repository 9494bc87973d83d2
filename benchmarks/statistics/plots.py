"""Errors of correlations, one panel per epsilon and one line per table."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.statistics.comparisons import Comparison

MARKS = {
    "bounds": ("bounds, unit rows", "C3", "s"),
    "expert": ("expert", "C0", "^"),
    "best": ("best hand-tuned", "0.6", "|"),
    "private": ("private constants", "black", "o"),
}


def draw(found: list[Comparison], path: Path) -> None:
    """Draw the errors of all methods as SVG."""
    names = list(dict.fromkeys(each.table for each in found))[::-1]
    epsilons = sorted({each.epsilon for each in found})
    with mpl.rc_context({"svg.hashsalt": "statistics", "svg.fonttype": "none", "font.size": 9}):
        canvas = Figure(figsize=(13, 1.5 + 0.22 * len(names)), layout="constrained")
        panels = canvas.subplots(1, len(epsilons), sharey=True, squeeze=False)[0]
        for axes, epsilon in zip(panels, epsilons, strict=True):
            here = {each.table: each for each in found if each.epsilon == epsilon}
            _panel(axes, here, names)
            axes.set(xscale="log", title=f"ε = {epsilon:g}", xlabel="error of correlations")
            axes.grid(alpha=0.3)
        panels[0].set_yticks(range(len(names)), names)
        canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
        canvas.savefig(path, format="svg", metadata={"Date": None})


def _panel(axes: Axes, found: dict[str, Comparison], names: list[str]) -> None:
    for key, (label, colour, marker) in MARKS.items():
        here = [(getattr(found[name], key), row) for row, name in enumerate(names) if name in found]
        known = [(value, row) for value, row in here if value is not None]
        values, rows = [value for value, _ in known], [row for _, row in known]
        size = 90 if marker == "|" else 22
        axes.scatter(values, rows, s=size, c=colour, marker=marker, label=label)
