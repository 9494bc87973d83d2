"""Forest plots: numbers with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gramercy.common.plotting import axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


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
    ax.hlines(places[known], lower, upper, color="tab:blue", lw=2)
    ax.plot(estimate, places[known], "o", color="tab:blue", ms=5)
    names = [
        str(name) if sure else f"{name} (unknown)" for name, sure in zip(labels, known, strict=True)
    ]
    ax.set_yticks(places, names)
    ax.set_ylim(count - 0.5, -0.5)
    if known.any() and lower.min() < 0 < upper.max():
        ax.axvline(0.0, color="0.6", lw=1, zorder=0)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
