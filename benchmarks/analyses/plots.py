"""What each regression loses, one panel per epsilon and one line per table."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.analyses.lines import COLUMNS, Lines
from benchmarks.analyses.methods import TABLES

MARKS = {
    "declared": ("0.6", "o"),
    "AdaSSP, bounds": ("C3", "s"),
    "AdaSSP, true constants": ("C0", "^"),
    "dp-statsmodels, true constants": ("C2", "x"),
    "BinAgg, true constants": ("C4", "+"),
    "raw": ("C1", "|"),
    "private": ("black", "o"),
}


def draw(lines: Lines, path: Path) -> None:
    """Draw the loss of R squared by all methods as SVG."""
    names = [name for name in TABLES if any(table == name for table, _ in lines)][::-1]
    epsilons = sorted({epsilon for _, epsilon in lines})
    with mpl.rc_context({"svg.hashsalt": "analyses", "svg.fonttype": "none", "font.size": 9}):
        canvas = Figure(figsize=(12, 1.7 + 0.28 * len(names)), layout="constrained")
        panels = canvas.subplots(1, len(epsilons), sharey=True, squeeze=False)[0]
        for axes, epsilon in zip(panels, epsilons, strict=True):
            for key, (colour, marker) in MARKS.items():
                here = [
                    (lines[name, epsilon][key]["loss"], row)
                    for row, name in enumerate(names)
                    if key in lines.get((name, epsilon), {})
                ]
                values, rows = [value for value, _ in here], [row for _, row in here]
                size = 90 if marker == "|" else 26
                axes.scatter(values, rows, s=size, c=colour, marker=marker, label=COLUMNS[key])
            axes.set(xscale="log", title=f"ε = {epsilon:g}", xlabel="loss of R squared")
            axes.grid(alpha=0.3)
        panels[0].set_yticks(range(len(names)), names)
        canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
        canvas.savefig(path, format="svg", metadata={"Date": None})
