"""Plots of coverage and power against the noise, one colour per noise law."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from benchmarks.coverage.cells import COLUMNS, SIZES
from benchmarks.coverage.populations import QUANTITIES
from benchmarks.coverage.releases import FAMILIES, STRENGTHS
from benchmarks.coverage.scores import LEVEL, RATES
from benchmarks.coverage.tables import BAND, with_enough_known

_LEVELS = (0.0, *STRENGTHS)
_APART = 0.1  # shift between families that would otherwise overlap


def coverage(lines: pd.DataFrame, path: Path) -> None:
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


def power(lines: pd.DataFrame, path: Path) -> None:
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
    with mpl.rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none", "font.size": 9}):
        canvas = Figure(figsize=size, layout="constrained")
        yield canvas
        canvas.supxlabel("noise: deviation of an entry over the average diagonal entry")
        named = [axes.get_legend_handles_labels() for axes in canvas.axes]
        lines = {label: line for pair in named for line, label in zip(*pair, strict=True)}
        if lines:
            canvas.legend(lines.values(), lines.keys(), loc="outside right upper", fontsize=8)
        canvas.savefig(path, format="svg", metadata={"Date": None})
