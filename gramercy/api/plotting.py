"""Pictures of numbers with intervals: heat maps and forest plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gramercy.common.graph_plot import GREY, POSITIVE
from gramercy.common.plotting import axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["axes", "forest", "heat_map"]

Array = NDArray[np.float64]

_LABELLED = 12  # largest matrix whose entries are written in the cells
_UNKNOWN = "0.85"


def heat_map(values: Array, names: Sequence[str], ax: Axes | None = None) -> Axes:
    """Draw a symmetric matrix; unknown entries are grey and hatched.

    Parameters
    ----------
    values
        Shape (q, q); NaN for unknown entries.
    names
        Names of the columns.
    ax
        Axes to draw on; None for a new figure.
    """
    q = len(values)
    side = max(3.0, min(12.0, 0.5 * q + 2))
    ax = axes(ax, side + 0.8, side)
    known = np.isfinite(values)
    largest = float(np.abs(values[known]).max(initial=0.0)) or 1.0
    image = ax.imshow(np.ma.masked_array(values, ~known), "RdBu_r", vmin=-largest, vmax=largest)
    ax.patch.set(facecolor=_UNKNOWN, hatch="////", edgecolor=GREY)
    ax.set_xticks(range(q), names, rotation=90)
    ax.set_yticks(range(q), names)
    if q <= _LABELLED:
        for i, j in np.argwhere(known):
            dark = abs(values[i, j]) > 0.6 * largest
            text = f"{values[i, j]:.2g}"
            ax.text(j, i, text, ha="center", va="center", color="white" if dark else "black")
    ax.figure.colorbar(image, ax=ax, fraction=0.046)
    return ax


def forest(numbers: Array, labels: Sequence[str], ax: Axes | None = None) -> Axes:
    """Draw numbers and their intervals, one below the other; unknown ones have no mark.

    Parameters
    ----------
    numbers
        Estimates, lower and upper bounds, shape (3, k); NaN or infinite where unknown.
    labels
        One label for each number; unknown ones get the addition "(unknown)".
    ax
        Axes to draw on; None for a new figure.
    """
    count = numbers.shape[1]
    ax = axes(ax, 6.0, max(1.2, min(16.0, 0.3 * count + 0.8)))
    known = np.asarray(np.isfinite(numbers).all(axis=0))
    estimate, lower, upper = numbers[:, known]
    places = np.arange(count)
    ax.hlines(places[known], lower, upper, color=POSITIVE, lw=2)
    ax.plot(estimate, places[known], "o", color=POSITIVE, ms=5)
    names = [
        str(name) if sure else f"{name} (unknown)" for name, sure in zip(labels, known, strict=True)
    ]
    ax.set_yticks(places, names)
    ax.set_ylim(count - 0.5, -0.5)
    if known.any() and lower.min() < 0 < upper.max():
        ax.axvline(0.0, color=GREY, lw=1, zorder=0)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
